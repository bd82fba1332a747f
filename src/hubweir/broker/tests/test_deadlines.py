"""Deadlines are due at their millisecond, in order, once, and not when they were cancelled; and what would break that.

A model arms, cancels and arms again at random, in virtual time, and holds what was due against a sorted list.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from hubweir.broker import deadlines as module
from hubweir.broker.deadlines import DUE_A_TURN, SPAN_MS, BrokerDeadlines, Deadline
from hubweir.broker.tests.conftest import HandEnv
from hubweir.testing.simulated_env import SimulatedEnv

SEEDS = range(30)
HORIZONS = (0, 1, 5, 100, SPAN_MS - 1, SPAN_MS, SPAN_MS + 1, 3 * SPAN_MS, 60_000)


class Violation(AssertionError):
    """One was due at another time or in another order than it should, twice, or though it was cancelled."""


class Model:
    """Deadlines and what they should do: key -> (at_ms, order of arming)."""

    def __init__(self, seed: int) -> None:
        self.random, self.env = Random(seed), SimulatedEnv(seed)
        self.deadlines = BrokerDeadlines(self.env)
        self.armed: dict[int, tuple[int, int]] = {}
        self.handles: dict[int, Deadline] = {}
        self.last = 0
        self.fired = 0

    def arm(self) -> None:
        self.last += 1
        at_ms = self.env.monotonic_ms() + self.random.choice(HORIZONS) + self.random.randrange(3)
        self.armed[self.last] = at_ms, self.last
        self.handles[self.last] = self.deadlines.arm(at_ms, self, self.last)

    def cancel(self) -> None:
        key = self.random.choice(list(self.handles))
        self.deadlines.cancel(self.handles[key])  # some are over
        self.armed.pop(key, None)

    def due(self, key: int, now_ms: int) -> None:
        wanted = min(self.armed, key=lambda each: self.armed[each], default=None)
        if key != wanted:
            raise Violation(f"{key} is due where {wanted} should be")
        at_ms, _ = self.armed.pop(key)
        if not at_ms == now_ms == self.env.monotonic_ms():
            raise Violation(f"{key} of {at_ms} is due at {now_ms}")
        self.fired += 1
        if self.random.random() < 0.3:
            self.arm()
        if self.random.random() < 0.1:
            self.cancel()

    def play(self, steps: int = 300) -> Model:
        for _ in range(steps):
            for _ in range(self.random.randrange(4)):
                self.arm()
            if self.handles and self.random.random() < 0.5:
                self.cancel()
            self.env.run_for(self.random.choice((1, 7, 300, 2_000)))
            late = [key for key, (at_ms, _) in self.armed.items() if at_ms <= self.env.monotonic_ms()]
            if late:
                raise Violation(f"{late} were not due in time")
            if len(self.deadlines) != len(self.armed):
                raise Violation(f"{len(self.deadlines)} are armed where {len(self.armed)} should be")
        return self


@pytest.mark.parametrize("seed", SEEDS)
def test_each_is_due_at_its_millisecond_in_order_and_once(seed: int) -> None:
    model = Model(seed).play()
    assert model.fired > 200 and len(model.armed) > 5, "near ones and far ones were tried"


def order_turned_round(patch: pytest.MonkeyPatch) -> None:
    push: Callable[[list[Any], Any], None] = module.heappush

    def last_first(heap: list[Any], entry: Any) -> None:
        push(heap, (entry[0], -entry[1], entry[2]) if isinstance(entry, tuple) else entry)

    patch.setattr(module, "heappush", last_first)


def a_millisecond_late(patch: pytest.MonkeyPatch) -> None:
    arm = BrokerDeadlines.arm
    patch.setattr(BrokerDeadlines, "arm", lambda self, at_ms, whose, key=None: arm(self, at_ms + 1, whose, key))


def a_millisecond_early(patch: pytest.MonkeyPatch) -> None:
    call_due = BrokerDeadlines._call_due
    patch.setattr(BrokerDeadlines, "_call_due", lambda self, now_ms: call_due(self, now_ms + 1))


def cancelled_and_due(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BrokerDeadlines, "cancel", lambda self, deadline: None)


@pytest.mark.parametrize("defect", [order_turned_round, a_millisecond_late, a_millisecond_early, cancelled_and_due])
def test_a_planted_defect_is_found(
    defect: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    defect(monkeypatch)
    with pytest.raises(Violation):
        for seed in SEEDS:
            Model(seed).play()


class Told:
    """Remembers what is due; `then` is called with each."""

    def __init__(self, then: Callable[[Any], None] = lambda key: None) -> None:
        self.keys: list[Any] = []
        self._then = then

    def due(self, key: Any, now_ms: int) -> None:
        self.keys.append(key)
        self._then(key)


class Bench:
    """With timers that the test rings, one turn after the other."""

    def __init__(self) -> None:
        self.env = HandEnv()
        self.deadlines = BrokerDeadlines(self.env)  # type: ignore[arg-type]

    def turn(self, ms: int = 0) -> None:
        """Let this much time pass, then ring once what is to ring by then."""
        self.env._advance(self.env.elapsed_ms + ms)
        due = [timer for timer in self.env._timers if not timer.over and timer.at_ms <= self.env.elapsed_ms]
        for timer in due:
            timer.over = True
            timer.callback()


@pytest.mark.parametrize("delay_ms", [5, 2 * SPAN_MS])
def test_a_turn_calls_some_and_the_next_turns_call_the_rest(delay_ms: int) -> None:
    bench, told = Bench(), Told()
    bench.turn()
    for number in range(2 * DUE_A_TURN + 1):
        bench.deadlines.arm_in(delay_ms, told, number)
    counts = []
    for ms in (delay_ms, 0, 0, 0):
        bench.turn(ms)
        counts.append(len(told.keys))
    assert counts == [DUE_A_TURN, 2 * DUE_A_TURN, 2 * DUE_A_TURN + 1, 2 * DUE_A_TURN + 1]
    assert told.keys == list(range(2 * DUE_A_TURN + 1)) and bench.env.timers == 0


def test_a_span_of_many_comes_into_the_heap_over_turns_and_none_is_due_before_all_are_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What stood there first may not be what is due first."""
    monkeypatch.setattr(module, "MOVED_A_TURN", 10)
    bench, told = Bench(), Told()
    start_ms = 5 * SPAN_MS
    for number in range(25):
        bench.deadlines.arm(start_ms + 25 - number, told, number)
    for _ in range(2):
        bench.turn(start_ms + 100 - bench.env.elapsed_ms)
        assert told.keys == []
    bench.deadlines.arm(start_ms, told, "came meanwhile")
    bench.turn()
    assert told.keys == ["came meanwhile", *reversed(range(25))]


def test_spans_that_have_begun_together_share_what_comes_into_the_heap_in_one_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MOVED_A_TURN", 5)
    bench, told = Bench(), Told()
    for number in range(12):
        bench.deadlines.arm((1 + number // 4) * SPAN_MS, told, number)
    counts = []
    for ms in (4 * SPAN_MS, 0, 0):
        bench.turn(ms)
        counts.append(len(told.keys))
    assert counts == [4, 8, 12] and told.keys == list(range(12))


def test_one_that_is_armed_for_now_has_the_next_turn_even_by_one_that_is_due() -> None:
    """Work that arms itself again until it is done would else keep the loop."""
    bench = Bench()
    told = Told(lambda key: None if key == 3 else again.append(bench.deadlines.arm_in(0, told, key + 1)))
    again = list[Deadline]()
    bench.deadlines.arm_in(0, told, 0)
    for count in (1, 2, 3, 4, 4):
        bench.turn()
        assert len(told.keys) == count
    assert told.keys == [0, 1, 2, 3]


def test_a_fault_in_one_keeps_no_other_from_being_due() -> None:
    def fault(key: int) -> None:
        if key == 1:
            raise ZeroDivisionError("planted")

    bench, told = Bench(), Told(fault)
    for number in range(3):
        bench.deadlines.arm(10, told, number)
    bench.deadlines.arm(3 * SPAN_MS, told, "far")
    with pytest.raises(ZeroDivisionError):
        bench.env.pass_time(10)
    bench.env.pass_time(0)
    assert told.keys == [0, 1, 2]
    bench.env.pass_time(3 * SPAN_MS)
    assert told.keys == [0, 1, 2, "far"]


def test_a_timer_that_rings_early_calls_nothing_early() -> None:
    """Loops keep their own time, which may be behind the monotonic clock by what a turn took."""
    bench, told = Bench(), Told()
    bench.turn()
    bench.deadlines.arm(10, told, "near")
    for ms in (4, 5):
        [timer] = [timer for timer in bench.env._timers if not timer.over]
        timer.at_ms = bench.env.elapsed_ms + ms
        bench.turn(ms)
        assert told.keys == []
    bench.turn(1)
    assert told.keys == ["near"]


@pytest.mark.parametrize("delay_ms", [10, 3 * SPAN_MS])
def test_with_nothing_armed_no_timer_rings(delay_ms: int) -> None:
    bench, told = Bench(), Told()
    bench.deadlines.arm_in(1, told)
    bench.env.pass_time(1)
    assert bench.env.timers == 0 and len(bench.deadlines) == 0
    handles = [bench.deadlines.arm_in(delay_ms + number, told) for number in range(3)]
    assert bench.env.timers == 1
    for left, handle in zip((2, 1, 0), handles, strict=True):
        bench.deadlines.cancel(handle)
        bench.deadlines.cancel(handle)
        assert len(bench.deadlines) == left
    assert bench.env.timers == 0
    bench.env.pass_time(2 * delay_ms)
    assert told.keys == [None]
    bench.deadlines.arm_in(delay_ms, told, "again")
    cancelled = bench.deadlines.arm_in(delay_ms + 1, told)
    bench.deadlines.cancel(cancelled)
    bench.env.pass_time(delay_ms)
    assert bench.env.timers == 0
    assert told.keys == [None, "again"]


def test_one_timer_rings_for_all_and_for_the_soonest() -> None:
    bench, told = Bench(), Told()
    bench.turn()
    for at_ms in (500, 9_000, 20, 70_000, 300):
        bench.deadlines.arm(at_ms, told, at_ms)
        assert bench.env.timers == 1
    bench.env.pass_time(19)
    assert told.keys == []
    bench.env.pass_time(1)
    assert told.keys == [20]
    bench.env.pass_time(70_000)
    assert told.keys == [20, 300, 500, 9_000, 70_000] and bench.env.timers == 0


def test_hundreds_of_thousands_that_are_cancelled_long_before_their_time_leave_nothing() -> None:
    """Locks last a minute, and most are settled within milliseconds."""
    bench, told = Bench(), Told()
    kept = bench.deadlines.arm(50_000, told, "kept")
    for _ in range(100):
        handles = [bench.deadlines.arm_in(60_000 + number % 100, told, number) for number in range(2_000)]
        for handle in handles:
            bench.deadlines.cancel(handle)
        bench.env.pass_time(10)
    assert len(bench.deadlines) == 1 and kept.whose is told
    assert sum(map(len, bench.deadlines._far.values())) + len(bench.deadlines._near) == 1
    assert len(bench.deadlines._far) < 10


@pytest.mark.parametrize("how", ["cancelled", "due"])
def test_whoever_has_none_armed_is_not_held(how: str) -> None:
    gc.disable()
    try:
        bench, told = Bench(), Told()
        key = Told()
        handle = bench.deadlines.arm_in(10, told, key)
        other = bench.deadlines.arm_in(10_000, Told())
        if how == "cancelled":
            bench.deadlines.cancel(handle)
        else:
            bench.env.pass_time(10)
        gone = [weakref.ref(told), weakref.ref(key)]
        del told, key
        assert [each() for each in gone] == [None, None] and handle.whose is None and other.whose is not None
    finally:
        gc.enable()
