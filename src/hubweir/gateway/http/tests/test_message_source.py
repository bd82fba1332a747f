"""Which part of a queue a path of messages names, and what is told where there is none."""

from __future__ import annotations

import pytest

from hubweir.errors import NOT_ALLOWED, NOT_FOUND, ServiceError
from hubweir.gateway.http.message_source import gone_where_absent, source_of
from hubweir.gateway.http.problem import HttpRefusal
from hubweir.gateway.http.tests.world_requests import queue_world
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.subscription_description import SubscriptionDescription
from hubweir.namespace.topic_description import TopicDescription
from hubweir.queue.sub_queue import SubQueue


def test_a_path_names_a_queue_or_its_dead_letters_in_any_case() -> None:
    world = queue_world()
    world.wait(lambda done: world.gateway.keeper.create(QueueDescription("team/orders"), done))
    for path, name, sub_queue in (
        ("orders", "orders", SubQueue.MAIN),
        ("ORDERS/$deadletterqueue", "orders", SubQueue.DEAD_LETTERS),
        ("Team/Orders", "team/orders", SubQueue.MAIN),
        ("team/orders/$Transfer/$DeadLetterQueue", "team/orders", SubQueue.TRANSFER_DEAD_LETTERS),
    ):
        source = source_of(world.gateway, path)
        assert (source.entity.name, source.fragments.entity, source.sub_queue) == (name, name, sub_queue)


def test_a_path_names_a_subscription_in_any_case() -> None:
    world = queue_world()
    world.wait(lambda done: world.gateway.keeper.create(TopicDescription("news"), done))
    world.wait(lambda done: world.gateway.keeper.create(SubscriptionDescription("news/Subscriptions/all"), done))
    source = source_of(world.gateway, "NEWS/subscriptions/ALL/$DeadLetterQueue")
    assert (source.entity.name, source.sub_queue) == ("news/Subscriptions/all", SubQueue.DEAD_LETTERS)
    [topic] = world.namespace.entities(TopicDescription)
    place = source.fragments.only
    assert place.stored_in == topic.placements[0].log_id and place.goes_with("news")


@pytest.mark.parametrize(
    ("path", "condition"),
    [
        ("absent", NOT_FOUND),
        ("orders/x", NOT_FOUND),
        ("orders/$management", NOT_FOUND),
        ("hub/partitions/0", NOT_FOUND),
        ("hub", NOT_ALLOWED),
        ("news", NOT_ALLOWED),
        ("news/subscriptions/absent", NOT_FOUND),
    ],
)
def test_everything_else_is_refused(path: str, condition: object) -> None:
    world = queue_world()
    world.wait(lambda done: world.gateway.keeper.create(TopicDescription("news"), done))
    with pytest.raises(ServiceError) as refusal:
        source_of(world.gateway, path)
    assert refusal.value.condition is condition


def test_what_is_absent_is_gone_and_every_other_error_stays() -> None:
    with pytest.raises(HttpRefusal, match="It is not there") as refusal, gone_where_absent():
        raise ServiceError(NOT_FOUND, "It is not there.")
    assert refusal.value.status == 410
    with pytest.raises(ServiceError), gone_where_absent():
        raise ServiceError(NOT_ALLOWED, "No.")
