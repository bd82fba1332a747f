from __future__ import annotations

import pytest

from hubweir.errors import CorruptStore, DiskFull, KernelRefusal, LogFenced, LogOffline
from hubweir.messaging_store.control_batch import CONTROL_EPOCH, CONTROL_PRODUCER_FENCE
from hubweir.messaging_store.log import Appended, Bounds, Durability, Log, Run
from hubweir.messaging_store.record import headers_of


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
    bench.log.append_control(CONTROL_EPOCH, b"\0\0\0\2", now_ms=bench.env.now_ms())
    bench.append(b"b")
    assert bench.everything() == {0: b"a", 1: b"b"}
    counts = [header.count for run in bench.log.replay() for header in headers_of(run.data)]
    assert counts.count(0) == 1 and sum(counts) == 2


def test_reads_take_one_batch_at_least_and_no_more_bytes_than_asked(bench) -> None:
    for number in range(6):
        bench.append(b"%d" % number * 20)
    one = bench.read(2, max_bytes=1)
    assert (one.first_index, one.next_index) == (2, 3)
    two = bench.read(2, max_bytes=2 * len(one.data))
    assert (two.first_index, two.next_index) == (2, 4)


def test_a_read_inside_a_batch_gives_the_whole_batch(bench) -> None:
    bench.append(b"a", b"b", b"c")
    run = bench.read(1)
    assert (run.first_index, run.next_index) == (0, 3)


def test_cold_and_live_reads_show_the_same(bench, read_messages) -> None:
    written = {}
    for number in range(60):
        written[number] = b"%d-" % number * 40
        bench.append(written[number], wait_ms=5)
    bench.env.run_for(500)
    assert bench.log._state.tail.start_index > 30 and len(bench.segments()) > 1
    assert bench.everything() == written
    for index in (0, 7, 59):
        assert read_messages(bench.read(index, max_bytes=1).data) == {index: written[index]}
    assert bench.counters.get("log.cold_reads") > 1


def test_a_cancelled_read_is_not_answered(bench) -> None:
    bench.append(b"a")
    bench.reopen(close=True)
    answers: list[object] = []
    bench.log.read(0, max_bytes=1, on_done=answers.append).cancel()
    bench.env.run_for(100)
    assert answers == []


def test_offsets_and_times_are_found_cold_and_live(bench) -> None:
    appended = [bench.append(b"x" * 50, b"y" * 60, wait_ms=100) for _ in range(30)]
    for close in (False, True):
        for run in appended:
            assert bench.answer(bench.log.find_offset, run.first_offset) == run.first_index
            assert bench.answer(bench.log.find_offset, run.first_offset + 1) == run.first_index + 1
            assert bench.answer(bench.log.find_offset, run.first_offset + 83) == run.next_index
            assert bench.answer(bench.log.find_time, run.enqueued_time_ms) == run.first_index
            assert bench.answer(bench.log.find_time, run.enqueued_time_ms + 1) == run.next_index
        assert bench.answer(bench.log.find_offset, 10**9) == 60
        assert bench.answer(bench.log.find_time, 0) == 0
        if not close:
            bench.reopen(close=True)


def test_the_watermark_is_announced_once_a_round(bench) -> None:
    moves: list[int] = []
    bench.log.on_visible(lambda: moves.append(bench.log.bounds.next_index))
    bench.append(b"a", wait_ms=0)
    bench.append(b"b", wait_ms=0)
    bench.env.run_for(100)
    assert moves == [2]


def test_a_fenced_or_closed_log_takes_nothing(bench) -> None:
    bench.log.fence()
    with pytest.raises(LogFenced):
        bench.append(b"a")
    bench.reopen()
    bench.log.close(lambda: None)
    with pytest.raises(LogOffline):
        bench.append(b"a")


def test_a_newer_owner_of_the_store_fences_at_the_next_segment(bench) -> None:
    bench.store._highest_epoch = 0  # as if another process had taken the epoch that is on the disk
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


def test_old_segments_expire_and_the_numbers_stay(bench) -> None:
    for number in range(40):
        bench.append(b"%d" % number * 100)
    bounds = bench.log.bounds
    bench.env.run_for(10_000)
    bench.log.expire(now_ms=bench.env.now_ms(), retention_ms=5000)
    bench.env.run_for(200)
    assert bench.log.expire(now_ms=bench.env.now_ms(), retention_ms=5000) == 40
    bench.env.run_for(200)
    assert len(bench.segments()) == 1
    bench.reopen(close=True, power_cut=True)
    after = bench.log.bounds
    assert (after.first_index, after.next_index, after.last_offset) == (40, 40, bounds.last_offset)
    assert (after.next_offset, after.last_time_ms) == (bounds.next_offset, bounds.last_time_ms)
    assert bench.append(b"next").first_index == 40


def test_a_read_before_the_first_index_starts_there(bench) -> None:
    for number in range(40):
        bench.append(b"%d" % number * 100)
    first = bench.log.expire(now_ms=bench.env.now_ms() + 100, retention_ms=1000)
    bench.env.run_for(100)
    assert 0 < first < 40 and bench.read(0, max_bytes=1).first_index == first


def test_a_snapshot_comes_back_with_the_index_it_covers(bench) -> None:
    bench.append(b"a", b"b")
    done: list[object] = []
    bench.log.save_snapshot(b"state of two", done.append)
    bench.env.run_for(100)
    assert done == [None] and bench.log.load_snapshot() == (2, b"state of two")
    bench.reopen(power_cut=True)
    assert bench.log.load_snapshot() == (2, b"state of two")


def test_a_relaxed_snapshot_covers_only_what_is_synced(relaxed) -> None:
    relaxed.append(b"a")
    relaxed.append(b"b", wait_ms=0)
    relaxed.env.turn()
    relaxed.log.save_snapshot(b"two", lambda outcome: None)
    relaxed.env.run_for(100)
    relaxed.reopen(power_cut=True)
    assert relaxed.log.load_snapshot() == (2, b"two") and relaxed.log.bounds.next_index >= 2


def test_a_read_whose_file_is_missing_for_good_is_refused_once(bench) -> None:
    for number in range(40):
        bench.append(b"%03d" % number + bytes(200))
    missing = bench.segments()[0]
    bench.env.files.remove(f"store-0/logs/{bench.log.log_id}/{missing}")
    answers: list[object] = []
    bench.log.read(0, max_bytes=100, on_done=answers.append)
    bench.log.find_offset(40, on_done=answers.append)
    bench.env.run_for(2000)
    assert len(answers) == 2 and all(isinstance(answer.error, CorruptStore) for answer in answers)
    assert missing in bench.store.alarms[0] and len(bench.store.alarms) == 1
    with pytest.raises(CorruptStore, match="missing"):
        list(bench.log.replay())
    behind = int(bench.segments()[0].partition("-")[0])
    assert f"read on from {behind}" in str(answers[0].error)
    assert isinstance(bench.read(behind), Run)


def test_a_log_that_was_refused_goes_on_with_the_last_space(bench) -> None:
    bench.append(b"a")
    files = bench.env.files
    files.capacity_bytes = files.capacity_bytes - files.free_bytes()
    bench.append(bytes(2 << 20))
    assert isinstance(bench.outcomes[-1].error, DiskFull)
    files.capacity_bytes += 1700 << 10
    bench.append(b"fits")
    assert isinstance(bench.outcomes[-1], Appended)


def test_a_control_batch_behind_the_last_record_is_trimmed_only_when_two_later_snapshots_have_it(bench) -> None:
    def snapshot() -> None:
        bench.log.save_snapshot(b"state", lambda outcome: None)
        bench.env.run_for(200)

    def expire() -> int:
        for _ in range(3):
            first = bench.log.expire(now_ms=bench.env.now_ms() + 10_000_000, retention_ms=1)
            bench.env.run_for(200)
        return first

    bench.append(b"a")
    snapshot()
    snapshot()
    bench.log.append_control(CONTROL_PRODUCER_FENCE, b"fence", now_ms=bench.env.now_ms())
    assert expire() == 0
    snapshot()
    assert expire() == 0
    snapshot()
    assert expire() == 1


def test_snapshots_of_an_earlier_process_may_miss_control_batches(bench) -> None:
    bench.append(b"a")
    for _ in range(2):
        bench.log.save_snapshot(b"state", lambda outcome: None)
        bench.env.run_for(200)
    bench.env.run_for(2_000)
    bench.reopen()
    for _ in range(3):
        assert bench.log.expire(now_ms=bench.env.now_ms() + 10_000_000, retention_ms=1) == 0
        bench.env.run_for(200)
