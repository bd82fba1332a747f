"""Orders of tests in one process: its clock is set to where they say, and its namespaces are struck as they say."""

from __future__ import annotations

import asyncio

import pytest

from hubweir.broker.commands.testcontrol import FaultRates, OrderedFaults, StandingOrders
from hubweir.gateway.faults import FaultKind, Faults
from hubweir.gateway.process_orders import ProcessOrders
from hubweir.testing.settable_clock import SettableClock
from hubweir.testing.simulated_env import SimulatedEnv

DROPS = FaultRates(drop=1, seed=7)


class Served:
    """Stands for a gateway; it goes by what it is ordered."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.faults: Faults | None = None

    def order_faults(self, faults: Faults | None) -> None:
        self.faults = faults


class Process:
    """The orders of one process, which serves `one` and `other`."""

    def __init__(self, index: int = 0) -> None:
        self.clock = SettableClock()
        self.orders = ProcessOrders(SimulatedEnv(), self.clock, index)
        self.one, self.other = Served("one"), Served("other")
        for served in (self.one, self.other):
            self.orders.came(served)

    @property
    def ahead_ms(self) -> tuple[int, int]:
        return self.clock.ahead.clock_ms, self.clock.ahead.tokens_ms


def ordered(version: int, clock_ms: int = 0, tokens_ms: int = 0, **faults: OrderedFaults) -> StandingOrders:
    return StandingOrders(version, clock_ms, tokens_ms, faults)


@pytest.fixture
def process() -> Process:
    return Process()


def test_the_clock_is_set_to_where_orders_say_however_often_they_come(process: Process) -> None:
    """An order says how far ahead of the machine, so that a process that missed one is as far as the others."""
    process.orders.take(ordered(1, 60_000))
    process.orders.take(ordered(1, 60_000))
    assert process.ahead_ms == (60_000, 0)
    process.orders.take(ordered(3, 90_000, 5_000))
    process.orders.take(ordered(4, 95_000, 6_000))
    assert process.ahead_ms == (95_000, 6_000)


def test_tokens_alone_go_forward_when_orders_say_so(process: Process) -> None:
    process.orders.take(ordered(1, 0, 5_000))
    assert process.ahead_ms == (0, 5_000)


def test_whoever_asks_waits_for_timers_of_this_process(process: Process) -> None:
    asyncio.run(process.orders.rung())
    assert process.clock.waits == 1


def test_faults_strike_namespaces_that_are_here_and_that_come(process: Process) -> None:
    process.orders.take(ordered(1, one=OrderedFaults(1, DROPS), late=OrderedFaults(2, DROPS)))
    assert process.one.faults is not None and process.one.faults.rates == DROPS
    assert process.other.faults is None
    late = Served("late")
    process.orders.came(late)
    assert late.faults is not None and late.faults.number == 2


def test_the_same_faults_go_on_with_their_draws_and_others_begin_anew(process: Process) -> None:
    process.orders.take(ordered(1, one=OrderedFaults(1, DROPS)))
    first = process.one.faults
    assert first is not None and first.strikes(FaultKind.DROP)
    process.orders.take(ordered(2, 1_000, one=OrderedFaults(1, DROPS)))
    assert process.one.faults is first and process.orders.struck == {"one": {"drop": 1}}
    process.orders.take(ordered(3, one=OrderedFaults(2, DROPS)))
    assert process.one.faults is not first and process.orders.struck == {"one": {}}
    process.orders.take(ordered(4))
    assert process.one.faults is None and process.orders.struck == {}


def test_processes_draw_for_themselves_and_a_process_draws_the_same_again() -> None:
    rates = FaultRates(drop=0.5, seed=7)

    def draws(index: int) -> list[bool]:
        process = Process(index)
        process.orders.take(ordered(1, one=OrderedFaults(1, rates)))
        assert process.one.faults is not None
        return [process.one.faults.strikes(FaultKind.DROP) for _ in range(64)]

    assert draws(0) == draws(0) != draws(1)


def test_a_namespace_that_left_takes_its_faults_with_it_and_no_others(process: Process) -> None:
    process.orders.take(ordered(1, 1_000, one=OrderedFaults(1, DROPS), other=OrderedFaults(2, DROPS)))
    process.orders.left(process.one)
    assert process.orders.standing == ordered(1, 1_000, other=OrderedFaults(2, DROPS))
    assert process.orders.struck.keys() == {"other"}
    again = Served("one")
    process.orders.came(again)
    assert again.faults is None
