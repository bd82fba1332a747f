"""Throughput units of a namespace that several processes serve: exact to one lease, counted once, and in order."""

from __future__ import annotations

from typing import Any

import pytest

from hubweir.broker.commands.keeper import LeaseUnits
from hubweir.gateway.amqp.tests.world import Peer, World, event, quotas
from hubweir.gateway.keeper.lent_units import ASK_GAP_MS, LATE_MS, REPORT_MS
from hubweir.gateway.keeper.tests.keeper_world import Follower, KeeperWorld
from hubweir.testing.simulated_env import SimulatedEnv
from hubweir.throughput_unit.unit_lender import LEASE_MS
from hubweir.throughput_unit.usage import HourUsage

ALL = "amqp.annotation.x-opt-offset > '-1'"


def senders(peer: Peer, partitions: range) -> list[Any]:
    return [peer.sender(f"hub/Partitions/{number}") for number in partitions]


def hold(world: World, units: int) -> None:
    world.wait(lambda done: world.gateway.units.change(done, held=units))
    world.run_for(2 * LEASE_MS)


def usage(world: World) -> HourUsage:
    """Of the running hour, by all processes."""
    world.run_for(2 * REPORT_MS)
    return HourUsage(*world.wait(world.gateway.units.ask_usage)[-1])


def leases(follower: Follower) -> list[LeaseUnits]:
    """What a process asked for so far."""
    return [each for each in follower.stream.commands if isinstance(each, LeaseUnits)]


class Load:
    """One event a link and millisecond at each of some processes; how each ended."""

    def __init__(self, followers: list[Follower], links: int = 2) -> None:
        self.world = followers[0].keeper_world
        self.peers = [follower.trusted_peer() for follower in followers]
        self.links = [
            (peer, link)
            for number, peer in enumerate(self.peers)
            for link in senders(peer, range(links * number, links * number + links))
        ]

    def send_for(self, milliseconds: int) -> list[list[str]]:
        """What the sends of each process were answered."""
        before = [len(peer.outcomes(link)) for peer, link in self.links]
        for _ in range(milliseconds):
            for _, link in self.links:
                if link.sendable:
                    link.send(event(b"x"), settled=False)
            self.world.run_for(1)
        self.world.run_for(500)
        answers: dict[int, list[str]] = {id(peer): [] for peer in self.peers}
        for (peer, link), known in zip(self.links, before, strict=True):
            for first, last, text in peer.outcomes(link)[known:]:
                answers[id(peer)] += [text] * (last - first + 1)
        return list(answers.values())


@pytest.fixture
def world() -> KeeperWorld:
    return KeeperWorld(hubs={"hub": 4})


@pytest.fixture
def two(world: KeeperWorld) -> list[Follower]:
    return [world.follower(process) for process in (101, 202)]


def test_all_processes_together_let_in_what_one_would(world: KeeperWorld, two: list[Follower]) -> None:
    load = Load(two)
    hold(world, 1)
    answers = load.send_for(1_001)
    accepted = [each.count("accepted") for each in answers]
    late = LEASE_MS  # events of one unit that a lease may be late
    assert 2_000 - 2 * late <= sum(accepted) <= 2_000 + ASK_GAP_MS
    assert {text for each in answers for text in each} == {"accepted", "com.microsoft:server-busy"}
    assert min(accepted) > 0.4 * sum(accepted)  # who wants as much gets as much
    seen = usage(world)
    assert seen.events_in == sum(accepted) and seen.units == 1
    assert seen.refused_events == sum(map(len, answers)) - sum(accepted)


def test_what_one_process_does_not_need_another_has(world: KeeperWorld, two: list[Follower]) -> None:
    load = Load(two[:1], links=4)
    hold(world, 2)
    (answers,) = load.send_for(1_001)
    # The last ones wait for a lease, which comes so much later.
    assert 4_000 - 3 * LEASE_MS <= answers.count("accepted") <= 4_000 + 2 * ASK_GAP_MS


def test_the_first_send_behind_a_quiet_hour_has_the_whole_burst(world: KeeperWorld, two: list[Follower]) -> None:
    peer = two[0].trusted_peer()
    link = peer.sender("hub/Partitions/0")
    hold(world, 1)
    world.run_for(100_000)
    for _ in range(1_000):
        link.send(event(b"x"), settled=False)
    peer.run(200)
    texts = [text for first, last, text in peer.outcomes(link) for _ in range(last - first + 1)]
    assert texts == ["accepted"] * 1_000


def test_a_quiet_process_asks_for_nothing(world: KeeperWorld, two: list[Follower]) -> None:
    hold(world, 1)
    world.run_for(1_000)
    before = len(leases(two[0]))
    world.run_for(60_000)
    assert len(leases(two[0])) == before


def test_a_busy_process_asks_a_few_times_a_lease_and_not_with_each_run(world: KeeperWorld, two: list[Follower]) -> None:
    load = Load(two)
    hold(world, 1)
    before, begun = len(leases(two[0])), world.env.monotonic_ms()
    load.send_for(1_000)
    assert 10 <= len(leases(two[0])) - before <= (world.env.monotonic_ms() - begun) // ASK_GAP_MS


def test_sends_keep_their_order_while_one_waits_for_a_lease(world: KeeperWorld, two: list[Follower]) -> None:
    peer = two[0].trusted_peer()
    link = peer.sender("hub/Partitions/0")
    hold(world, 1)
    world.run_for(5_000)  # no lease stands
    for number in range(50):
        link.send(event(b"%d" % number), settled=False)
        world.env.run_for(0)
        if number % 7 == 0:
            world.run_for(1)
    peer.run(100)
    reader = peer.receiver("hub/ConsumerGroups/$Default/Partitions/0", credit=100, selector=ALL)
    peer.run(100)
    assert peer.bodies(reader) == [b"%d" % number for number in range(50)]


def test_units_are_changed_through_any_process_and_hold_in_all(world: KeeperWorld, two: list[Follower]) -> None:
    result = two[1].wait(lambda done: two[1].gateway.units.change(done, held=3, maximum=9))
    assert result.units.held == 3
    assert [follower.gateway.units.admission.units for follower in two] == [3, 3]
    refused = two[0].wait(lambda done: two[0].gateway.units.change(done, held=1_000))
    assert refused.condition.symbol == "com.microsoft:argument-out-of-range"
    two[0].wait(lambda done: two[0].gateway.units.change(done, held=0, maximum=0))
    assert [follower.gateway.units.admission.units for follower in two] == [None, None]
    assert "2 of them cannot be used" not in str(two[0].gateway.units.warning)


def test_every_process_warns_of_units_that_no_partition_uses(world: KeeperWorld, two: list[Follower]) -> None:
    hold(world, 10)
    assert "6 of them cannot be used" in str(two[0].gateway.units.warning)


def test_units_grow_by_what_processes_are_short_of_and_nobody_is_refused(
    world: KeeperWorld, two: list[Follower]
) -> None:
    load = Load(two)
    world.wait(lambda done: world.gateway.units.change(done, held=1, maximum=20))
    world.run_for(2 * LEASE_MS)
    answers = load.send_for(2_000)
    assert {text for each in answers for text in each} == {"accepted"}
    held = world.namespace.description.units
    assert 3 <= held.held <= 8 and held.inflated == held.held - 1
    assert [follower.gateway.units.admission.units for follower in two] == [held.held] * 2


def test_what_goes_out_is_paced_over_all_processes(world: KeeperWorld, two: list[Follower]) -> None:
    peers = [follower.trusted_peer() for follower in two]
    for number in range(4):
        (link,) = senders(peers[0], range(number, number + 1))
        for _ in range(1_500):
            link.send(event(b"x"), settled=True)
            if not link.sendable:
                world.run_for(100)
        world.run_for(100)
    hold(world, 1)
    readers = [
        (peers[number % 2], peers[number % 2].receiver(
            f"hub/ConsumerGroups/$Default/Partitions/{number}", credit=3_000, selector=ALL))
        for number in range(4)
    ]  # fmt: skip
    seen: list[int] = []
    while sum(seen[-1:]) < 6_000:
        world.run_for(500)
        seen.append(sum(len(peer.bodies(reader)) for peer, reader in readers))
    assert seen[-1] == 6_000
    for halves, count in enumerate(seen, start=1):
        assert count <= 4_096 * (1 + halves / 2 + 0.4)  # a burst, the rate, and a lease or two
    assert 1 <= len(seen) <= 3  # (6,000 - 4,096) / 4,096 a second is 0.5 s


def test_while_the_keeper_is_away_each_goes_on_with_an_equal_part(world: KeeperWorld, two: list[Follower]) -> None:
    load = Load(two)
    hold(world, 1)
    load.send_for(200)
    for follower in two:
        follower.went()
    world.run_for(5_000)
    answers = load.send_for(1_001)
    assert [each.count("accepted") for each in answers] == [1_000, 1_000]
    assert all(set(each) == {"accepted", "com.microsoft:server-busy"} for each in answers)
    for follower in two:
        follower.came()
    world.run_for(5_000)
    accepted = sum(each.count("accepted") for each in load.send_for(1_001))
    assert 2_000 - 2 * LEASE_MS <= accepted <= 2_000 + ASK_GAP_MS


def test_a_send_that_waits_for_a_lease_when_the_keeper_goes_is_not_lost(
    world: KeeperWorld, two: list[Follower]
) -> None:
    peer = two[0].trusted_peer()
    link = peer.sender("hub/Partitions/0")
    hold(world, 1)
    world.run_for(5_000)
    two[0].stream.is_held = True
    link.send(event(b"x"), settled=False)
    world.run_for(50)
    assert peer.outcomes(link) == []
    two[0].went()
    world.run_for(50)
    assert [text for *_, text in peer.outcomes(link)] == ["accepted"]


def after_a_burst(world: KeeperWorld, follower: Follower) -> tuple[Peer, Any]:
    """A peer that has just sent what one unit lets in in a second, and the link that it used, to partition 0."""
    peer = follower.trusted_peer()
    link = peer.sender("hub/Partitions/0")
    hold(world, 1)
    for _ in range(1_000):
        link.send(event(b"x"), settled=True)
        if not link.sendable:
            world.run_for(100)
    return peer, link


def test_a_keeper_that_stalls_keeps_neither_senders_nor_readers_waiting(
    world: KeeperWorld, two: list[Follower]
) -> None:
    peer, link = after_a_burst(world, two[0])
    world.run_for(5_000)
    for follower in two:
        follower.stream.is_held = True
    link.send(event(b"y"), settled=False)
    reader = peer.receiver("hub/ConsumerGroups/$Default/Partitions/0", credit=2_000, selector=ALL)
    world.run_for(2 * LATE_MS)
    assert [text for *_, text in peer.outcomes(link)] == ["accepted"]
    world.run_for(2 * LATE_MS)
    assert len(peer.bodies(reader)) >= 1_000


def test_a_keeper_is_late_by_the_machines_clock_whatever_a_test_does_to_that_of_the_service(
    world: KeeperWorld, two: list[Follower], monkeypatch: pytest.MonkeyPatch
) -> None:
    peer, link = after_a_burst(world, two[0])
    machine = SimulatedEnv(2)
    monkeypatch.setattr(SimulatedEnv, "machine", machine)
    two[0].stream.is_held = True
    for _ in range(2):
        link.send(event(b"y"), settled=False)
    world.run_for(60 * LATE_MS)
    assert peer.outcomes(link) == []
    machine.run_for(LATE_MS)
    world.run_for(100)
    assert len(peer.outcomes(link)) > 0


def test_sends_that_wait_to_ask_together_when_the_keeper_goes_are_not_lost(
    world: KeeperWorld, two: list[Follower]
) -> None:
    peer = two[0].trusted_peer()
    link = peer.sender("hub/Partitions/0")
    hold(world, 1)
    world.run_for(5_000)
    link.send(event(b"x"), settled=False)
    world.run_for(3)
    for _ in range(450):
        link.send(event(b"x"), settled=False)
    world.run_for(1)
    before = len(leases(two[0]))
    two[0].went()
    world.run_for(200)
    texts = [text for first, last, text in peer.outcomes(link) for _ in range(last - first + 1)]
    assert texts == ["accepted"] * 451 and len(leases(two[0])) == before


def test_the_counts_of_a_process_that_stops_are_told(world: KeeperWorld, two: list[Follower]) -> None:
    peer = two[0].trusted_peer()
    link = peer.sender("hub")
    link.send(event(b"x"), settled=False)
    peer.run()
    assert two[0].wait(two[0].gateway.units.stop) is not None
    assert HourUsage(*world.gateway.units.hours()[-1]).events_in == 1


def test_usage_is_the_same_through_every_process(world: KeeperWorld, two: list[Follower]) -> None:
    for follower in two:
        peer = follower.trusted_peer()
        peer.sender("hub").send(event(b"x"), settled=False)
        peer.run()
    world.run_for(2 * REPORT_MS)
    rows = [each.wait(each.gateway.units.ask_usage)[-1] for each in (world, *two)]
    assert rows[0] == rows[1] == rows[2] and HourUsage(*rows[0]).events_in == 2


def test_the_quota_of_connections_counts_those_of_all_processes() -> None:
    world = KeeperWorld(settings=quotas(connections=2))
    two = [world.follower(process) for process in (101, 202)]
    first = two[0].trusted_peer()
    world.run_for(2 * LEASE_MS)
    second = two[1].trusted_peer()
    world.run_for(2 * LEASE_MS)
    third = two[0].trusted_peer()
    world.run_for(50)
    assert third.is_cut and not first.is_cut and not second.is_cut
    second.cut()
    world.run_for(2 * LEASE_MS)
    fourth = two[0].trusted_peer()
    world.run_for(50)
    assert not fourth.is_cut
    assert [follower.gateway.connection_count for follower in two] == [2, 2]


def test_connections_of_a_process_that_ended_count_no_more() -> None:
    world = KeeperWorld(settings=quotas(connections=1))
    two = [world.follower(process) for process in (101, 202)]
    two[0].trusted_peer()
    world.run_for(2 * LEASE_MS)
    two[0].went()
    world.server.gone(101)
    world.run_for(2 * LEASE_MS)
    refused = two[1].trusted_peer()  # told of the new count with the next lease
    world.run_for(2 * LEASE_MS)
    refused.cut()
    world.run_for(2 * LEASE_MS)
    peer = two[1].trusted_peer()
    world.run_for(50)
    assert not peer.is_cut
