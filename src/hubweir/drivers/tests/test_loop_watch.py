"""The beat of a loop: how late it comes is counted, by a clock that the test moves and on real loops."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from hubweir.counters import Counters
from hubweir.drivers.garbage_collector import THRESHOLDS, GarbageCollector
from hubweir.drivers.loop_watch import BEAT_MS, QUIET_MS, STALL_MS, LoopWatch

Run = Callable[[Coroutine[Any, Any, Any]], Any]
pytestmark = [pytest.mark.own_interpreter, pytest.mark.usefixtures("interpreters_own_collections")]


class HandTimer:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback = callback
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class HandLoop:
    """A loop with one timer, and a clock; `beat` runs the timer so many milliseconds late."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.timers: list[HandTimer] = []
        self.connections = 0
        self.counters = Counters()
        self.collector = GarbageCollector()  # this loop's own: services of other tests beat in this process, too
        self.watch = LoopWatch(
            self.call_later,
            self.counters,
            lambda: self.connections,
            collector=self.collector,
            clock=lambda: self.now_s,
        )

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> HandTimer:
        assert delay_s == BEAT_MS / 1000
        self.timers.append(HandTimer(callback))
        return self.timers[-1]

    def beat(self, late_ms: float = 0) -> None:
        self.now_s += (BEAT_MS + late_ms) / 1000
        self.timers[-1].callback()

    def stalls(self) -> tuple[int, int]:
        return self.counters["loop.stalls"], self.counters["loop.longest_stall_ms"]


@pytest.fixture
def loop() -> Iterator[HandLoop]:
    made = HandLoop()
    made.watch.start()
    yield made
    made.watch.stop()


def test_a_late_beat_is_a_stall_and_the_longest_is_kept(loop: HandLoop) -> None:
    seen = []
    for late_ms in (0.1, STALL_MS - 0.9, STALL_MS + 1.5, 400.5, 30.5, 0):
        loop.beat(late_ms)
        seen.append(loop.stalls())
    assert seen == [(0, 0), (0, STALL_MS - 1), (1, STALL_MS + 1), (2, 400), (3, 400), (3, 400)]


def test_one_stall_is_counted_once(loop: HandLoop) -> None:
    loop.beat(500)
    loop.beat()
    assert loop.stalls() == (1, 500)


def test_everything_is_collected_once_when_nobody_was_connected_for_a_minute(
    loop: HandLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    collected: list[int] = []
    monkeypatch.setattr(loop.collector, "collect_all", lambda: collected.append(1))

    def quiet(ms: int) -> int:
        for _ in range(ms // BEAT_MS):
            loop.beat()
        return len(collected)

    assert quiet(2 * QUIET_MS) == 0  # nobody has been here yet
    loop.connections = 1
    assert quiet(2 * QUIET_MS) == 0
    loop.connections = 0
    assert quiet(QUIET_MS - BEAT_MS) == 0
    loop.connections = 1
    quiet(BEAT_MS)
    loop.connections = 0
    assert quiet(QUIET_MS - BEAT_MS) == 0
    assert quiet(BEAT_MS) == 1
    assert quiet(3 * QUIET_MS) == 1


def test_each_beat_keeps_collections_small(loop: HandLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    beats: list[int] = []
    monkeypatch.setattr(loop.collector, "beat", lambda: beats.append(1))
    for _ in range(3):
        loop.beat()
    assert len(beats) == 3


def test_nothing_beats_after_the_end_and_collections_are_the_interpreters_again(loop: HandLoop) -> None:
    assert gc.get_threshold() == THRESHOLDS
    for _ in range(2):
        loop.watch.stop()
        assert loop.timers[-1].is_cancelled and gc.get_threshold() != THRESHOLDS and not gc.get_freeze_count()


def test_a_callback_that_blocks_a_real_loop_is_found(run: Run) -> None:
    async def scenario() -> None:
        counters = Counters()
        watch = LoopWatch(asyncio.get_running_loop().call_later, counters, lambda: 0)
        watch.start()
        await asyncio.sleep(0.2)
        before = counters["loop.stalls"]
        time.sleep(0.15)
        await asyncio.sleep(0.15)
        watch.stop()
        assert counters["loop.stalls"] > before and counters["loop.longest_stall_ms"] >= 95

    run(scenario())
