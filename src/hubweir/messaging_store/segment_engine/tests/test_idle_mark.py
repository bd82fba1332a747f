"""idle_mark.py: which logs get a mark, and when those of one store are due."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hubweir.env import Lane
from hubweir.kernels.stored_batch import KIND_CONTROL
from hubweir.messaging_store.control_batch import CONTROL_IDLE_MARK, IDLE, control_of
from hubweir.messaging_store.disk.recovery import recover
from hubweir.messaging_store.record import headers_of
from hubweir.messaging_store.segment_engine import idle_mark
from hubweir.messaging_store.segment_engine.idle_mark import DueMarks, IdleMark
from hubweir.testing.memory_faults import Fault
from hubweir.testing.simulated_env import SimulatedEnv

DELAY_MS = 100


def marks(bench) -> list[bytes]:
    return [
        control_of(run.data, header)[1]
        for run in bench.runs()
        for header in headers_of(run.data)
        if header.kind == KIND_CONTROL and control_of(run.data, header)[0] == CONTROL_IDLE_MARK
    ]


def due(bench) -> dict[IdleMark, int]:
    """What is due of the bench's store, and when."""
    return bench.store._marks._due_ms


def test_an_idle_log_is_vouched_for_within_a_second(bench) -> None:
    bench.append(b"a")
    assert marks(bench) == []
    bench.env.run_for(1000)
    assert marks(bench) == [IDLE]
    *_, last = (header for run in bench.runs() for header in headers_of(run.data))
    assert last.durable_upto == 1


def test_one_mark_is_enough_until_something_comes(bench) -> None:
    bench.append(b"a")
    while not marks(bench):
        bench.env.run_for(10)
    assert not due(bench), "nothing is due for it any more"
    bench.env.run_for(10_000)
    assert len(marks(bench)) == 1
    bench.append(b"b")
    bench.env.run_for(10_000)
    assert len(marks(bench)) == 2


def test_a_busy_log_writes_no_mark(bench) -> None:
    for _ in range(30):
        bench.append(b"a", wait_ms=200)
    assert marks(bench) == []


def test_a_relaxed_log_is_marked_after_its_sync(relaxed) -> None:
    relaxed.append(b"a")
    relaxed.append(b"b")
    relaxed.env.run_for(2000)
    *_, last = (header for run in relaxed.runs() for header in headers_of(run.data))
    assert (last.kind, last.durable_upto) == (KIND_CONTROL, 2)


def test_a_clean_stop_leaves_its_own_mark(bench) -> None:
    bench.append(b"a")
    bench.store.close(lambda: None)
    bench.env.run()
    folder = bench.folder
    assert recover(bench.env.files, folder, bench.log.log_id).clean


def test_a_log_that_was_closed_cleanly_and_got_nothing_since_needs_no_mark(bench) -> None:
    bench.append(b"a")
    bench.reopen(close=True)
    before = marks(bench)
    bench.log._commit.roll()
    bench.env.run_for(10_000)
    assert marks(bench) == before


def test_a_closed_log_is_not_due(bench) -> None:
    """What is due is kept until then, with the whole log behind it."""
    bench.append(b"a")
    bench.log.close(lambda: None)
    bench.env.run_for(100)
    assert not due(bench)


def test_a_log_that_a_fault_stopped_is_marked_when_it_is_back(bench) -> None:
    bench.append(b"a")
    state = bench.log._state
    state.steps.run(lambda: 1 // 0)
    bench.env.run_for(1)
    assert not due(bench), "nothing is due while it is offline"
    bench.env.run_for(10_000)
    assert state.health.offline is None and marks(bench)[-1:] == [IDLE]
    *_, last = (header for run in bench.runs() for header in headers_of(run.data))
    assert (last.kind, last.durable_upto) == (KIND_CONTROL, last.number)


def test_a_log_that_is_busy_when_its_mark_is_due_is_marked_when_it_is_idle(bench) -> None:
    """A mark beside a round would not vouch for what the round writes."""
    bench.append(b"a", wait_ms=bench.settings.idle_mark_ms - 100)
    bench.env.stall(Lane.WRITES)
    bench.append(b"b", wait_ms=3_000)
    bench.env.go_on(Lane.WRITES)
    bench.env.run_for(3_000)
    *_, last = (header for run in bench.runs() for header in headers_of(run.data))
    assert marks(bench) == [IDLE] and last.durable_upto == last.number == 2


def test_a_log_that_goes_offline_with_a_mark_due_writes_none(bench) -> None:
    bench.append(b"a")
    bench.env.run_for(500)
    bench.env.files.plan(Fault.EIO, forever=True)
    bench.append(b"refused", wait_ms=10_000)
    assert bench.counters.get("log.refused") == 1, "but for what was sent nothing waited to be written"


def test_a_relaxed_log_that_closes_with_records_in_its_queue_is_not_due(relaxed) -> None:
    relaxed.append(b"a")
    relaxed.append(b"b", wait_ms=0)
    relaxed.log.close(lambda: None)
    relaxed.env.run_for(200)
    assert not due(relaxed)


def test_the_time_of_a_mark_does_not_go_back_with_the_clock(bench) -> None:
    before = bench.append(b"a").enqueued_time_ms
    bench.env.jump(-7_200_000)
    bench.env.crash()
    bench.env = bench.env.restart()
    bench.open()
    bench.append(b"b")
    bench.env.run_for(2_000)
    assert marks(bench)
    assert all(header.enqueued_time_ms >= before for run in bench.runs() for header in headers_of(run.data))
    bench.reopen()
    assert bench.append(b"c").enqueued_time_ms >= before


class Noted:
    def __init__(self, env: SimulatedEnv, then: Callable[[], None] = lambda: None) -> None:
        self._env = env
        self._then = then
        self.due_at: list[int] = []

    def due(self) -> None:
        self.due_at.append(self._env.monotonic_ms())
        self._then()


@pytest.fixture
def env() -> SimulatedEnv:
    return SimulatedEnv(1)


@pytest.fixture
def due_marks(env: SimulatedEnv) -> DueMarks:
    return DueMarks(env, DELAY_MS)


def test_each_is_due_once_a_while_after_its_time_began(env: SimulatedEnv, due_marks: DueMarks) -> None:
    begun, noted = env.monotonic_ms(), [Noted(env) for _ in range(3)]
    for mark in noted:
        due_marks.begin(mark)
        env.run_for(30)
    env.run()
    assert [mark.due_at for mark in noted] == [[begun + DELAY_MS], [begun + 30 + DELAY_MS], [begun + 60 + DELAY_MS]]
    assert env.monotonic_ms() == begun + 60 + DELAY_MS, "nothing rings afterwards"


def test_a_time_that_begins_again_is_over_later_and_holds_up_no_other(env: SimulatedEnv, due_marks: DueMarks) -> None:
    begun, first, second = env.monotonic_ms(), Noted(env), Noted(env)
    due_marks.begin(first)
    env.run_for(10)
    due_marks.begin(second)
    env.run_for(50)
    due_marks.begin(first)
    env.run()
    assert (second.due_at, first.due_at) == ([begun + 10 + DELAY_MS], [begun + 60 + DELAY_MS])


def test_what_is_forgotten_is_not_due_and_keeps_no_timer(env: SimulatedEnv, due_marks: DueMarks) -> None:
    kept, forgotten = Noted(env), Noted(env)
    due_marks.begin(kept)
    due_marks.begin(forgotten)
    due_marks.forget(forgotten)
    due_marks.forget(forgotten)
    env.run()
    assert len(kept.due_at) == 1 and forgotten.due_at == []
    begun = env.monotonic_ms()
    due_marks.begin(forgotten)
    due_marks.forget(forgotten)
    env.run()
    assert env.monotonic_ms() == begun and forgotten.due_at == []
    due_marks.begin(kept)
    env.run()
    assert len(kept.due_at) == 2


def test_one_whose_time_begins_when_it_is_due_comes_again(env: SimulatedEnv, due_marks: DueMarks) -> None:
    begun, noted = env.monotonic_ms(), Noted(env, lambda: due_marks.begin(noted) if len(noted.due_at) < 3 else None)
    other = Noted(env)
    due_marks.begin(noted)
    env.run_for(1)
    due_marks.begin(other)
    env.run()
    assert noted.due_at == [begun + number * DELAY_MS for number in (1, 2, 3)]
    assert other.due_at == [begun + 1 + DELAY_MS]


def test_of_many_that_are_due_at_once_some_come_a_turn_in_order_and_all_in_time(
    env: SimulatedEnv, due_marks: DueMarks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idle_mark, "MARKS_AT_ONCE", 2)
    order: list[int] = []
    noted = [Noted(env, lambda number=number: order.append(number)) for number in range(5)]  # type: ignore[misc]
    turns, call_later = [], env.call_later

    def counted(delay_ms: int, callback: Callable[[], None]) -> object:
        def turn() -> None:
            before = len(order)
            callback()
            turns.append(len(order) - before)

        return call_later(delay_ms, turn)

    monkeypatch.setattr(env, "call_later", counted)
    begun = env.monotonic_ms()
    for mark in noted:
        due_marks.begin(mark)
    env.run()
    assert turns == [2, 2, 1] and order == list(range(5))
    assert all(mark.due_at == [begun + DELAY_MS] for mark in noted)
