"""Pages that make an entity: a form with the service's defaults, sent back with what is wrong until nothing is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from msgspec.structs import replace

from hubweir.errors import ServiceError
from hubweir.gateway.http.exchange import Response
from hubweir.namespace.entity import EntityDescription
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.messaging_description import MessagingDescription
from hubweir.namespace.names import check_subscription_name
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.subscription_description import SubscriptionDescription, subscription_path
from hubweir.namespace.topic_description import TopicDescription
from hubweir.portal.event_hub_settings import event_hub_fields, event_hub_values, read_event_hub
from hubweir.portal.form import Form
from hubweir.portal.form_fields import SettingField
from hubweir.portal.forwarding_rights import check_may_forward
from hubweir.portal.messaging_settings import messaging_fields, messaging_values, read_messaging
from hubweir.portal.visit import Visit

K = TypeVar("K", bound=EntityDescription)
M = TypeVar("M", bound=MessagingDescription)

NEW_PARTITION_COUNT = 4


async def new_event_hub(visit: Visit) -> Response:
    return _show_event_hub(visit, event_hub_values(_new_event_hub()))


async def create_event_hub(visit: Visit) -> Response:
    def read(name: str) -> EventHubDescription:
        return read_event_hub(visit.form, replace(_new_event_hub(), name=name), is_new=True)

    return await _create(visit, read, _show_event_hub)


async def new_queue(visit: Visit) -> Response:
    return _show_messaging(visit, QueueDescription(""), messaging_values(QueueDescription("")))


async def create_queue(visit: Visit) -> Response:
    return await _create_messaging(visit, QueueDescription(""))


async def new_topic(visit: Visit) -> Response:
    return _show_messaging(visit, TopicDescription(""), messaging_values(TopicDescription("")))


async def create_topic(visit: Visit) -> Response:
    return await _create_messaging(visit, TopicDescription(""))


async def new_subscription(visit: Visit) -> Response:
    visit.entity(TopicDescription)
    new = SubscriptionDescription("")
    return _show_messaging(visit, new, messaging_values(new))


async def create_subscription(visit: Visit) -> Response:
    visit.entity(TopicDescription)
    return await _create_messaging(visit, SubscriptionDescription(""))


async def _create_messaging(visit: Visit, new: M) -> Response:
    tier = visit.gateway.namespace.profile.messaging

    def read(name: str) -> M:
        if isinstance(new, SubscriptionDescription):
            name = subscription_path(visit.name, check_subscription_name(name))
        wanted = read_messaging(visit.form, replace(new, name=name), tier, is_new=True)
        check_may_forward(visit, wanted)
        return wanted

    def show(visit: Visit, values: Form, problem: ServiceError) -> Response:
        return _show_messaging(visit, new, values, problem)

    return await _create(visit, read, show)


async def _create(
    visit: Visit, read: Callable[[str], K], show: Callable[[Visit, Form, ServiceError], Response]
) -> Response:
    try:
        wanted = read(visit.form.get("name", "").strip())
        made: K = await visit.ask(partial(visit.gateway.keeper.create, wanted))
    except ServiceError as refusal:
        return show(visit, visit.form, refusal)
    return visit.go("entity", made.name, notice="created")


def _new_event_hub() -> EventHubDescription:
    return EventHubDescription("", NEW_PARTITION_COUNT)


def _show_event_hub(visit: Visit, values: Form, problem: ServiceError | None = None) -> Response:
    return _show(visit, "event hub", "event-hubs", event_hub_fields(), values, problem)


def _show_messaging(visit: Visit, new: MessagingDescription, values: Form, problem: ServiceError | None = None
                    ) -> Response:  # fmt: skip
    fields = messaging_fields(new, visit.gateway.namespace.profile.messaging)
    return _show(visit, new.kind.noun, f"{new.kind.noun}s", fields, values, problem)


def _show(
    visit: Visit, noun: str, back: str, fields: Sequence[SettingField], values: Form, problem: ServiceError | None
) -> Response:
    return visit.show_form(
        "create.html",
        problem,
        noun=noun,
        back=back,
        fields=fields,
        values=values,
    )
