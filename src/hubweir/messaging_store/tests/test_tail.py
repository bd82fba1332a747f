from __future__ import annotations

import pytest
from msgspec.structs import replace

from hubweir.messaging_store.completion import LogEnd, complete_run
from hubweir.messaging_store.control_batch import CONTROL_IDLE_MARK, pack_control
from hubweir.messaging_store.tail import Tail, TailRun


@pytest.fixture
def add(make_events):
    """Add a run of these batches behind what the tail holds; returns its size."""
    ends = {"index": 0, "offset": 0, "time": 100}

    def add_to(tail: Tail, *batches: list[bytes], keep_from: int = 10**9, skip: int = 0) -> int:
        run = make_events(*batches)
        first = ends["index"] + skip
        end = complete_run(
            run,
            LogEnd(first, ends["offset"], number=first),
            nonce=1,
            enqueued_time_ms=ends["time"],
            durable_upto=0,
            writer_epoch=1,
        )
        ends.update(index=end.index, offset=end.offset)
        tail.add(TailRun(first, memoryview(run), first, end.index, end.offset, ends["time"]))
        tail.shrink(keep_from)
        ends["time"] += 100
        return len(run)

    return add_to


def test_runs_are_joined_up_to_the_bytes_asked_for(add, read_messages) -> None:
    tail = Tail(10**6, 0)
    size = add(tail, [b"a"])
    add(tail, [b"b"])
    add(tail, [b"c"])
    assert [list(read_messages(tail.read(0, n * size).data)) for n in (0, 1, 2, 3, 9)] == [
        [0], [0], [0, 1], [0, 1, 2], [0, 1, 2],
    ]  # fmt: skip


def test_a_run_is_cut_between_its_batches(add, read_messages) -> None:
    tail = Tail(10**6, 0)
    size = add(tail, [b"a", b"b"], [b"c"], [b"d"])
    run = tail.read(2, 1)
    assert (run.first_index, run.next_index, read_messages(run.data)) == (2, 3, {2: b"c"})
    assert isinstance(tail.read(0, size).data, memoryview)
    assert (tail.read(1, 1).first_index, tail.read(3, size).next_index) == (0, 4)
    assert tail.read(4, size) is None


def test_old_runs_go_when_there_are_too_many_bytes(add) -> None:
    tail = Tail(500, 0)
    for number in range(1000):
        add(tail, [b"%d" % number])
    assert tail.start_index > 990 and tail.read(tail.start_index, 1).first_index == tail.start_index
    assert tail.read(999, 1).next_index == 1000 and tail.first_run().first_index == tail.start_index
    assert len(tail._runs) < 1000


def test_what_is_not_synced_is_never_dropped(add) -> None:
    tail = Tail(100, 0)
    for number in range(20):
        add(tail, [b"%d" % number], keep_from=5)
    assert tail.start_index == 5 and len(tail.runs_from(7)) == 13
    tail.shrink(20)
    assert tail.start_index == 19


def control(number: int, index: int) -> TailRun:
    """A control batch: it has a number, and takes no index."""
    run = pack_control(CONTROL_IDLE_MARK, bytes(16))
    complete_run(run, LogEnd(index, number=number), nonce=1, enqueued_time_ms=1, durable_upto=0, writer_epoch=1)
    return TailRun(number, memoryview(run), index, index, 0, 1)


def test_a_control_batch_that_is_not_synced_is_kept_though_every_record_before_it_is(add) -> None:
    tail = Tail(100, 0)
    add(tail, [b"a"], keep_from=1)
    for number in (1, 2):
        tail.add(control(number, 1))
        tail.shrink(1)
    assert len(tail.runs_from(1)) == 2
    tail.shrink(2)
    assert len(tail.runs_from(0)) == 1


def test_a_control_batch_that_was_never_shown_is_forgotten(add) -> None:
    tail = Tail(10**6, 0)
    add(tail, [b"a"])
    tail.add(control(1, 1))
    tail.forget_from(1)
    assert len(tail.runs_from(0)) == 1 and tail.read(0, 1).next_index == 1


def test_numbers_that_were_skipped_lead_to_the_next_record(add) -> None:
    tail = Tail(10**6, 0)
    add(tail, [b"a"])
    add(tail, [b"b"], skip=1000)
    assert tail.read(500, 1).first_index == 1001


def test_offsets_and_times_are_found(add) -> None:
    tail = Tail(10**6, 0)
    for number in range(5):
        add(tail, [b"%d" % number])
    assert tail.find_offset(33).first_index == 1 and tail.find_offset(0).first_index == 0
    assert tail.find_offset(5 * 33) is None
    assert [tail.find_time(time_ms) for time_ms in (0, 100, 101, 500, 501)] == [0, 0, 1, 4, None]


def test_a_time_is_that_of_a_record_and_never_of_a_control_batch(add) -> None:
    tail = Tail(10**6, 0)
    add(tail, [b"a"])
    for number in (1, 2, 3):
        tail.add(replace(control(number, 1), time_ms=150))
    assert tail.find_time(101) is None
    add(tail, [b"b"])
    assert [tail.find_time(time_ms) for time_ms in (100, 101, 150, 151, 201)] == [0, 1, 1, 1, None]
