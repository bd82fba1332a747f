from __future__ import annotations

from hubweir.env import Lane
from hubweir.kernels.stored_batch import KIND_CONTROL
from hubweir.messaging_store.control_batch import CONTROL_IDLE_MARK, IDLE, control_of
from hubweir.messaging_store.disk.recovery import recover
from hubweir.messaging_store.record import headers_of
from hubweir.testing.memory_faults import Fault


def marks(bench) -> list[bytes]:
    return [
        control_of(run.data, header)[1]
        for run in bench.runs()
        for header in headers_of(run.data)
        if header.kind == KIND_CONTROL and control_of(run.data, header)[0] == CONTROL_IDLE_MARK
    ]


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
    assert not bench.log._state.marks._due_ms, "nothing is due for it any more"
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
    assert not bench.log._state.marks._due_ms


def test_a_log_that_a_fault_stopped_is_marked_when_it_is_back(bench) -> None:
    bench.append(b"a")
    state = bench.log._state
    state.steps.run(lambda: 1 // 0)
    bench.env.run_for(1)
    assert not state.marks._due_ms, "nothing is due while it is offline"
    bench.env.run_for(10_000)
    assert state.offline is None and marks(bench)[-1:] == [IDLE]
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
    assert not relaxed.log._state.marks._due_ms


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
