"""The page that changes an entity's settings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from hubweir.errors import NOT_FOUND, ServiceError
from hubweir.gateway.http.exchange import Response
from hubweir.namespace.entity import AnyEntity, of_kind
from hubweir.namespace.event_hub_changes import set_settings
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.messaging_changes import replace_settings
from hubweir.namespace.messaging_description import MessagingDescription
from hubweir.portal.entered_values import entered_values
from hubweir.portal.event_hub_settings import event_hub_fields, event_hub_values, read_event_hub
from hubweir.portal.form import Form
from hubweir.portal.form_fields import SettingField
from hubweir.portal.forwarding_rights import check_may_forward
from hubweir.portal.messaging_settings import messaging_fields, messaging_values, read_messaging
from hubweir.portal.visit import Visit


async def settings(visit: Visit) -> Response:
    entity = visit.any_entity()
    return _show(visit, entity, _values(entity))


async def change_settings(visit: Visit) -> Response:
    """Save what was entered; what cannot be is told beside the form."""
    entity = visit.any_entity()
    fixed = [field.name for field in _fields(visit, entity) if field.is_fixed]
    entered = entered_values(visit.form, _values(entity), fixed=fixed)
    try:
        await _change(visit, entity, entered)
    except ServiceError as refusal:
        return _show(visit, entity, entered, refusal)
    return visit.go("entity", entity.name, notice="changed")


async def _change(visit: Visit, entity: AnyEntity, entered: Form) -> None:
    gateway, description = visit.gateway, entity.description
    if isinstance(description, EventHubDescription):
        hub = read_event_hub(entered, description, is_new=False)
        change = partial(set_settings, wanted=hub, seen=description)
        await visit.ask(partial(gateway.keeper.change, entity.name, EventHubDescription, change))
    elif isinstance(description, MessagingDescription):
        wanted = read_messaging(entered, description, gateway.namespace.profile.messaging, is_new=False)
        check_may_forward(visit, wanted)
        replaced = partial(replace_settings, wanted=wanted, seen=description)
        await visit.ask(partial(gateway.keeper.change, entity.name, type(description), replaced))


def _values(entity: AnyEntity) -> dict[str, str]:
    hub, messaging = of_kind(entity, EventHubDescription), of_kind(entity, MessagingDescription)
    if hub is not None:
        return event_hub_values(hub.description)
    if messaging is not None:
        return messaging_values(messaging.description)
    raise ServiceError(NOT_FOUND, "There is no such page.")


def _fields(visit: Visit, entity: AnyEntity) -> Sequence[SettingField]:
    messaging = of_kind(entity, MessagingDescription)
    if messaging is None:
        return event_hub_fields()
    return messaging_fields(messaging.description, visit.gateway.namespace.profile.messaging)


def _show(visit: Visit, entity: AnyEntity, values: Form, problem: ServiceError | None = None) -> Response:
    return visit.show_form(
        "settings.html",
        problem,
        entity=entity,
        fields=_fields(visit, entity),
        values=values,
        seen=_values(entity),
    )
