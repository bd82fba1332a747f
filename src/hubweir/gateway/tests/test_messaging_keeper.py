"""Queues, topics and subscriptions are made, changed and removed with their fragments, whatever interrupts it."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from hubweir.broker.commands.fragment import (
    AskFragmentInfo,
    ChangeFragment,
    CreateFragment,
    DeleteFragment,
    FragmentInfo,
    OpenFragment,
)
from hubweir.broker.commands.partition import OpenPartition
from hubweir.broker.commands.process import Refusal
from hubweir.broker.commands.topic import (
    OpenTopic,
    PutSubscription,
    PutSubscriptionRules,
    RemoveSubscription,
    RemoveSubscriptionRule,
)
from hubweir.broker.rule_forms import encode_rules, read_rules
from hubweir.errors import NOT_FOUND, STORE_OFFLINE, ServiceError
from hubweir.gateway.amqp.tests.world import World
from hubweir.gateway.entity_logs import fragment_settings, topic_subscription
from hubweir.gateway.settings import GatewaySettings
from hubweir.namespace.delivery_settings import DeliverySettings
from hubweir.namespace.entity import EntityDescription
from hubweir.namespace.iso_duration import written_duration
from hubweir.namespace.messaging_changes import replace_settings
from hubweir.namespace.messaging_description import MessagingDescription
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.storage_settings import StorageSettings
from hubweir.namespace.subscription_description import SubscriptionDescription
from hubweir.namespace.subscription_rule import SqlFilterDescription, SubscriptionRuleDescription
from hubweir.namespace.tiers import PROFILES
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
    settings = fragment_settings(made, world.namespace)
    assert settings.lock_duration_ms == 13_000
    assert world.gate.sent(CreateFragment) == [
        CreateFragment(placement.log_id, "orders", settings, world.namespace.description.name, 0)
    ]
    wanted = QueueDescription("orders", DeliverySettings(max_delivery_count=3))
    change = partial(replace_settings, wanted=wanted)
    changed = world.wait(partial(world.gateway.keeper.change, "orders", QueueDescription, change))
    assert world.gate.sent(ChangeFragment) == [
        ChangeFragment(placement.log_id, fragment_settings(changed, world.namespace))
    ]
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


def test_a_subscription_is_put_into_its_topic_s_log_and_goes_with_it(world: World) -> None:
    world.create(TopicDescription("topic"))
    (topic,) = world.namespace.entities(TopicDescription)
    assert isinstance(world.create(SUBSCRIPTION), SubscriptionDescription)
    (entity,) = world.namespace.subscriptions("topic")
    log_id, said = topic.placements[0].log_id, topic_subscription(entity, world.namespace)
    assert world.gate.sent(PutSubscription) == [PutSubscription(log_id, said)]
    wanted = SubscriptionDescription(SUBSCRIPTION.name, DeliverySettings(max_delivery_count=3))
    world.wait(
        partial(
            world.gateway.keeper.change,
            SUBSCRIPTION.name,
            SubscriptionDescription,
            partial(replace_settings, wanted=wanted),
        )
    )
    assert world.gate.sent(PutSubscription)[1].subscription.settings.max_delivery_count == 3
    world.wait(partial(world.gateway.keeper.delete, SUBSCRIPTION.name, SubscriptionDescription))
    assert world.gate.sent(RemoveSubscription) == [RemoveSubscription(log_id, entity.entity_id)]
    world.create(SUBSCRIPTION)
    world.wait(partial(world.gateway.keeper.delete, "TOPIC", TopicDescription))
    assert world.namespace.entities(MessagingDescription) == () and world.namespace.unfinished() == ()
    assert len(world.gate.sent(RemoveSubscription)) == 1, "the topic's log goes as a whole"


def test_a_topic_is_opened_with_its_subscriptions_and_all_their_rules(world: World) -> None:
    world.create(TopicDescription("topic"))
    world.create(SUBSCRIPTION)
    rule = SubscriptionRuleDescription("red", SqlFilterDescription("color = 'red'"))
    world.wait(partial(world.gateway.subscription_rules.create, SUBSCRIPTION.name, rule))
    (entity,) = world.namespace.subscriptions("topic")
    said = topic_subscription(entity, world.namespace)
    world.env.crash(power_cut=True)
    again = World(env=world.env.restart())
    assert again.problems == []
    (told,) = again.gate.sent(OpenTopic)
    assert type(told) is OpenTopic and told.subscriptions == (said,)
    assert [rule.name for rule in read_rules(said.rules)] == ["$Default", "red"]


def test_rules_are_told_to_the_topic_and_told_again_when_it_does_not_take_them(world: World) -> None:
    world.create(TopicDescription("topic"))
    world.create(SUBSCRIPTION)
    (entity,) = world.namespace.subscriptions("topic")
    rule = SubscriptionRuleDescription("red", SqlFilterDescription("color = 'red'"))
    kept = world.wait(partial(world.gateway.subscription_rules.create, SUBSCRIPTION.name, rule))
    (told,) = world.gate.sent(PutSubscriptionRules)
    assert told.subscription_id == entity.entity_id and told.rules == encode_rules([kept])
    world.wait(partial(world.gateway.subscription_rules.delete, SUBSCRIPTION.name, "RED"))
    assert [each.name for each in world.gate.sent(RemoveSubscriptionRule)] == ["RED"]
    world.gate.refuse[RemoveSubscriptionRule] = Refusal(STORE_OFFLINE, "the disk is full")
    refused = world.wait(partial(world.gateway.subscription_rules.delete, SUBSCRIPTION.name, "$Default"))
    assert isinstance(refused, ServiceError) and "the service goes on with it" in refused.text
    before = len(world.gate.sent(PutSubscription))
    world.run_for(2_000)
    again = world.gate.sent(PutSubscription)
    assert len(again) == before + 1 and read_rules(again[-1].subscription.rules) == ()


def test_a_creation_of_a_subscription_that_a_crash_cut_off_is_carried_on_when_its_topic_is_open(world: World) -> None:
    world.create(TopicDescription("topic"))
    world.gate.hold[PutSubscription] = []
    begin(world, SUBSCRIPTION)
    world.run_for(200)
    assert world.namespace.unfinished()
    world.env.crash(power_cut=True)
    again = World(env=world.env.restart())
    again.run_for(500)
    assert again.problems == [] and again.namespace.unfinished() == ()
    (entity,) = again.namespace.subscriptions("topic")
    assert [each.subscription.subscription_id for each in again.gate.sent(PutSubscription)] == [entity.entity_id]


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


PARTITIONED = StorageSettings(is_partitioned=True)


@pytest.fixture
def stores() -> World:
    """A world of three stores."""
    return World(stores=3)


def test_a_partitioned_queue_has_sixteen_fragments_over_all_stores(stores: World) -> None:
    stores.create(QueueDescription("orders", storage=PARTITIONED))
    (entity,) = stores.namespace.entities(QueueDescription)
    assert len(entity.placements) == 16 and {each.store_index for each in entity.placements} == {0, 1, 2}
    for number, (gate, store) in enumerate(zip(stores.gates, stores.stores, strict=True)):
        mine = [at for at, each in enumerate(entity.placements) if each.store_index == number]
        assert [told.fragment_number for told in gate.sent(CreateFragment)] == mine
        assert set(store.log_ids()) >= {entity.placements[at].log_id for at in mine}
    stores.wait(partial(stores.gateway.keeper.delete, "orders", QueueDescription))
    left = {log_id for store in stores.stores for log_id in store.log_ids()}
    assert not left & {each.log_id for each in entity.placements} and stores.namespace.unfinished() == ()


def test_a_subscription_of_a_partitioned_topic_has_a_fragment_in_each_log_of_it(stores: World) -> None:
    stores.create(TopicDescription("topic", PARTITIONED))
    stores.create(SUBSCRIPTION)
    (topic,), (entity,) = stores.namespace.entities(TopicDescription), stores.namespace.subscriptions("topic")
    fragments = stores.gateway.directory.fragments(entity)
    assert [each.log_id for each in fragments.places] == [f"{entity.entity_id}-{number}" for number in range(16)]
    assert [each.stored_in for each in fragments.places] == [each.log_id for each in topic.placements]
    assert [each.number for each in fragments.places] == list(range(16))
    for place in fragments.places:
        answer = stores.wait(partial(place.broker.submit, AskFragmentInfo(place.log_id)))
        assert isinstance(answer, FragmentInfo), "its own broker has it"
    rule = SubscriptionRuleDescription("red", SqlFilterDescription("color = 'red'"))
    stores.wait(partial(stores.gateway.subscription_rules.create, SUBSCRIPTION.name, rule))
    stores.wait(partial(stores.gateway.subscription_rules.delete, SUBSCRIPTION.name, "RED"))
    told = [each for gate in stores.gates for each in gate.sent(PutSubscriptionRules)]
    gone = [each for gate in stores.gates for each in gate.sent(RemoveSubscriptionRule)]
    ids = {each.log_id for each in fragments.places}
    assert {each.subscription_id for each in told} == {each.subscription_id for each in gone} == ids
    stores.env.crash(power_cut=True)
    again = World(env=stores.env.restart(), stores=3)
    opened = sorted(
        (each for gate in again.gates for each in gate.sent(OpenTopic)), key=lambda each: each.fragment_number
    )
    assert [[said.subscription_id for said in each.subscriptions] for each in opened] == [
        [f"{entity.entity_id}-{number}"] for number in range(16)
    ]
    again.wait(partial(again.gateway.keeper.delete, SUBSCRIPTION.name, SubscriptionDescription))
    for place in fragments.places:
        assert isinstance(again.ask(AskFragmentInfo(place.log_id)), Refusal)


def test_a_premium_entity_is_partitioned_whatever_was_asked_for() -> None:
    world = World(settings=GatewaySettings(profile=PROFILES["premium"]), stores=2)
    made = world.create(QueueDescription("orders"))
    (entity,) = world.namespace.entities(QueueDescription)
    assert made.storage.is_partitioned and {each.store_index for each in entity.placements} == {0, 1}
    change = partial(replace_settings, wanted=QueueDescription("orders"))
    refused = world.wait(partial(world.gateway.keeper.change, "orders", QueueDescription, change))
    assert isinstance(refused, ServiceError) and "Partitioning cannot be changed" in refused.text
    (entity,) = world.namespace.entities(QueueDescription)
    assert entity.description == made


def test_what_is_made_while_a_store_is_away_goes_to_the_others(stores: World) -> None:
    stores.gates[1].is_up = False
    for name in ("a", "b", "c"):
        stores.create(QueueDescription(name))
    entities = stores.namespace.entities(QueueDescription)
    assert {each.store_index for entity in entities for each in entity.placements} == {0, 2} and len(entities) == 3
    for gate in stores.gates:
        gate.is_up = False
    refused = stores.create(QueueDescription("later"))
    assert isinstance(refused, ServiceError) and "the broker is away" in refused.text
    for gate in stores.gates:
        gate.is_up = True
    stores.run_for(5_000)
    for name in ("later", "d", "e"):
        assert isinstance(stores.create(QueueDescription(name)), QueueDescription)
    later = [stores.namespace.get(name, QueueDescription) for name in ("later", "d", "e")]
    assert {each.store_index for entity in later for each in entity.placements} == {0, 1, 2}


def test_the_logs_of_a_store_that_comes_back_are_opened_and_no_others(stores: World) -> None:
    stores.create(QueueDescription("orders", storage=PARTITIONED))
    stores.create(TopicDescription("topic", PARTITIONED))
    begun = [len(gate.commands) for gate in stores.gates]
    assert stores.wait(partial(stores.gateway.keeper.open_stores, (1,))) == []
    opened: list[list[Any]] = [gate.commands[first:] for gate, first in zip(stores.gates, begun, strict=True)]
    assert opened[0] == opened[2] == []
    placed = [
        each.log_id
        for entity in stores.namespace.entities(EntityDescription)
        for each in entity.placements
        if each.store_index == 1
    ]
    assert sorted(command.log_id for command in opened[1]) == sorted(placed)
    assert {type(command) for command in opened[1]} == {OpenFragment, OpenPartition, OpenTopic}
    stores.gates[1].refuse[OpenFragment] = Refusal(STORE_OFFLINE, "the disk is gone")
    (problem, *_) = stores.wait(partial(stores.gateway.keeper.open_stores, (1,)))
    assert problem.condition is STORE_OFFLINE
