"""Throughput units at a gateway with virtual time: to the event, while they change, and over crashes."""

from __future__ import annotations

from typing import Any

import pytest

from hubweir.alarms import UNITS_UNUSED
from hubweir.broker.commands.partition import AppendEvents
from hubweir.broker.commands.process import CapPartitions, Refusal
from hubweir.broker.throttle_lines import QUIET_MS
from hubweir.errors import ARGUMENT_OUT_OF_RANGE, TIMED_OUT, ServiceError
from hubweir.gateway.amqp.tests.world import Peer, World, event
from hubweir.service_log import THROTTLED
from hubweir.throughput_unit.usage import HourUsage


def change(world: World, **units: int) -> Any:
    return world.wait(lambda done: world.gateway.units.change(done, **units))


def held(world: World) -> int:
    return world.namespace.description.units.held


def send_every_ms(world: World, peer: Peer, links: list[Any], milliseconds: int) -> list[str]:
    """One event a link and millisecond; what each was answered, in the end."""
    distinct = list(dict.fromkeys(links))
    before = [len(peer.outcomes(link)) for link in distinct]
    for _ in range(milliseconds):
        for link in links:
            if link.sendable:
                link.send(event(b"x"), settled=False)
        world.run_for(1)
    world.run_for(500)
    return [
        text
        for link, known in zip(distinct, before, strict=True)
        for first, last, text in peer.outcomes(link)[known:]
        for _ in range(last - first + 1)
    ]


def senders(peer: Peer, count: int) -> list[Any]:
    """Links to as many partitions: each event is a run of its own, so each is judged by itself."""
    return [peer.sender(f"hub/Partitions/{number}") for number in range(count)]


@pytest.mark.parametrize(("units", "seconds"), [(1, 2), (2, 1)])
def test_n_units_let_in_exactly_n_thousand_events_a_second_and_their_burst(units: int, seconds: int) -> None:
    world = World(hubs={"hub": 4})
    peer = world.trusted_peer()
    links = senders(peer, 4)
    change(world, held=units)
    # The first and the last millisecond of sending are both asked in; the burst is one second.
    answers = send_every_ms(world, peer, links, 1_000 * seconds + 1)
    assert answers.count("accepted") == units * 1_000 * (seconds + 1)
    assert set(answers) == {"accepted", "com.microsoft:server-busy"}
    stored = sum(hosted.log.bounds.next_index for hosted in world.broker._residents)
    assert stored == units * 1_000 * (seconds + 1)
    assert all(peer.is_attached(link) for link in links)


def test_throttling_is_a_line_of_the_log_when_it_begins(caplog: pytest.LogCaptureFixture) -> None:
    world = World(hubs={"hub": 4})
    peer = world.trusted_peer()
    links = senders(peer, 4)
    change(world, held=1)
    for _ in range(2):
        caplog.clear()
        send_every_ms(world, peer, links, 800)
        [line] = [record.msg for record in caplog.records if getattr(record.msg, "kind", None) is THROTTLED]
        assert line.fields["namespace"] == world.namespace.description.name
        world.run_for(QUIET_MS)


def test_without_units_nothing_is_refused_and_everything_is_counted() -> None:
    world = World(hubs={"hub": 4})
    peer = world.trusted_peer()
    answers = send_every_ms(world, peer, senders(peer, 4), 300)
    assert answers.count("accepted") == len(answers) == 1_200
    usage = HourUsage(*world.gateway.units.hours()[-1])
    assert (usage.events_in, usage.units, usage.refusals) == (1_200, 0, 0)
    assert usage.bytes_in == 1_200 * len(event(b"x"))


def test_a_partition_carries_one_unit_however_many_there_are_and_gives_the_namespace_its_part_back() -> None:
    world = World(hubs={"hub": 1})
    peer = world.trusted_peer()
    links = senders(peer, 1) * 3
    change(world, held=10)
    answers = send_every_ms(world, peer, links, 1_001)
    usage = HourUsage(*world.gateway.units.hours()[-1])
    assert 1_990 <= answers.count("accepted") <= 2_000
    assert usage.events_in == answers.count("accepted")
    assert usage.refused_events == answers.count("com.microsoft:server-busy") > 0
    assert "9 of them cannot be used" in str(world.gateway.units.warning)


@pytest.mark.parametrize(("is_known", "events"), [(True, 0), (False, 1)])
def test_a_send_costs_nothing_when_it_is_certainly_not_stored(is_known: bool, events: int) -> None:
    world = World(hubs={"hub": 1})
    sender = world.trusted_peer().sender("hub")
    world.gate.refuse[AppendEvents] = Refusal(TIMED_OUT, "the broker went away", known=is_known)
    sender.send(event(b"x"), settled=False)
    world.run_for(100)
    assert HourUsage(*world.gateway.units.hours()[-1]).events_in == events


def test_what_goes_out_is_paced_to_the_event_and_nothing_is_lost() -> None:
    world = World(hubs={"hub": 4})
    peer = world.trusted_peer()
    for number in range(4):
        link = peer.sender(f"hub/Partitions/{number}")
        for _ in range(3):
            for _ in range(1_000):
                link.send(event(b"x"), settled=True)
            world.run_for(100)
    change(world, held=1)
    readers = [
        peer.receiver(f"hub/ConsumerGroups/$Default/Partitions/{number}", credit=3_000, selector=ALL)
        for number in range(4)
    ]
    begun = world.env.monotonic_ms()
    seen = []
    while sum(seen[-1:]) < 12_000 and world.env.monotonic_ms() < begun + 5_000:
        world.run_for(100)
        seen.append(sum(peer.received_count(reader) for reader in readers))
    assert seen[-1] == 12_000 == sum(len(peer.bodies(reader)) for reader in readers)
    # Pieces are sent when all of them is due, and four readers asked 200 ms earlier: never over, and soon there.
    for tenths, count in enumerate(seen, start=1):
        assert count <= 4_096 * (1 + (tenths + 3) / 10)
    assert 1_900 <= len(seen) * 100 + 300 <= 2_500  # (12,000 - 4,096) / 4,096 a second
    usage = HourUsage(*world.gateway.units.hours()[-1])
    assert usage.events_out == 12_000
    assert usage.delays > 0


ALL = "amqp.annotation.x-opt-offset > '-1'"


def test_a_reader_that_leaves_while_it_waits_gives_its_part_back() -> None:
    world = World(hubs={"hub": 1})
    peer = world.trusted_peer()
    link = peer.sender("hub/Partitions/0")
    for _ in range(9):
        for _ in range(1_000):
            link.send(event(b"x"), settled=True)
        world.run_for(100)
    change(world, held=1)
    reader = peer.receiver("hub/ConsumerGroups/$Default/Partitions/0", credit=9_000, selector=ALL)
    world.run_for(500)
    reader.detach()
    world.run_for(100)
    assert HourUsage(*world.gateway.units.hours()[-1]).events_out == len(peer.bodies(reader)) < 9_000


def test_auto_inflate_raises_before_anybody_is_refused_and_the_raise_survives_a_crash() -> None:
    world = World(hubs={"hub": 4})
    peer = world.trusted_peer()
    change(world, held=1, maximum=4)
    answers = send_every_ms(world, peer, senders(peer, 4), 1_500)
    assert set(answers) == {"accepted"}
    raised = held(world)
    assert 1 < raised <= 4
    world.env.crash(power_cut=True)
    again = World(env=world.env.restart())
    assert held(again) == raised == again.gateway.units.admission.units


def test_units_change_while_events_flow_and_turn_off() -> None:
    world = World(hubs={"hub": 4})
    peer = world.trusted_peer()
    links = senders(peer, 4)
    change(world, held=1)
    assert "com.microsoft:server-busy" in send_every_ms(world, peer, links, 1_000)
    change(world, held=0)
    assert set(send_every_ms(world, peer, links, 1_000)) == {"accepted"}


@pytest.mark.parametrize("units", [{"held": 41}, {"held": -1}, {"held": 3, "maximum": 2}, {"maximum": 41}])
def test_units_out_of_range_are_refused_with_the_range(units: dict[str, int]) -> None:
    world = World()
    refusal = change(world, **units)
    assert isinstance(refusal, ServiceError)
    assert refusal.condition is ARGUMENT_OUT_OF_RANGE
    assert held(world) == 0


def test_usage_is_there_after_a_crash_as_of_the_last_minute() -> None:
    world = World(hubs={"hub": 4})
    peer = world.trusted_peer()
    send_every_ms(world, peer, senders(peer, 4), 10)
    world.run_for(61_000)
    send_every_ms(world, peer, senders(peer, 4), 10)
    world.env.crash(power_cut=True)
    again = World(env=world.env.restart())
    assert sum(HourUsage(*row).events_in for row in again.gateway.units.hours()) == 40


def ask(world: World, held: int | None, maximum: int | None = None) -> object:
    return world.wait(lambda done: world.gateway.units.ask(held, maximum, done))


def test_what_a_start_says_holds_and_what_it_does_not_say_stays() -> None:
    world = World()
    ask(world, 2, 6)
    change(world, held=5)
    ask(world, None)
    assert (held(world), world.namespace.description.units.maximum) == (5, 6)
    ask(world, 2)
    assert held(world) == 2
    refusal = ask(world, 7)
    assert isinstance(refusal, ServiceError) and refusal.condition is ARGUMENT_OUT_OF_RANGE


def test_units_that_auto_inflate_added_stay_when_a_start_says_the_same_again() -> None:
    world = World(hubs={"hub": 4})
    ask(world, 1, 3)
    peer = world.trusted_peer()
    send_every_ms(world, peer, senders(peer, 4), 3_000)
    assert held(world) == 3
    ask(world, 1)
    assert held(world) == 3
    ask(world, 2)  # another number is a new beginning
    assert held(world) == world.namespace.description.units.asked == 2


def test_added_units_that_are_above_another_maximum_go_and_an_operators_own_are_no_added_ones() -> None:
    world = World(hubs={"hub": 4})
    ask(world, 1, 3)
    peer = world.trusted_peer()
    send_every_ms(world, peer, senders(peer, 4), 3_000)
    ask(world, 1, 2)
    assert held(world) == 2
    change(world, maximum=3)
    change(world, held=3)
    assert world.namespace.description.units.asked == 3
    ask(world, 1)
    assert held(world) == 1


def test_units_that_no_partition_can_use_are_an_alarm_until_there_are_partitions_for_them() -> None:
    world = World(hubs={"hub": 1})
    change(world, held=3)
    [alarm] = world.process.alarms.current()
    assert alarm.kind is UNITS_UNUSED and alarm.about == f"namespace {world.namespace.description.name}"
    assert "2 of them cannot be used" in alarm.text and not world.process.alarms.blocks
    world.create_hub("more", 1)
    [alarm] = world.process.alarms.current()
    assert "1 of them cannot be used" in alarm.text
    world.create_hub("enough", 1)
    assert world.process.alarms.current() == ()
    change(world, held=4)
    assert len(world.process.alarms.current()) == 1
    change(world, held=0)
    assert world.process.alarms.current() == ()


def test_brokers_hear_of_the_cap_once_and_one_that_comes_back_again() -> None:
    world = World(hubs={"hub": 2}, stores=2)
    world.gates[1].is_up = False
    change(world, held=2)
    assert [gate.sent(CapPartitions) for gate in world.gates] == [[CapPartitions(True)], []]
    world.gates[1].is_up = True
    world.gateway.units.broker_came(world.gates[1])
    assert world.gates[1].sent(CapPartitions) == [CapPartitions(True)]
    change(world, held=0)
    assert [gate.sent(CapPartitions)[-1] for gate in world.gates] == [CapPartitions(False)] * 2
