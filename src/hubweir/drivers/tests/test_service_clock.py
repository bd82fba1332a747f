"""The clock that a test sets forward, on a real loop."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from hubweir.drivers.service_clock import ServiceClock
from hubweir.drivers.system_env import SystemEnv
from hubweir.env import Ahead

Run = Callable[[Coroutine[Any, Any, Any]], Any]
HOUR_MS = 3_600_000


def test_all_clocks_of_an_env_go_forward_together_and_the_machines_does_not(run: Run) -> None:
    async def scenario() -> None:
        env = SystemEnv(None)  # type: ignore[arg-type]
        beside = env.beside(None, threads=1, name="disk")  # type: ignore[arg-type]
        clocks = (env.now_ms, env.monotonic_ms, env.boottime_ms, beside.now_ms, beside.monotonic_ms)
        before = [clock() for clock in clocks]
        machine_ms = env.machine.now_ms(), env.machine.monotonic_ms()
        env.clock.forward(HOUR_MS)
        passed = [clock() - then for clock, then in zip(clocks, before, strict=True)]
        assert all(HOUR_MS <= ms < HOUR_MS + 10_000 for ms in passed)
        assert env.machine.now_ms() - machine_ms[0] < 10_000
        assert env.machine.monotonic_ms() - machine_ms[1] < 10_000
        assert abs(env.monotonic_ms() - env.machine.monotonic_ms() - HOUR_MS) < 10_000

    run(scenario())


def test_timers_that_are_due_ring_in_the_order_of_their_times(run: Run) -> None:
    async def scenario() -> None:
        clock, rung = ServiceClock(asyncio.get_running_loop(), Ahead()), list[str]()
        clock.call_later(3 * HOUR_MS, lambda: rung.append("late"))
        clock.call_later(HOUR_MS, lambda: rung.append("second"))
        clock.call_later(HOUR_MS - 60_000, lambda: rung.append("first"))
        clock.call_later(HOUR_MS, lambda: rung.append("third"))
        clock.forward(HOUR_MS)
        assert rung == [], "none rings within the call"
        await clock.rung(limit_s=10)
        assert rung == ["first", "second", "third"]
        clock.forward(2 * HOUR_MS - 60_000)
        await clock.rung(limit_s=10)
        assert rung == ["first", "second", "third"], "a minute is left"
        clock.forward(60_000)
        await clock.rung(limit_s=10)
        assert rung == ["first", "second", "third", "late"]

    run(scenario())


def test_a_timer_comes_nearer_by_what_passed(run: Run) -> None:
    async def scenario() -> None:
        loop, rung = asyncio.get_running_loop(), asyncio.Event()
        clock = ServiceClock(loop, Ahead())
        clock.call_later(HOUR_MS + 150, rung.set)
        began_s = loop.time()
        clock.forward(HOUR_MS)
        await clock.rung(limit_s=10)
        assert not rung.is_set()
        await asyncio.wait_for(rung.wait(), 30)
        assert loop.time() - began_s >= 0.14

    run(scenario())


def test_a_timer_that_lacks_less_than_a_millisecond_is_waited_for(run: Run) -> None:
    async def scenario() -> None:
        clock, rung = ServiceClock(asyncio.get_running_loop(), Ahead()), list[str]()
        for _ in range(20):
            clock.call_later(HOUR_MS + 1, lambda: rung.append("rung"))
            clock.forward(HOUR_MS)
            await clock.rung(limit_s=10)
        assert len(rung) == 20

    run(scenario())


def test_a_cancelled_timer_does_not_ring_nor_one_twice(run: Run) -> None:
    async def scenario() -> None:
        clock, rung = ServiceClock(asyncio.get_running_loop(), Ahead()), list[str]()
        once = clock.call_later(10, lambda: rung.append("once"))
        never = clock.call_later(HOUR_MS, lambda: rung.append("never"))
        moved = clock.call_later(2 * HOUR_MS, lambda: rung.append("moved"))
        never.cancel()
        clock.forward(HOUR_MS)
        moved.cancel()
        await clock.rung(limit_s=10)
        clock.forward(2 * HOUR_MS)
        await clock.rung(limit_s=10)
        assert rung == ["once"]
        once.cancel()
        never.cancel()

    run(scenario())


def test_what_is_set_behind_a_timer_is_waited_for_up_to_the_limit(run: Run) -> None:
    async def scenario() -> None:
        clock, rung = ServiceClock(asyncio.get_running_loop(), Ahead()), list[int]()

        def again() -> None:
            rung.append(1)
            if len(rung) < 50:
                clock.call_later(0, again)

        clock.call_later(HOUR_MS, again)
        clock.forward(HOUR_MS)
        await clock.rung(limit_s=30)
        assert len(rung) == 50

        def without_end() -> None:
            clock.call_later(0, without_end)

        without_end()
        await asyncio.wait_for(clock.rung(limit_s=0.05), 30)

    run(scenario())


@pytest.mark.parametrize("ends_tokens", [False, True])
def test_time_passes_for_tokens_when_it_is_said(run: Run, ends_tokens: bool) -> None:
    async def scenario() -> None:
        ahead = Ahead()
        clock = ServiceClock(asyncio.get_running_loop(), ahead)
        clock.forward(HOUR_MS, tokens_by_ms=HOUR_MS if ends_tokens else 0)
        assert ahead == Ahead(HOUR_MS, HOUR_MS if ends_tokens else 0)

    run(scenario())
