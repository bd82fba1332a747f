"""Hubs are made and removed whole, whatever interrupts it."""

from __future__ import annotations

import pytest

from hubweir.broker.commands import CreatePartition, DeletePartition, Refusal
from hubweir.errors import ServiceError
from hubweir.gateway.amqp.tests.world import World, event
from hubweir.messaging_store.log import Durability
from hubweir.namespace.descriptions import EventHubDescription


def create(world: World, name: str, count: int) -> list[object]:
    """Begin to create a hub; the list holds the answer once it came."""
    answers: list[object] = []
    world.gateway.management.create_hub(EventHubDescription(name, count), answers.append)
    return answers


def test_a_hub_is_served_only_when_all_its_partitions_are_made() -> None:
    world = World()
    world.gate.hold[CreatePartition] = []
    answers = create(world, "fresh", 3)
    world.run_for(1_000)
    assert answers == []
    assert world.namespace.find_hub("fresh") is None
    world.gate.release(CreatePartition)
    world.run_for(200)
    assert isinstance(answers[0], EventHubDescription)
    assert world.namespace.find_hub("fresh") is not None


def test_a_creation_that_a_broker_refuses_leaves_nothing_and_frees_the_name() -> None:
    world = World()
    before = world.store.log_ids()
    world.gate.refuse[CreatePartition] = Refusal("com.microsoft:store-offline", "the disk is full")
    answers = create(world, "fresh", 3)
    world.run_for(500)
    assert isinstance(answers[0], ServiceError)
    assert answers[0].condition.symbol == "com.microsoft:store-offline"
    assert world.store.log_ids() == before
    del world.gate.refuse[CreatePartition]
    assert isinstance(world.create_hub("fresh", 3), EventHubDescription)


@pytest.mark.parametrize("power_cut", [False, True])
@pytest.mark.parametrize("after_ms", range(0, 200, 10))
def test_a_crash_at_any_time_of_a_creation_leaves_a_whole_hub_or_none(after_ms: int, power_cut: bool) -> None:
    world = World(hubs={"kept": 2})
    create(world, "fresh", 3)
    world.run_for(after_ms)
    answered = world.namespace.find_hub("fresh") is not None
    world.env.crash(power_cut=power_cut)
    again = World(env=world.env.restart())
    assert again.problems == []
    again.run_for(500)
    assert again.namespace.unfinished() == ()
    entry = again.namespace.find_hub("fresh")
    assert entry is not None or not answered  # what was answered is there
    hubs = again.namespace.hubs()
    assert len(again.store.log_ids()) == sum(hub.description.partition_count for hub in hubs)
    peer = again.trusted_peer()
    if entry is not None:
        assert all(peer.is_attached(peer.sender(f"fresh/Partitions/{n}")) for n in range(3))
    else:
        assert peer.refusal(peer.sender("fresh")).condition == "amqp:not-found"


@pytest.mark.parametrize("after_ms", range(0, 200, 20))
def test_a_crash_at_any_time_of_a_deletion_is_carried_on(after_ms: int) -> None:
    world = World(hubs={"doomed": 3, "kept": 1})
    answers: list[object] = []
    world.gateway.management.delete_hub("doomed", answers.append)
    world.run_for(after_ms)
    begun = world.namespace.find_hub("doomed") is None
    world.env.crash()
    again = World(env=world.env.restart())
    again.run_for(500)
    assert again.namespace.unfinished() == ()
    if begun:
        assert again.namespace.find_hub("doomed") is None
    hubs = again.namespace.hubs()
    assert len(again.store.log_ids()) == sum(hub.description.partition_count for hub in hubs)
    assert again.namespace.find_hub("kept") is not None


def test_a_hub_that_is_being_deleted_takes_no_more_events() -> None:
    world = World()
    peer = world.trusted_peer()
    world.gate.hold[DeletePartition] = []
    world.gateway.management.delete_hub("hub", lambda _: None)
    world.run_for(200)
    assert peer.refusal(peer.sender("hub")).condition == "amqp:not-found"


def test_a_change_reaches_the_catalog_and_the_partitions() -> None:
    world = World()
    hub = world.gateway.management.hub("hub")
    wanted = EventHubDescription("hub", hub.partition_count, retention_ms=7_200_000, durability=Durability.RELAXED)
    changed = world.wait(lambda done: world.gateway.management.change_hub(wanted, done))
    assert (changed.retention_ms, changed.durability) == (7_200_000, Durability.RELAXED)
    hosted = list(world.broker._partitions)
    assert {(each.retention_ms, each.log.durability) for each in hosted} == {(7_200_000, Durability.RELAXED)}
    peer = world.trusted_peer()
    link = peer.sender("hub")
    link.send(event(b"x"), settled=False)
    peer.run(200)
    assert [text for _, _, text in peer.outcomes(link)] == ["accepted"]
