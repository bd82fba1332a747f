"""The machine's time on one loop: its clocks are the machine's, and its timers ring in order, and may be ended."""

from __future__ import annotations

import asyncio
import time

from hubweir.drivers.system_time import SystemTime


def test_its_clocks_are_the_machines() -> None:
    machine = SystemTime(asyncio.new_event_loop())
    try:
        before, monotonic = time.time_ns() // 1_000_000, time.monotonic_ns() // 1_000_000
        assert before <= machine.now_ms() <= time.time_ns() // 1_000_000
        assert monotonic <= machine.monotonic_ms() <= time.monotonic_ns() // 1_000_000
    finally:
        machine._loop.close()


def test_a_timer_rings_once_and_never_early_and_one_that_is_cancelled_does_not() -> None:
    async def rung() -> tuple[list[str], float]:
        loop = asyncio.get_running_loop()
        machine, heard, done = SystemTime(loop), [], asyncio.Event()
        began_s = loop.time()
        machine.call_later(30, lambda: heard.append("late"))
        machine.call_later(60, done.set)
        machine.call_later(10, lambda: heard.append("never")).cancel()
        machine.call_later(-5, lambda: heard.append("now"))
        await done.wait()
        return heard, loop.time() - began_s

    heard, took_s = asyncio.run(rung())
    assert heard == ["now", "late"] and took_s >= 0.059
