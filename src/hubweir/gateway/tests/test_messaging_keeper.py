"""Queues, topics and subscriptions are made, changed and removed with their fragments, whatever interrupts it."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from hubweir.broker.commands.fragment import ChangeFragment, CreateFragment, DeleteFragment, OpenFragment
from hubweir.broker.commands.process import Refusal
from hubweir.errors import NOT_FOUND, STORE_OFFLINE, ServiceError
from hubweir.gateway.amqp.tests.world import World
from hubweir.gateway.entity_logs import fragment_settings
from hubweir.namespace.delivery_settings import DeliverySettings
from hubweir.namespace.entity import EntityDescription
from hubweir.namespace.iso_duration import written_duration
from hubweir.namespace.messaging_changes import replace_settings
from hubweir.namespace.messaging_description import MessagingDescription
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.subscription_description import SubscriptionDescription
from hubweir.namespace.topic_description import TopicDescription

SUBSCRIPTION = SubscriptionDescription("topic/Subscriptions/sub")


@pytest.fixture
def world() -> World:
    return World()


def begin(world: World, description: EntityDescription) -> list[Any]:
    """Begin to create an entity; the list holds the answer once it came."""
    answers: list[Any] = []
    world.gateway.keeper.create(description, answers.append)
    return answers


def test_a_queue_has_one_fragment_from_its_making_to_its_end(world: World) -> None:
    made = world.create(QueueDescription("orders", DeliverySettings(lock_duration=written_duration("PT13S"))))
    (entity,) = world.namespace.entities(QueueDescription)
    (placement,) = entity.placements
    settings = fragment_settings(made)
    assert settings.lock_duration_ms == 13_000
    assert world.gate.sent(CreateFragment) == [
        CreateFragment(placement.log_id, "orders", settings, world.namespace.description.name, 0)
    ]
    wanted = QueueDescription("orders", DeliverySettings(max_delivery_count=3))
    change = partial(replace_settings, wanted=wanted)
    changed = world.wait(partial(world.gateway.keeper.change, "orders", QueueDescription, change))
    assert world.gate.sent(ChangeFragment) == [ChangeFragment(placement.log_id, fragment_settings(changed))]
    world.wait(partial(world.gateway.keeper.delete, "orders", QueueDescription))
    assert world.gate.sent(DeleteFragment) == [DeleteFragment(placement.log_id)]
    assert world.namespace.entities(QueueDescription) == () and placement.log_id not in world.store.log_ids()


def test_a_fragment_that_a_broker_refuses_leaves_no_queue(world: World) -> None:
    world.gate.refuse[CreateFragment] = Refusal(STORE_OFFLINE, "the disk is full")
    answers = begin(world, QueueDescription("orders"))
    world.run_for(500)
    assert isinstance(answers[0], ServiceError) and answers[0].condition is STORE_OFFLINE
    assert world.namespace.find_any("orders") is None and world.namespace.unfinished() == ()
    del world.gate.refuse[CreateFragment]
    assert isinstance(world.create(QueueDescription("orders")), QueueDescription)


@pytest.mark.parametrize("power_cut", [False, True])
@pytest.mark.parametrize("after_ms", range(0, 100, 10))
def test_a_crash_at_any_time_leaves_a_whole_queue_or_none(world: World, after_ms: int, power_cut: bool) -> None:
    begin(world, QueueDescription("orders"))
    world.run_for(after_ms)
    answered = world.namespace.find_any("orders") is not None
    world.env.crash(power_cut=power_cut)
    again = World(env=world.env.restart())
    assert again.problems == []
    again.run_for(500)
    found = again.namespace.entities(QueueDescription)
    assert again.namespace.unfinished() == () and (found or not answered)
    told = again.gate.sent(CreateFragment)  # with OpenFragment, which is one
    assert len(told) == len(found)
    assert isinstance(told[0], OpenFragment) if answered else True, "what is made is opened, and never made anew"


def test_a_subscription_needs_no_broker_and_goes_with_its_topic(world: World) -> None:
    world.create(TopicDescription("topic"))
    world.gate.commands.clear()
    assert isinstance(world.create(SUBSCRIPTION), SubscriptionDescription)
    assert world.gate.commands == []
    world.wait(partial(world.gateway.keeper.delete, "TOPIC", TopicDescription))
    assert world.namespace.entities(MessagingDescription) == () and world.namespace.unfinished() == ()


def test_a_subscription_is_gone_as_soon_as_its_topic_goes(world: World) -> None:
    world.create(TopicDescription("topic"))
    world.create(SUBSCRIPTION)
    world.gate.hold[DeleteFragment] = []
    answers: list[Any] = []
    world.gateway.keeper.delete("topic", TopicDescription, answers.append)
    world.run_for(200)
    assert answers == [] and world.namespace.entities(MessagingDescription) == ()
    late = world.wait(partial(world.gateway.keeper.create, SubscriptionDescription("topic/Subscriptions/late")))
    assert isinstance(late, ServiceError) and late.condition is NOT_FOUND
    world.gate.release(DeleteFragment)
    world.run_for(200)
    assert isinstance(answers[0], TopicDescription) and world.namespace.unfinished() == ()


def test_a_topic_that_goes_while_its_subscription_is_made_takes_it_along(world: World) -> None:
    """Both are asked for in one turn; the subscription's commit comes when the topic is going, or gone."""
    world.create(TopicDescription("topic"))
    made, gone = begin(world, SUBSCRIPTION), []
    world.gateway.keeper.delete("topic", TopicDescription, gone.append)
    world.run_for(500)
    assert isinstance(gone[0], TopicDescription) and len(made) == 1
    assert world.namespace.entities(MessagingDescription) == () and world.namespace.unfinished() == ()
    world.create(TopicDescription("topic"))
    assert world.namespace.subscriptions("topic") == ()
