from __future__ import annotations

import pytest

from hubweir.errors import DiskFull, KernelRefusal, LogFenced, LogOffline
from hubweir.messaging_store.log import Appended, Bounds, Durability, Log, Run
from hubweir.messaging_store.record import headers_of
from hubweir.messaging_store.retention import expire
from hubweir.testing.answers import made_log
from hubweir.testing.garbage import left_for_collections
from hubweir.testing.memory_files import Fault


def test_it_is_a_log(bench) -> None:
    log: Log = bench.log
    assert log.log_id == "ab" * 16 and log.durability is Durability.DURABLE
    assert log.lease.writer_epoch == bench.store.writer_epoch == 1


def test_an_append_says_where_it_is_put_and_later_that_it_is_there(bench) -> None:
    appended = bench.append(b"one", b"three", wait_ms=0)
    assert appended == Appended(0, 2, 0, 72, bench.env.now_ms())
    assert bench.outcomes == [] and bench.log.bounds.next_index == 0
    bench.env.run_for(100)
    assert bench.outcomes == [appended]
    assert bench.log.bounds == Bounds(0, 2, 0, 72, 35, appended.enqueued_time_ms, 1)


def test_nothing_is_readable_before_it_is_synced(bench) -> None:
    bench.append(b"one", wait_ms=0)
    bench.env.turn()
    assert bench.read(0) == Run(b"", 0, 0)
    bench.env.run_for(100)
    assert bench.everything() == {0: b"one"}


def test_a_relaxed_append_is_readable_at_the_end_of_the_turn(relaxed) -> None:
    relaxed.append(b"makes the segment")
    relaxed.append(b"one", wait_ms=0)
    relaxed.env.turn()
    assert len(relaxed.outcomes) == 2 and relaxed.everything()[1] == b"one"
    assert relaxed.log._state.synced.index == 1
    relaxed.env.run_for(100)
    assert relaxed.log._state.synced.index == 2


def test_tickets_are_answered_in_order(bench) -> None:
    appended = [bench.append(b"%d" % number, wait_ms=number % 3) for number in range(20)]
    bench.env.run_for(1000)
    assert bench.outcomes == appended


def test_an_empty_run_is_a_mistake(bench) -> None:
    with pytest.raises(KernelRefusal):
        bench.log.append(bytearray(), now_ms=0, on_done=bench.outcomes.append)


def test_enqueued_time_never_goes_back(bench, make_events) -> None:
    first = bench.log.append(make_events([b"a"]), now_ms=5000, on_done=bench.outcomes.append)
    second = bench.log.append(make_events([b"b"]), now_ms=4000, on_done=bench.outcomes.append)
    assert (first.enqueued_time_ms, second.enqueued_time_ms) == (5000, 5000)


def test_a_control_batch_takes_no_number(bench) -> None:
    bench.append(b"a")
    bench.control(wait_ms=0)
    bench.append(b"b")
    assert bench.everything() == {0: b"a", 1: b"b"}
    counts = [header.count for run in bench.runs() for header in headers_of(run.data)]
    assert counts.count(0) == 1 and sum(counts) == 2


def test_the_watermark_is_announced_once_a_round(bench) -> None:
    moves: list[int] = []
    bench.log.on_visible(lambda: moves.append(bench.log.bounds.next_index))
    bench.append(b"a", wait_ms=0)
    bench.append(b"b", wait_ms=0)
    bench.env.run_for(100)
    assert moves == [2]


def test_a_fenced_or_closed_log_takes_nothing(bench) -> None:
    bench.log.fence(LogFenced("another one"))
    with pytest.raises(LogFenced):
        bench.append(b"a")
    bench.reopen()
    bench.log.close(lambda: None)
    with pytest.raises(LogOffline):
        bench.append(b"a")


def test_a_newer_owner_of_the_store_fences_at_the_next_segment(bench) -> None:
    bench.take_over()
    bench.append(b"a")
    assert isinstance(bench.outcomes[0].error, LogFenced) and bench.outcomes[0].known
    with pytest.raises(LogFenced):
        bench.append(b"b")


def test_a_full_disk_refuses_and_heals(bench) -> None:
    bench.append(b"kept")
    bench.env.files.capacity_bytes = 0
    bench.append(b"refused, for it needs a new segment" * 150)
    assert isinstance(bench.outcomes[-1].error, DiskFull) and bench.outcomes[-1].known
    with pytest.raises(DiskFull):
        bench.append(b"refused at once")
    bench.env.files.capacity_bytes = 1 << 30
    again = bench.append(b"healed")
    assert again.first_index == 1 and bench.outcomes[-1] == again
    bench.reopen(power_cut=True)
    assert bench.everything() == {0: b"kept", 1: b"healed"}


def test_a_changed_mode_starts_a_new_segment(bench) -> None:
    bench.append(b"a")
    bench.log.set_durability(Durability.RELAXED)
    bench.append(b"b")
    assert len(bench.segments()) == 2
    bench.reopen(close=True)
    assert bench.everything() == {0: b"a", 1: b"b"}


def test_a_log_that_was_refused_goes_on_with_the_last_space(bench) -> None:
    bench.append(b"a")
    files = bench.env.files
    files.capacity_bytes = files.capacity_bytes - files.free_bytes()
    bench.append(bytes(2 << 20))
    assert isinstance(bench.outcomes[-1].error, DiskFull)
    files.capacity_bytes += 1700 << 10
    bench.append(b"fits")
    assert isinstance(bench.outcomes[-1], Appended)


@pytest.mark.own_interpreter
def test_a_log_that_is_closed_or_deleted_is_freed_without_a_collection(bench, make_events) -> None:
    """Whatever it did before: reads and searches of files, a roll, a snapshot, a failed sync, an expiry."""
    bench.append(b"first")

    def life(log_id: str, *, delete: bool) -> None:
        log = made_log(bench.env, bench.store, log_id)
        log.on_visible(lambda: log.bounds)
        for number in range(20):
            log.append(make_events([bytes(400)]), now_ms=bench.env.now_ms(), on_done=lambda _: None)
            if number == 10:
                bench.env.files.plan(Fault.SYNC_EIO)
            bench.env.run_for(100)
        log.read(0, max_bytes=1, on_done=lambda _: None)
        log.find_time(bench.env.now_ms() - 1500, lambda _: None)
        log.save_snapshot(b"state", lambda _: None)
        bench.env.run_for(2000)
        expire(log, now_ms=bench.env.now_ms(), retention_ms=1)
        bench.env.run_for(2000)
        bench.store.close_log(log_id, lambda: None)
        bench.env.run_for(500)
        if delete:
            bench.store.delete_log(log_id, lambda _: None)
            bench.env.run_for(500)

    life("ee" * 16, delete=True)  # what is made once and kept is made now
    for delete in (False, True):
        found = left_for_collections(lambda delete=delete: life(f"{delete:032x}", delete=delete))
        assert not {name: count for name, count in found.items() if name.startswith("hubweir.")}


def test_a_closed_log_gives_the_memory_of_its_tail_back(bench) -> None:
    bench.append(bytes(100))
    assert bench.log._state.tail.first_run() is not None
    bench.store.close(lambda: None)
    bench.env.run_for(1000)
    assert bench.log._state.tail.first_run() is None and bench.log.bounds.next_index == 1
