"""Hubs are made and removed whole, whatever interrupts it."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from hubweir.broker.commands.fragment import OpenFragment
from hubweir.broker.commands.partition import (
    AskPartitionInfo,
    ChangePartition,
    CreatePartition,
    DeletePartition,
    OpenPartition,
)
from hubweir.broker.commands.process import Refusal
from hubweir.errors import ENTITY_EXISTS, NOT_FOUND, STORE_OFFLINE, ServiceError
from hubweir.gateway import catalog_keeper
from hubweir.gateway.amqp.tests.world import World, event
from hubweir.gateway.catalog_keeper import CatalogKeeper
from hubweir.messaging_store.log import Durability
from hubweir.namespace.capture_description import CaptureDescription
from hubweir.namespace.entity import EntityDescription
from hubweir.namespace.event_hub_changes import add_group, revoke_publisher, set_settings
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.queue_description import QueueDescription

LOCAL = CaptureDescription(enabled=False, interval_s=60)


def create(world: World, name: str, count: int) -> list[object]:
    """Begin to create a hub; the list holds the answer once it came."""
    answers: list[object] = []
    world.gateway.keeper.create(EventHubDescription(name, count), answers.append)
    return answers


def test_a_hub_is_served_only_when_all_its_partitions_are_made() -> None:
    world = World()
    world.gate.hold[CreatePartition] = []
    answers = create(world, "fresh", 3)
    world.run_for(1_000)
    assert answers == []
    assert world.namespace.find("fresh", EventHubDescription) is None
    world.gate.release(CreatePartition)
    world.run_for(200)
    assert isinstance(answers[0], EventHubDescription)
    assert world.namespace.find("fresh", EventHubDescription) is not None


def test_a_creation_that_a_broker_refuses_leaves_nothing_and_frees_the_name() -> None:
    world = World()
    before = world.store.log_ids()
    world.gate.refuse[CreatePartition] = Refusal(STORE_OFFLINE, "the disk is full")
    answers = create(world, "fresh", 3)
    world.run_for(500)
    assert isinstance(answers[0], ServiceError)
    assert answers[0].condition.symbol == "com.microsoft:store-offline"
    assert world.store.log_ids() == before
    del world.gate.refuse[CreatePartition]
    assert isinstance(world.create_hub("fresh", 3), EventHubDescription)


def test_a_creation_that_meets_another_one_is_refused_when_that_one_is_made() -> None:
    """So whoever hears that there is a hub already finds it. Held are the logs, then a copy in another process."""
    world = World()
    keeper = world.gateway.keeper
    assert isinstance(keeper, CatalogKeeper)
    followers = keeper.followers
    world.gate.hold[CreatePartition] = []
    followers.came(7, world.namespace.version, lambda version, _: None, lambda: None)
    followers.applied(7, world.namespace.version)
    order: list[tuple[str, object]] = []
    for name in ("fresh", "FRESH"):
        keeper.create(EventHubDescription(name, 2), lambda answer, name=name: order.append((name, answer)))
    world.run_for(200)
    followers.applied(7, world.namespace.version)
    world.run_for(200)
    assert order == []
    world.gate.release(CreatePartition)
    world.run_for(200)
    assert order == [] and world.namespace.find("fresh", EventHubDescription) is not None, "the copy has it not yet"
    followers.applied(7, world.namespace.version)
    world.run_for(0)
    (first, made), (second, refused) = order
    assert (first, second) == ("fresh", "FRESH") and isinstance(made, EventHubDescription)
    assert isinstance(refused, ServiceError) and refused.condition is ENTITY_EXISTS


def test_a_creation_that_meets_one_that_is_taken_back_is_refused_when_the_name_is_free() -> None:
    world = World()
    world.gate.refuse[CreatePartition] = Refusal(STORE_OFFLINE, "the disk is full")
    world.gate.hold[DeletePartition] = []
    first, second = create(world, "fresh", 1), create(world, "fresh", 1)
    world.run_for(200)
    del world.gate.refuse[CreatePartition]
    assert first == second == []
    world.gate.release(DeletePartition)
    world.run_for(200)
    assert isinstance(second[0], ServiceError) and second[0].condition is ENTITY_EXISTS
    assert isinstance(world.create_hub("fresh", 1), EventHubDescription)


def test_a_creation_that_meets_a_deletion_is_refused_when_the_name_is_free() -> None:
    world = World(hubs={"doomed": 1, "other": 1})
    world.gate.hold[DeletePartition] = []
    world.gateway.keeper.delete("doomed", EventHubDescription, lambda _: None)
    answers, of_another = create(world, "DOOMED", 1), create(world, "other", 1)
    world.run_for(200)
    assert answers == []
    assert isinstance(of_another[0], ServiceError), "nothing is done with the entity of that name"
    world.gate.release(DeletePartition)
    world.run_for(200)
    assert isinstance(answers[0], ServiceError) and answers[0].condition is ENTITY_EXISTS
    assert isinstance(world.create_hub("doomed", 1), EventHubDescription)


def test_a_creation_hears_at_once_of_a_deletion_that_cannot_go_on_now() -> None:
    world = World(hubs={"doomed": 1})
    world.gate.refuse[DeletePartition] = Refusal(STORE_OFFLINE, "the disk is sick")
    world.gateway.keeper.delete("doomed", EventHubDescription, lambda _: None)
    world.run_for(200)
    answers = create(world, "doomed", 1)
    world.run_for(200)
    assert isinstance(answers[0], ServiceError) and "is being deleted" in answers[0].text


@pytest.mark.parametrize("power_cut", [False, True])
@pytest.mark.parametrize("after_ms", range(0, 200, 10))
def test_a_crash_at_any_time_of_a_creation_leaves_a_whole_hub_or_none(after_ms: int, power_cut: bool) -> None:
    world = World(hubs={"kept": 2})
    create(world, "fresh", 3)
    world.run_for(after_ms)
    answered = world.namespace.find("fresh", EventHubDescription) is not None
    world.env.crash(power_cut=power_cut)
    again = World(env=world.env.restart())
    assert again.problems == []
    again.run_for(500)
    assert again.namespace.unfinished() == ()
    entry = again.namespace.find("fresh", EventHubDescription)
    assert entry is not None or not answered  # what was answered is there
    hubs = again.namespace.entities(EventHubDescription)
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
    world.gateway.keeper.delete("doomed", EventHubDescription, answers.append)
    world.run_for(after_ms)
    begun = world.namespace.find("doomed", EventHubDescription) is None
    world.env.crash()
    again = World(env=world.env.restart())
    again.run_for(500)
    assert again.namespace.unfinished() == ()
    if begun:
        assert again.namespace.find("doomed", EventHubDescription) is None
    hubs = again.namespace.entities(EventHubDescription)
    assert len(again.store.log_ids()) == sum(hub.description.partition_count for hub in hubs)
    assert again.namespace.find("kept", EventHubDescription) is not None


def test_a_partition_whose_log_is_lost_is_not_made_anew_and_the_others_are_served() -> None:
    world = World(hubs={"hub": 2})
    peer = world.trusted_peer()
    for partition in "01":
        link = peer.sender(f"hub/Partitions/{partition}")
        link.send(event(b"x"), settled=False)
        peer.run(200)
    lost, kept = (placement.log_id for placement in world.namespace.get("hub", EventHubDescription).placements)
    world.env.crash()
    env = world.env.restart()
    env.files.remove_folder(f"store-0/logs/{lost}")
    env.files.sync_folder("store-0/logs")
    again = World(env=env)
    (problem,) = again.problems
    assert problem.condition is STORE_OFFLINE and lost in problem.text and "lost" in problem.text
    assert not env.files.exists(f"store-0/logs/{lost}")
    assert again.ask(AskPartitionInfo(kept)).last_sequence_number == 0
    assert isinstance(again.ask(AskPartitionInfo(lost)), Refusal)
    answers: list[object] = []
    again.gateway.keeper.delete("hub", EventHubDescription, answers.append)
    again.run_for(1_000)
    assert not isinstance(answers[0], ServiceError) and again.store.log_ids() == []


def test_a_hub_that_is_being_deleted_takes_no_more_events() -> None:
    world = World()
    peer = world.trusted_peer()
    world.gate.hold[DeletePartition] = []
    world.gateway.keeper.delete("hub", EventHubDescription, lambda _: None)
    world.run_for(200)
    assert peer.refusal(peer.sender("hub")).condition == "amqp:not-found"


def test_a_change_reaches_the_catalog_and_the_partitions() -> None:
    world = World()
    hub = world.gateway.management.hub("hub")
    wanted = EventHubDescription("hub", hub.partition_count, retention_ms=7_200_000, durability=Durability.RELAXED)
    changed = world.wait(
        lambda done: world.gateway.keeper.change(
            wanted.name, EventHubDescription, partial(set_settings, wanted=wanted), done
        )
    )
    assert (changed.retention_ms, changed.durability) == (7_200_000, Durability.RELAXED)
    hosted = list(world.broker._residents)
    assert {(each.retention_ms, each.log.durability) for each in hosted} == {(7_200_000, Durability.RELAXED)}
    peer = world.trusted_peer()
    link = peer.sender("hub")
    link.send(event(b"x"), settled=False)
    peer.run(200)
    assert [text for _, _, text in peer.outcomes(link)] == ["accepted"]


def change(world: World, its: Any) -> Any:
    return world.wait(lambda done: world.gateway.keeper.change("hub", EventHubDescription, its, done))


def test_brokers_are_told_of_a_change_that_concerns_them_and_of_no_other() -> None:
    world = World(hubs={"hub": 2})
    hub = world.gateway.management.hub("hub")
    world.run_for(1)
    for its in (partial(add_group, name="g"), partial(revoke_publisher, publisher="p")):
        assert isinstance(change(world, its), EventHubDescription)
    assert world.gate.sent(ChangePartition) == []
    for settings in ({"retention_ms": 7_200_000}, {"durability": Durability.RELAXED}, {"capture": LOCAL}, {}):
        hub = change(world, partial(set_settings, wanted=replace(hub, **settings)))
        told = world.gate.sent(ChangePartition)
        assert len(told) == 2, settings
        assert {(each.retention_ms, each.durability, each.capture) for each in told} == {
            (hub.retention_ms, hub.durability, hub.capture)
        }
        world.gate.commands.clear()
        world.run_for(1)


def test_settings_that_a_broker_did_not_take_are_told_with_the_next_change_whatever_it_is() -> None:
    world = World(hubs={"hub": 2})
    hub = world.gateway.management.hub("hub")
    world.gate.refuse[ChangePartition] = Refusal(STORE_OFFLINE, "sick")
    assert isinstance(change(world, partial(set_settings, wanted=replace(hub, retention_ms=7_200_000))), ServiceError)
    del world.gate.refuse[ChangePartition]
    assert isinstance(change(world, partial(add_group, name="g")), EventHubDescription)
    assert {hosted.retention_ms for hosted in world.broker._residents} == {7_200_000}


def test_an_entity_without_logs_is_made_and_removed_by_the_catalog_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    class NoLogs:
        def __getattr__(self, name: str) -> Any:
            return lambda *namespace: []

    world = World()
    monkeypatch.setattr(catalog_keeper, "logs_of", lambda entity, namespace: NoLogs())
    world.gate.commands.clear()
    assert isinstance(world.create_hub("bare", 1), EventHubDescription)
    gone = world.wait(partial(world.gateway.keeper.delete, "bare", EventHubDescription))
    assert gone.name == "bare" and world.namespace.unfinished() == () and world.gate.commands == []


def test_what_is_no_event_hub_is_neither_changed_nor_deleted_as_one() -> None:
    class Other(EntityDescription, frozen=True):
        pass

    world = World()
    for answer in (
        world.wait(partial(world.gateway.keeper.delete, "hub", Other)),
        world.wait(partial(world.gateway.keeper.change, "hub", Other, lambda known, context: known)),
    ):
        assert isinstance(answer, ServiceError) and answer.condition is NOT_FOUND
    assert world.namespace.find("hub", EventHubDescription) is not None


def test_a_broker_that_came_back_is_told_to_open_the_logs_of_its_stores_and_no_others() -> None:
    world = World(hubs={"a": 2, "b": 1})
    assert isinstance(world.create(QueueDescription("q")), QueueDescription)
    placed = [place.log_id for entity in world.namespace.entities(EntityDescription) for place in entity.placements]
    world.gate.commands.clear()
    assert world.wait(partial(world.gateway.keeper.open_stores, {1, 2})) == []
    assert world.gate.commands == []
    assert world.wait(partial(world.gateway.keeper.open_stores, {0})) == []
    asked = [command.log_id for command in world.gate.commands if isinstance(command, OpenPartition | OpenFragment)]
    assert asked == placed
    assert len(placed) == len(world.gate.commands) == 4


def test_what_a_broker_that_came_back_cannot_open_is_told() -> None:
    world = World(hubs={"a": 2})
    world.gate.refuse[OpenPartition] = Refusal(STORE_OFFLINE, "its log is lost")
    problems = world.wait(partial(world.gateway.keeper.open_stores, {0}))
    assert [problem.text for problem in problems] == ["its log is lost"] * 2
