"""Times of one connection: when it ends for want of a right, when links are looked at, and that an ended one is left.

What idle links and unauthorised connections are told is in gateway/tests/test_gateway.py and test_connection_claims.py.
"""

from __future__ import annotations

from typing import cast

import pytest

from hubweir.errors import ServiceError
from hubweir.gateway.amqp.connection_deadlines import LOOKS, ConnectionDeadlines
from hubweir.gateway.amqp.node import Node
from hubweir.limits import GatewayLimits
from hubweir.testing.simulated_env import SimulatedEnv


class Timed:
    """A connection without links that notes how often they were looked at, and with what it was closed."""

    def __init__(self) -> None:
        self.env = SimulatedEnv(1)
        self.limits = GatewayLimits(unauthorized_connection_ms=10_000, idle_link_ms=100_000)
        self.looks = 0
        self.closed: list[str] = []

    @property
    def nodes(self) -> tuple[Node, ...]:
        self.looks += 1
        return ()

    def detach(self, node: Node, error: ServiceError) -> None:
        pytest.fail("there is no link")

    def close(self, error: ServiceError) -> None:
        self.closed.append(error.condition.symbol)


@pytest.fixture
def timed() -> Timed:
    return Timed()


def test_a_connection_without_a_right_is_closed_once_and_one_that_has_shown_one_is_not(timed: Timed) -> None:
    ConnectionDeadlines(timed).begin()
    timed.env.run_for(9_999)
    assert timed.closed == []
    timed.env.run_for(50_000)
    assert timed.closed == ["amqp:connection:forced"]
    other = Timed()
    deadlines = ConnectionDeadlines(other)
    deadlines.begin()
    deadlines.authorized()
    deadlines.authorized()
    other.env.run_for(50_000)
    assert other.closed == []


def test_links_are_looked_at_several_times_in_the_time_that_they_may_be_idle(timed: Timed) -> None:
    ConnectionDeadlines(timed).begin()
    timed.env.run_for(300_000)
    assert timed.looks == 3 * LOOKS


def test_the_end_of_a_connection_leaves_no_timer(timed: Timed) -> None:
    deadlines = ConnectionDeadlines(timed)
    deadlines.begin()
    deadlines.end()
    timed.env.run_for(500_000)
    assert (timed.looks, timed.closed) == (0, [])
    ConnectionDeadlines(timed).end()  # it was never opened


class Linked(Timed):
    """A connection with one link for events, which was used at `last_used_ms` and waits for nothing."""

    last_used_ms = 0
    waits_for_nothing = True

    def __init__(self) -> None:
        super().__init__()
        self.detached: list[int] = []

    @property
    def nodes(self) -> tuple[Node, ...]:
        return (cast(Node, self),)

    def is_idle(self) -> bool:
        return self.waits_for_nothing

    def detach(self, node: Node, error: ServiceError) -> None:
        self.detached.append(self.env.monotonic_ms())


def test_a_link_is_idle_by_the_clock_that_no_jump_moves_and_for_its_whole_time() -> None:
    linked = Linked()
    ConnectionDeadlines(linked).begin()
    linked.env.run_for(25_000)
    linked.last_used_ms = linked.env.monotonic_ms()
    linked.env.jump(864_000_000)
    linked.env.run_for(99_999)
    assert linked.detached == []
    linked.env.run_for(1)
    assert linked.detached == [125_000], "the first look at which it was idle for all of its time"


def test_a_link_that_waits_for_something_stays_until_it_does_no_more() -> None:
    linked = Linked()
    linked.waits_for_nothing = False
    ConnectionDeadlines(linked).begin()
    linked.env.run_for(240_000)
    assert linked.detached == []
    linked.waits_for_nothing = True
    linked.env.run_for(10_000)
    assert linked.detached == [250_000]
