"""Partitioned queues and topics are made and removed wholly, whatever interrupts it at any of their stores."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from hubweir.broker.commands.fragment import AskFragmentInfo, CreateFragment, DeleteFragment, FragmentInfo
from hubweir.broker.commands.process import Refusal
from hubweir.broker.commands.topic import PutSubscription, RemoveSubscription
from hubweir.errors import STORE_OFFLINE, ServiceError
from hubweir.gateway.amqp.tests.world import World
from hubweir.gateway.settings import GatewaySettings
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.storage_settings import StorageSettings
from hubweir.namespace.subscription_description import SubscriptionDescription
from hubweir.namespace.tiers import PROFILES
from hubweir.namespace.topic_description import TopicDescription

STORES, FRAGMENTS = 3, 16
PARTITIONED = StorageSettings(is_partitioned=True)
ORDERS = QueueDescription("orders", storage=PARTITIONED)


@pytest.fixture
def world() -> World:
    return World(stores=STORES)


def log_ids(world: World) -> set[str]:
    return {log_id for store in world.stores for log_id in store.log_ids()}


def answers(world: World, name: str = "orders") -> list[Any]:
    """What each fragment of a queue says at its broker."""
    places = world.gateway.directory.fragments(world.namespace.get(name, QueueDescription)).places
    return [world.wait(partial(place.broker.submit, AskFragmentInfo(place.log_id))) for place in places]


@pytest.mark.parametrize("power_cut", [False, True])
@pytest.mark.parametrize("after_ms", range(0, 60, 6))
def test_a_crash_at_any_time_leaves_all_fragments_or_none(world: World, after_ms: int, power_cut: bool) -> None:
    told: list[Any] = []
    before = log_ids(world)
    world.gateway.keeper.create(ORDERS, told.append)
    world.run_for(after_ms)
    world.env.crash(power_cut=power_cut)
    again = World(env=world.env.restart(), stores=STORES)
    assert again.problems == []
    again.run_for(500)
    found = again.namespace.entities(QueueDescription)
    assert again.namespace.unfinished() == () and (found or not told)
    if found:
        assert len(answers(again)) == FRAGMENTS
        assert all(isinstance(answer, FragmentInfo) for answer in answers(again))
    else:
        assert log_ids(again) == before


@pytest.mark.parametrize("after_ms", range(0, 60, 6))
def test_a_deletion_that_a_crash_interrupts_is_carried_on(world: World, after_ms: int) -> None:
    before = log_ids(world)
    world.create(ORDERS)
    world.gateway.keeper.delete("orders", QueueDescription, lambda _: None)
    world.run_for(after_ms)
    world.env.crash(power_cut=True)
    again = World(env=world.env.restart(), stores=STORES)
    again.run_for(2_000)
    assert again.namespace.unfinished() == ()
    if not again.namespace.entities(QueueDescription):
        assert log_ids(again) == before
    else:
        assert all(isinstance(answer, FragmentInfo) for answer in answers(again)), "it never began"


def test_a_fragment_that_one_broker_refuses_to_make_leaves_none_of_the_others(world: World) -> None:
    before = log_ids(world)
    world.gates[1].refuse[CreateFragment] = Refusal(STORE_OFFLINE, "the disk is full")
    refused = world.create(ORDERS)
    assert isinstance(refused, ServiceError) and "the disk is full" in refused.text
    assert log_ids(world) == before and world.namespace.unfinished() == ()
    del world.gates[1].refuse[CreateFragment]
    assert isinstance(world.create(ORDERS), QueueDescription)


@pytest.mark.parametrize("is_premium", [False, True])
def test_nothing_of_it_is_made_while_a_store_that_it_would_lie_on_is_away(is_premium: bool) -> None:
    profile = PROFILES["premium" if is_premium else "standard"]
    stores = 2 if is_premium else STORES
    world = World(stores=stores, settings=GatewaySettings(profile=profile))
    before = log_ids(world)
    world.gates[1].is_up = False
    for new in (ORDERS, TopicDescription("news", PARTITIONED)):
        refused = world.create(new)
        assert isinstance(refused, ServiceError) and refused.condition is STORE_OFFLINE
        assert "was not created" in refused.text and "are away: store-1." in refused.text
        assert ("without partitioning" in refused.text) is not is_premium
    assert log_ids(world) == before and world.namespace.unfinished() == ()
    assert not [command for gate in world.gates for command in gate.sent(CreateFragment)]
    assert isinstance(world.create(EventHubDescription("hub-2", 4)), EventHubDescription)
    if not is_premium:
        assert isinstance(world.create(QueueDescription("plain")), QueueDescription)
    world.gates[1].is_up = True
    assert isinstance(world.create(ORDERS), QueueDescription)
    placements = world.namespace.get("orders", QueueDescription).placements
    assert {each.store_index for each in placements} == set(range(stores))


def test_two_fragments_go_past_the_store_of_three_that_is_away() -> None:
    world = World(stores=STORES, settings=GatewaySettings(profile=PROFILES["premium"]))
    world.gates[1].is_up = False
    assert isinstance(world.create(ORDERS), QueueDescription)
    placements = world.namespace.get("orders", QueueDescription).placements
    assert {each.store_index for each in placements} == {0, 2}


def test_what_one_broker_does_not_remove_now_goes_later_and_the_name_is_free_then(world: World) -> None:
    before = log_ids(world)
    world.create(ORDERS)
    world.gates[2].refuse[DeleteFragment] = Refusal(STORE_OFFLINE, "away")
    refused = world.wait(partial(world.gateway.keeper.delete, "orders", QueueDescription))
    assert isinstance(refused, ServiceError) and "not all of it is removed yet" in refused.text
    assert world.namespace.find_any("orders") is None
    assert isinstance(world.create(ORDERS), ServiceError), "the name is not free yet"
    del world.gates[2].refuse[DeleteFragment]
    world.run_for(35_000)
    assert log_ids(world) == before and world.namespace.unfinished() == ()
    assert isinstance(world.create(ORDERS), QueueDescription)


def test_a_subscription_that_one_broker_refuses_is_taken_back_everywhere(world: World) -> None:
    world.create(TopicDescription("news", PARTITIONED))
    world.gates[0].refuse[PutSubscription] = Refusal(STORE_OFFLINE, "away")
    before = log_ids(world)
    refused = world.create(SubscriptionDescription("news/Subscriptions/all"))
    assert isinstance(refused, ServiceError) and world.namespace.subscriptions("news") == ()
    assert log_ids(world) == before and all(gate.sent(RemoveSubscription) for gate in world.gates[1:])
    del world.gates[0].refuse[PutSubscription]
    world.run_for(5_000)
    world.create(SubscriptionDescription("news/Subscriptions/all"))
    (entity,) = world.namespace.subscriptions("news")
    for place in world.gateway.directory.fragments(entity).places:
        assert isinstance(world.wait(partial(place.broker.submit, AskFragmentInfo(place.log_id))), FragmentInfo)
