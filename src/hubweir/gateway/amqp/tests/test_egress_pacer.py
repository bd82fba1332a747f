"""One link's sends against the namespace's units: pieces, waiting times, and what is given back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hubweir.gateway.amqp.egress_pacer import PIECE_BYTES, EgressPacer
from hubweir.gateway.amqp.tests.world import World
from hubweir.service_log import THROTTLED
from hubweir.throughput_unit.throughput_unit import capacity_of

EVENT_BYTES = 1_000
RUN = 100_000  # events in the run in hand: more than a unit lets out in a second


class Link:
    """A link with endless credit that sends as it is allowed, and notes when."""

    def __init__(self, world: World, *, credit: int = RUN) -> None:
        self.world = world
        self.credit = credit
        self.sent: list[tuple[int, int]] = []  # (time, events)
        env = world.env
        self.pacer = EgressPacer(world.gateway.units, env.monotonic_ms, env.call_later, self.go_on)

    def go_on(self) -> None:
        for _ in range(1_000):
            events = self.pacer.allowed(self.credit, RUN, RUN * EVENT_BYTES)
            if not events:
                return
            self.pacer.sent(events, events * EVENT_BYTES)
            self.sent.append((self.world.env.monotonic_ms(), events))
            self.credit -= events
            if not self.credit:
                return

    @property
    def events(self) -> int:
        return sum(events for _, events in self.sent)


@pytest.fixture
def make_world() -> Callable[[int], World]:
    def make(units: int) -> World:
        world = World()
        world.gateway.units.admission.set_units(units or None, world.env.monotonic_ms())
        return world

    return make


def bytes_out(world: World) -> int:
    return world.gateway.units.admission.usage.row(world.env.monotonic_ms()).bytes_out


def events_out(world: World) -> int:
    return world.gateway.units.admission.usage.row(world.env.monotonic_ms()).events_out


def test_while_units_are_off_the_whole_credit_may_go_and_is_counted(make_world: Callable[[int], World]) -> None:
    world = make_world(0)
    link = Link(world)
    link.go_on()
    assert link.sent == [(world.env.monotonic_ms(), RUN)]
    assert (events_out(world), bytes_out(world)) == (RUN, RUN * EVENT_BYTES)


def test_a_send_of_nothing_is_not_counted(make_world: Callable[[int], World]) -> None:
    world = make_world(0)
    pacer = Link(world).pacer
    assert pacer.allowed(7, RUN, RUN * EVENT_BYTES) == 7
    pacer.sent(0, 0)
    assert (events_out(world), bytes_out(world)) == (0, 0)


def test_with_units_events_go_in_pieces_at_the_units_rate(make_world: Callable[[int], World]) -> None:
    world = make_world(1)
    link = Link(world)
    link.go_on()
    rate = capacity_of(1).egress.bytes_per_second
    at_once = link.events * EVENT_BYTES
    assert max(events for _, events in link.sent) <= PIECE_BYTES // EVENT_BYTES
    world.run_for(10_000)
    gone = link.events * EVENT_BYTES - at_once
    assert abs(gone - 10 * rate) <= PIECE_BYTES
    assert bytes_out(world) - link.events * EVENT_BYTES <= PIECE_BYTES  # counted, but for the piece that waits


def test_a_link_that_waits_is_a_line_of_the_log(
    make_world: Callable[[int], World], caplog: pytest.LogCaptureFixture
) -> None:
    world = make_world(1)
    link = Link(world)
    link.pacer.allowed(1, 1, EVENT_BYTES)
    assert not caplog.records
    link.pacer.sent(1, EVENT_BYTES)
    link.go_on()
    world.run_for(5_000)
    assert [record.msg.kind for record in caplog.records] == [THROTTLED]


def test_nothing_more_may_go_while_a_piece_waits(make_world: Callable[[int], World]) -> None:
    world = make_world(1)
    link = Link(world)
    link.go_on()
    assert [link.pacer.allowed(10, RUN, RUN * EVENT_BYTES) for _ in range(3)] == [0, 0, 0]


def test_what_was_reserved_and_not_sent_is_given_back(make_world: Callable[[int], World]) -> None:
    world = make_world(1)
    pacer = Link(world).pacer
    assert pacer.allowed(50, 50, 50 * EVENT_BYTES) == 50
    assert (events_out(world), bytes_out(world)) == (50, 50 * EVENT_BYTES)
    pacer.sent(20, 20 * EVENT_BYTES)
    assert (events_out(world), bytes_out(world)) == (20, 20 * EVENT_BYTES)


def test_more_bytes_than_were_reserved_are_taken_too(make_world: Callable[[int], World]) -> None:
    world = make_world(1)
    pacer = Link(world).pacer
    pacer.allowed(10, 10, 10 * EVENT_BYTES)
    pacer.sent(10, 10 * EVENT_BYTES + 3_300)
    assert bytes_out(world) == 10 * EVENT_BYTES + 3_300


def test_credit_that_shrank_while_a_piece_was_reserved_bounds_it(make_world: Callable[[int], World]) -> None:
    pacer = Link(make_world(1)).pacer
    assert pacer.allowed(50, 50, 50 * EVENT_BYTES) == 50
    assert pacer.allowed(3, 50, 50 * EVENT_BYTES) == 3


def test_an_event_larger_than_a_piece_goes_alone(make_world: Callable[[int], World]) -> None:
    pacer = Link(make_world(20)).pacer
    assert pacer.allowed(10, 4, 4 * 500_000) == 1


def test_a_link_that_ends_while_its_piece_waits_gives_it_back_and_is_not_called(
    make_world: Callable[[int], World],
) -> None:
    world = make_world(1)
    link = Link(world)
    link.go_on()
    sent = link.events
    link.pacer.close()
    assert (events_out(world), bytes_out(world)) == (sent, sent * EVENT_BYTES)
    world.run_for(5_000)
    assert link.events == sent


def test_two_links_share_the_units_by_halves(make_world: Callable[[int], World]) -> None:
    world = make_world(1)
    one, other = Link(world), Link(world)
    one.go_on()
    other.go_on()
    before = one.events, other.events
    world.run_for(10_000)
    gone = one.events - before[0], other.events - before[1]
    assert abs(gone[0] - gone[1]) <= 0.05 * sum(gone)
