"""What tests order of several processes: judged in one, held by all that live, and by those that come later."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

import pytest

from hubweir.broker.commands.testcontrol import FaultRates, OrderedFaults, OrdersKept, StandingOrders
from hubweir.errors import ARGUMENT_ERROR, NOT_ALLOWED, NOT_FOUND, TIMED_OUT, ServiceError
from hubweir.gateway.faults import FaultKind, Faults
from hubweir.gateway.process_orders import ProcessOrders
from hubweir.gateway.service_orders import DAY_MS, FORWARD_LIMIT_MS, ServiceOrders
from hubweir.namespace.tiers import DEVELOPMENT, PROFILES, Profile
from hubweir.testing.settable_clock import SettableClock
from hubweir.testing.simulated_env import SimulatedEnv

T = TypeVar("T")


class Served:
    """Stands for a gateway."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.faults: Faults | None = None
        self.orders = 0

    def order_faults(self, faults: Faults | None) -> None:
        self.faults = faults
        self.orders += 1


class Process:
    """One process, with a gateway of each namespace."""

    def __init__(self, index: int = 0, names: Sequence[str] = ("ns", "other")) -> None:
        self.clock = SettableClock()
        self.orders = ProcessOrders(SimulatedEnv(), self.clock, index)
        self.served = {name: Served(name) for name in names}
        for each in self.served.values():
            self.orders.came(each)

    @property
    def ahead_ms(self) -> tuple[int, int]:
        return self.clock.ahead.clock_ms, self.clock.ahead.tokens_ms


class Service:
    """One process that judges, and two others. silent: the others do not answer."""

    def __init__(self) -> None:
        self.judge, self.others = Process(), [Process(1), Process(2)]
        self.profiles: dict[str, Profile] = {"ns": DEVELOPMENT, "other": DEVELOPMENT}
        self.silent = False
        self.orders = ServiceOrders(SimulatedEnv(5), self.judge.orders, self.profiles.items, self._tell)

    @property
    def all(self) -> list[Process]:
        return [self.judge, *self.others]

    async def _tell(self, orders: StandingOrders) -> list[OrdersKept]:
        if self.silent:
            raise ServiceError(TIMED_OUT, "silence")
        for each in self.others:
            each.orders.take(orders)
        return [OrdersKept(each.orders.struck) for each in self.others]


def play(order: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(order)


def test_the_clock_goes_forward_in_every_process_and_tokens_when_it_is_said() -> None:
    service = Service()
    assert play(service.orders.forward("ns", 60_000, ends_tokens=False)).ahead_ms == 60_000
    assert play(service.orders.forward("ns", 5_000, ends_tokens=True)).ahead_ms == 65_000
    assert [each.ahead_ms for each in service.all] == [(65_000, 5_000)] * 3
    assert service.judge.clock.waits == 2, "it waits for its own timers, too"


def test_a_process_that_comes_later_is_as_far_ahead_and_has_the_faults() -> None:
    service = Service()
    play(service.orders.forward("ns", 60_000, ends_tokens=True))
    told = play(service.orders.order_faults("ns", FaultRates(drop=1, seed=7)))
    late = Process(1, names=())
    late.orders.take(service.judge.orders.standing)
    assert late.ahead_ms == (60_000, 60_000)
    served = Served("ns")
    late.orders.came(served)
    assert served.faults is not None and served.faults.rates == FaultRates(drop=1, seed=7)
    assert told.faults == service.judge.orders.standing.faults["ns"]


def test_faults_strike_in_their_namespace_alone_in_each_process_by_draws_of_its_own() -> None:
    service = Service()
    play(service.orders.order_faults("ns", FaultRates(drop=0.5, seed=7)))
    assert all(each.served["other"].faults is None for each in service.all)
    draws = []
    for each in service.all:
        faults = each.served["ns"].faults
        assert faults is not None
        draws.append([faults.strikes(FaultKind.DROP) for _ in range(100)])
    assert len({tuple(each) for each in draws}) == 3
    told = play(service.orders.told("ns"))
    assert told.struck == {"drop": sum(map(sum, draws))}


def test_to_be_told_again_changes_nothing_and_the_same_rates_once_more_begin_anew() -> None:
    service = Service()
    rates = FaultRates(drop=1, seed=7)
    play(service.orders.order_faults("ns", rates))
    faults = service.others[0].served["ns"].faults
    assert faults is not None and faults.strikes(FaultKind.DROP)
    play(service.orders.forward("ns", 1, ends_tokens=False))
    play(service.orders.order_faults("other", rates))
    assert play(service.orders.told("ns")).struck == {"drop": 1}
    assert service.others[0].served["ns"].faults is faults
    assert play(service.orders.order_faults("ns", rates)).struck == {}
    assert service.others[0].served["ns"].faults is not faults


def test_no_fault_strikes_when_that_is_ordered() -> None:
    service = Service()
    play(service.orders.order_faults("ns", FaultRates(drop=1)))
    play(service.orders.order_faults("other", FaultRates(detach=1)))
    told = play(service.orders.order_faults("ns", None))
    assert told.faults is None and told.struck == {}
    assert all(each.served["ns"].faults is None and each.served["other"].faults for each in service.all)


def test_a_seed_is_drawn_once_for_all_processes() -> None:
    service = Service()
    told = play(service.orders.order_faults("ns", FaultRates(drop=1)))
    assert told.faults is not None and told.faults.rates.seed is not None
    seeds = {each.served["ns"].faults.rates.seed for each in service.all if each.served["ns"].faults is not None}
    assert seeds == {told.faults.rates.seed}


def test_another_namespace_of_the_same_name_begins_without_faults() -> None:
    service = Service()
    play(service.orders.order_faults("ns", FaultRates(drop=1)))
    for each in service.all:
        each.orders.left(each.served["ns"])
        each.served["ns"] = Served("ns")
        each.orders.came(each.served["ns"])
    assert play(service.orders.told("ns")).faults is None
    assert all(each.served["ns"].faults is None for each in service.all)


def test_nothing_is_ordered_that_is_refused() -> None:
    service = Service()
    service.profiles["other"] = PROFILES["standard"]
    with pytest.raises(ServiceError, match="another namespace of this service has the profile standard") as caught:
        play(service.orders.forward("ns", 1, ends_tokens=False))
    assert caught.value.condition is NOT_ALLOWED
    with pytest.raises(ServiceError, match="'other' has the profile standard"):
        play(service.orders.forward("other", 1, ends_tokens=False))
    with pytest.raises(ServiceError, match="'other' has the profile standard"):
        play(service.orders.order_faults("other", None))
    with pytest.raises(ServiceError, match="'other' has the profile standard"):
        play(service.orders.told("other"))
    with pytest.raises(ServiceError) as caught:
        play(service.orders.told("gone"))
    assert caught.value.condition is NOT_FOUND
    assert all(each.orders.standing == StandingOrders() and each.ahead_ms == (0, 0) for each in service.all)


def test_all_steps_together_are_bounded() -> None:
    service = Service()
    play(service.orders.forward("ns", FORWARD_LIMIT_MS - DAY_MS, ends_tokens=False))
    with pytest.raises(ServiceError, match="over 3660 days ahead") as caught:
        play(service.orders.forward("ns", DAY_MS + 1, ends_tokens=False))
    assert caught.value.condition is ARGUMENT_ERROR
    assert play(service.orders.forward("ns", DAY_MS, ends_tokens=False)).ahead_ms == FORWARD_LIMIT_MS


def test_an_order_is_not_answered_as_done_while_a_process_that_lives_is_silent() -> None:
    """It stands all the same: the process is told of it before it takes clients again."""
    service = Service()
    service.silent = True
    with pytest.raises(ServiceError, match="silence"):
        play(service.orders.forward("ns", 60_000, ends_tokens=False))
    service.silent = False
    assert play(service.orders.told("ns")).ahead_ms == 60_000
    assert [each.ahead_ms for each in service.all] == [(60_000, 0)] * 3


def test_a_clock_that_is_where_it_should_be_is_left_alone() -> None:
    """All timers of a process are set anew when its clock is set."""

    class Untouched(SettableClock):
        def forward(self, by_ms: int, *, tokens_by_ms: int = 0) -> None:
            raise AssertionError("it was set")

    ProcessOrders(SimulatedEnv(), Untouched()).take(
        StandingOrders(1, 0, 0, {"ns": OrderedFaults(1, FaultRates(drop=1, seed=1))})
    )
