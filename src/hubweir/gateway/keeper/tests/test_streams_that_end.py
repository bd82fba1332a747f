"""Processes stall, die and come back, and so does their keeper: what waits, what goes on, and what is missed."""

from __future__ import annotations

from typing import Any

import pytest

from hubweir.errors import STORE_OFFLINE, TIMED_OUT
from hubweir.gateway.amqp.tests.world import event
from hubweir.gateway.keeper.client import CHANGE_LIMIT_MS
from hubweir.gateway.keeper.tests.keeper_world import NAMESPACE, Follower, KeeperWorld
from hubweir.gateway.keeper.tests.test_lent_units import Load, hold
from hubweir.namespace.catalog_followers import APPLY_LIMIT_MS
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.rights import Rights
from hubweir.throughput_unit.unit_lender import LEASE_MS


@pytest.fixture
def world() -> KeeperWorld:
    return KeeperWorld()


@pytest.fixture
def three(world: KeeperWorld) -> list[Follower]:
    return [world.follower(process) for process in (101, 202, 303)]


def hub(name: str) -> EventHubDescription:
    return EventHubDescription(name, 2)


def have(followers: list[Follower], name: str) -> list[bool]:
    return [follower.namespace.find_any(name) is not None for follower in followers]


def test_a_stalled_process_is_dead_in_time_its_stream_ended_and_it_follows_anew(
    world: KeeperWorld, three: list[Follower]
) -> None:
    answers: list[int] = []
    begun = world.env.monotonic_ms()
    three[1].stream.is_held = True
    world.gateway.keeper.create(hub("new"), lambda _: answers.append(world.env.monotonic_ms() - begun))
    world.run_for(APPLY_LIMIT_MS - 100)
    assert answers == [] and world.ended == []
    world.run_for(300)
    assert world.ended == [202] and len(answers) == 1 and answers[0] <= APPLY_LIMIT_MS + 100
    world.run_for(100)  # its stream came again
    assert have(three, "new") == [True, True, True] and three[1].client.is_following(NAMESPACE)
    answers.clear()
    begun = world.env.monotonic_ms()
    world.gateway.keeper.create(hub("newer"), lambda _: answers.append(world.env.monotonic_ms() - begun))
    world.run_for(300)
    assert answers and answers[0] < 200 and have(three, "newer") == [True, True, True]


def test_a_process_that_hears_and_does_not_answer_is_dead_too(world: KeeperWorld, three: list[Follower]) -> None:
    three[1].stream.is_deaf = True
    answers: list[Any] = []
    world.gateway.keeper.create(hub("new"), answers.append)
    world.run_for(APPLY_LIMIT_MS + 200)
    assert world.ended == [202] and len(answers) == 1


def test_changes_that_a_process_missed_while_its_stream_was_away_are_in_the_next_snapshot(
    world: KeeperWorld, three: list[Follower]
) -> None:
    peer = three[0].trusted_peer()
    gone = peer.sender("hub")
    world.create(hub("kept"))
    kept = peer.sender("kept")
    three[0].went()
    world.server.gone(101)  # nobody waits for it
    world.create(hub("new"))
    world.gateway.keeper.delete("hub", EventHubDescription, lambda _: None)
    world.set_rule("late", Rights.LISTEN)
    world.run_for(500)
    assert have(three, "new") == [False, True, True] and peer.is_attached(gone)
    three[0].came()
    world.run_for(100)
    assert have(three, "new") == [True, True, True]
    assert not peer.is_attached(gone) and peer.is_attached(kept)
    assert three[0].namespace.rule(None, "late").rights is Rights.LISTEN
    assert three[0].snapshot() == world.namespace._catalog.snapshot()


def test_a_change_waits_for_a_process_whose_stream_is_away_until_it_is_back(
    world: KeeperWorld, three: list[Follower]
) -> None:
    """It serves clients meanwhile, by what its copy says."""
    three[0].went()
    world.run_for(100)
    answers: list[list[bool]] = []
    world.gateway.keeper.create(hub("new"), lambda _: answers.append(have(three, "new")))
    world.run_for(500)
    assert answers == []
    three[0].came()
    world.run_for(100)
    assert answers == [[True, True, True]]


def test_while_the_keeper_is_away_data_flows_reads_go_on_and_changes_are_refused_as_known(
    world: KeeperWorld, three: list[Follower]
) -> None:
    follower = three[0]
    peer = follower.trusted_peer()
    sender = peer.sender("hub/Partitions/0")
    for each in three:
        each.went()
    world.run_for(10_000)
    sender.send(event(b"x"), settled=False)
    peer.run()
    assert [text for *_, text in peer.outcomes(sender)] == ["accepted"]
    assert peer.is_attached(peer.sender("hub"))
    answers: list[Any] = []
    keeper, rules = follower.gateway.keeper, follower.gateway.subscription_rules
    keeper.create(hub("new"), answers.append)
    keeper.delete("hub", EventHubDescription, answers.append)
    rules.delete("news/Subscriptions/tea", "morning", answers.append)
    follower.gateway.units.change(answers.append, held=1)
    assert [(each.condition, "nothing was changed" in each.text) for each in answers] == [(STORE_OFFLINE, True)] * 4
    assert STORE_OFFLINE.retriable
    for each in three:
        each.came()
    world.run_for(100)
    keeper.create(hub("new"), answers.append)
    world.run_for(200)
    assert answers[-1].name == "new"


def test_a_change_on_its_way_when_the_keeper_goes_is_unknown(world: KeeperWorld, three: list[Follower]) -> None:
    answers: list[Any] = []
    three[0].gateway.keeper.create(hub("new"), answers.append)
    world.run_for(0)
    three[0].went()
    (error,) = answers
    assert error.condition is TIMED_OUT and "unknown whether the change holds" in error.text
    world.run_for(APPLY_LIMIT_MS + 500)
    three[0].came()
    world.run_for(100)
    assert have(three, "new") == [True, True, True] and len(answers) == 1


def test_a_change_that_a_keeper_which_stalls_does_not_answer_is_unknown_after_a_while(
    world: KeeperWorld, three: list[Follower]
) -> None:
    answers: list[Any] = []
    three[0].stream.is_deaf = True
    three[0].gateway.keeper.create(hub("new"), answers.append)
    world.run_for(CHANGE_LIMIT_MS - 1)
    assert answers == []
    world.run_for(1)
    (error,) = answers
    assert error.condition is TIMED_OUT and "unknown whether the change holds" in error.text
    three[0].stream.release()
    world.run_for(100)
    assert have(three, "new") == [True, True, True] and len(answers) == 1
    three[0].gateway.keeper.create(hub("next"), answers.append)
    world.run_for(100)
    assert answers[-1].name == "next"
    world.run_for(CHANGE_LIMIT_MS)
    assert len(answers) == 2, "a change that was answered is not unknown later"


def test_a_process_that_left_is_forgotten_after_a_while(world: KeeperWorld, three: list[Follower]) -> None:
    three[0].went()
    world.run_for(APPLY_LIMIT_MS + 100)
    assert world.gateway.keeper.followers._followers.keys() == {202, 303}  # type: ignore[attr-defined]


def test_a_new_keeper_waits_for_processes_that_served_under_the_last_one(world: KeeperWorld) -> None:
    world.server.expect([101])
    answers: list[Any] = []
    world.gateway.keeper.create(hub("new"), answers.append)
    world.run_for(500)
    assert answers == []
    world.follower(101)
    world.run_for(100)
    assert len(answers) == 1


def test_no_log_is_said_to_be_gone_where_the_catalog_is_not_known_as_it_is(world: KeeperWorld) -> None:
    """Whoever asks drops what was prepared in a transaction with that log."""
    follower = world.follower(101)
    world.create(QueueDescription("orders"))
    (placement,) = world.namespace.get("orders", QueueDescription).placements
    process = follower.process
    assert process.has_log(placement.log_id) and not process.has_log("another")
    process.has_all = False
    assert process.has_log("another")
    process.has_all = True
    follower.went()
    assert process.has_log("another") and process.has_log(placement.log_id)
    follower.came()
    world.run_for(50)
    assert not process.has_log("another")
    assert not world.process.has_log("another")


def test_a_process_that_a_new_keeper_knows_alone_has_an_equal_part_when_that_keeper_goes_too() -> None:
    world = KeeperWorld(hubs={"hub": 4})
    two = [world.follower(process) for process in (101, 202)]
    load = Load(two)
    hold(world, 1)
    for follower in two:
        follower.went()
    two[0].came()
    load.send_for(2 * LEASE_MS)
    two[0].went()
    world.run_for(5_000)
    answers = load.send_for(1_001)
    assert [each.count("accepted") for each in answers] == [1_000, 1_000]
