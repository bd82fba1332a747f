from __future__ import annotations

import errno
from collections.abc import Sequence

import pytest

from hubweir.env import Buffer, SyncFailed
from hubweir.errors import LogLost
from hubweir.messaging_store.disk.layout import SegmentName
from hubweir.messaging_store.disk.segment import SegmentHeader, create
from hubweir.messaging_store.disk.segment_files import Segment
from hubweir.messaging_store.log import Durability, Refused
from hubweir.messaging_store.retention import expire
from hubweir.messaging_store.segment_engine.trimming import (
    count_below,
    index_of_age,
    is_ageless,
    remove_log,
    remove_segments,
)
from hubweir.messaging_store.tests.conftest import events
from hubweir.testing.memory_faults import Fault, PowerCut
from hubweir.testing.memory_files import MemoryFile, MemoryFiles
from hubweir.testing.simulated_env import SimulatedEnv


def segments(*last_times: int, created: tuple[int, ...] | None = None) -> list[Segment]:
    """Segments of 10 records each; last_times: of the newest record before each. created: when each was made."""
    headers = [
        SegmentHeader("00" * 16, 1, 1, number * 10, 0, 0, time_ms, created_ms, Durability.DURABLE)
        for number, (time_ms, created_ms) in enumerate(zip(last_times, created or last_times, strict=True))
    ]
    return [Segment(header, "", header.first_index + 10, 0) for header in headers]


def expired_count(known: list[Segment], last_time_ms: int, *, created_ms: int, oldest_kept_ms: int) -> int:
    """How many of the segments hold only what is older than a time."""
    next_index = known[-1].end_index if known else 0
    assert next_index is not None
    return count_below(
        known,
        index_of_age(
            known, oldest_kept_ms, last_time_ms=last_time_ms, next_index=next_index, created_ms=created_ms
        ),
    )  # fmt: skip


def test_a_segment_is_older_than_a_time_when_its_newest_record_is() -> None:
    known = segments(-1, 100, 200, 300)
    for kept_ms, count in ((50, 0), (100, 0), (101, 1), (201, 2), (301, 3), (900, 3)):
        assert expired_count(known, 400, created_ms=1000, oldest_kept_ms=kept_ms) == count


def test_all_is_older_than_a_time_behind_the_newest_record() -> None:
    def index(known: list[Segment], last_time_ms: int, time_ms: int) -> int:
        return index_of_age(known, time_ms, last_time_ms=last_time_ms, next_index=20, created_ms=1000)

    known = segments(-1, 100)
    assert [index(known, 400, time_ms) for time_ms in (100, 101, 400, 401)] == [0, 10, 10, 20]
    assert index([], -1, 401) == 20
    assert index(segments(-1), -1, 401) == 0, "nothing was ever appended"


def test_segments_below_an_index_are_counted_and_never_the_newest() -> None:
    known = segments(-1, 100, 200, 300)
    assert [count_below(known, index) for index in (0, 9, 10, 19, 20, 30, 31, 99)] == [0, 0, 1, 1, 2, 3, 3, 3]
    assert count_below([], 5) == 0


HOUR_MS = 3_600_000
YEARS_MS = 10 * 365 * 24 * HOUR_MS


def removed_at(known: list[Segment], last_time_ms: int, *, now: int, retention: int = 24) -> int:
    """How many go at an hour of the clock."""
    oldest_ms = (now - retention) * HOUR_MS
    return expired_count(known, last_time_ms, created_ms=now * HOUR_MS, oldest_kept_ms=oldest_ms)


def test_a_time_of_years_ahead_keeps_a_segment_as_long_as_the_next_one_is_kept() -> None:
    hours = [hour * HOUR_MS for hour in range(100, 104)]
    known = segments(-1, hours[1], YEARS_MS, YEARS_MS, created=tuple(hours))
    # Of the second and the third it is known only that they were full when the next one was made.
    assert [removed_at(known, YEARS_MS, now=now) for now in (125, 126, 127, 128)] == [0, 1, 2, 3]


def test_a_time_of_years_ago_removes_nothing_early() -> None:
    hours = [hour * HOUR_MS for hour in range(100, 104)]
    known = segments(-1, 5, 5, hours[3], created=tuple(hours))
    assert [removed_at(known, hours[3], now=now) for now in (104, 125, 126, 127)] == [0, 0, 1, 2]


def test_a_segment_made_while_the_clock_was_ahead_holds_back_no_others() -> None:
    made = (100 * HOUR_MS, YEARS_MS, YEARS_MS + 1, 101 * HOUR_MS, 102 * HOUR_MS)
    known = segments(-1, 100 * HOUR_MS + 1, YEARS_MS + 1, YEARS_MS + 2, YEARS_MS + 2, created=made)
    assert [removed_at(known, YEARS_MS + 2, now=now) for now in (124, 125, 126, 127)] == [0, 1, 3, 4]


def test_the_first_event_of_a_segment_may_be_older_than_the_segment() -> None:
    known = segments(-1, 101 * HOUR_MS - 500, created=(101 * HOUR_MS, 200 * HOUR_MS))
    assert removed_at(known, 0, now=126) == 1


@pytest.mark.parametrize("last_time_ms", [YEARS_MS, 5])
def test_the_newest_one_is_followed_by_an_empty_one_by_age_when_its_time_says_nothing(last_time_ms: int) -> None:
    (newest,) = segments(-1, created=(100 * HOUR_MS,))

    def rolls(now: int, roll_age: int | None = 3) -> bool:
        return is_ageless(
            newest, last_time_ms, created_ms=now * HOUR_MS, roll_age_ms=None if roll_age is None else roll_age * HOUR_MS
        )

    assert [rolls(now) for now in (100, 102, 103, 200)] == [False, False, True, True]
    assert rolls(99)  # it was made while the clock was ahead: that says nothing of what is in it
    assert not rolls(200, roll_age=None)
    believed_ms = 150 * HOUR_MS
    assert not is_ageless(newest, believed_ms, created_ms=200 * HOUR_MS, roll_age_ms=HOUR_MS)


@pytest.mark.parametrize("seed", range(15))
def test_a_power_cut_leaves_no_hole_and_wakes_nothing_superseded(seed: int) -> None:
    known = segments(-1, 100, 200)
    nth = 1
    while True:
        files = MemoryFiles(seed)
        for segment in known:
            create(files, "", segment.header)
        files.open("superseded.log", create=True)
        files.set_bytes("superseded.log", b"x")
        files.sync_folder("")
        files.plan(Fault.POWER_CUT, nth)
        try:
            remove_segments(files, "", ["superseded.log"], known[:2])
            done = True
        except PowerCut:
            done = False
        files.heal()
        files.power_cut()
        left = [segment.header.name.file_name in files.paths() for segment in known]
        assert left in ([True, True, True], [False, True, True], [False, False, True])
        assert left[0] or "superseded.log" not in files.paths()
        if done:
            assert left == [False, False, True]
            return
        nth += 1


def test_a_deleted_log_loses_each_epoch_durably_before_the_next_one() -> None:
    files = MemoryFiles("removal")
    files.make_folder("log")
    for name in (SegmentName(2, 5), SegmentName(1, 0), SegmentName(2, 0)):
        files.open(f"log/{name.file_name}", create=True).close()
    files.call_names = []
    remove_log(files, "log")
    changes = [name for name in files.call_names if name in ("remove", "sync_folder", "remove_folder")]
    assert changes == ["remove", "sync_folder", "remove", "remove", "sync_folder", "remove_folder"]
    assert not files.exists("log")


def test_removal_may_be_repeated() -> None:
    files = MemoryFiles()
    known = segments(-1, 100)
    create(files, "", known[0].header)
    remove_segments(files, "", ["gone.log"], known[:1])
    remove_segments(files, "", ["gone.log"], known[:1])
    assert files.paths() == []


def test_old_segments_expire_and_the_numbers_stay(bench) -> None:
    for number in range(40):
        bench.append(b"%d" % number * 100)
    bounds = bench.log.bounds
    bench.env.run_for(10_000)
    expire(bench.log, now_ms=bench.env.now_ms(), retention_ms=5000)
    bench.env.run_for(200)
    assert expire(bench.log, now_ms=bench.env.now_ms(), retention_ms=5000) == 40
    bench.env.run_for(200)
    assert len(bench.segments()) == 1
    bench.reopen(close=True, power_cut=True)
    after = bench.log.bounds
    assert (after.first_index, after.next_index, after.last_offset) == (40, 40, bounds.last_offset)
    assert (after.next_offset, after.last_time_ms) == (bounds.next_offset, bounds.last_time_ms)
    assert bench.append(b"next").first_index == 40


def test_a_trim_keeps_at_most_one_segment_more_and_begins_no_new_one(bench) -> None:
    for number in range(40):
        bench.append(b"%d" % number * 100)
    firsts = [segment.first_index for segment in bench.log._state.segments.kept]
    assert len(firsts) > 3
    for index in (1, firsts[1], firsts[2] - 1, firsts[2] + 1, 39):
        first = bench.log.trim(index)
        assert first == max(each for each in firsts if each <= index) == bench.log.bounds.first_index
        bench.env.run_for(200)
    assert len(bench.segments()) == 1 and min(bench.everything()) == firsts[-1]
    assert bench.log.trim(3) == firsts[-1], "what is gone does not come back"


@pytest.mark.parametrize("jump_ms", [10 * HOUR_MS, -10 * HOUR_MS])
def test_a_log_whose_stamps_say_nothing_goes_by_the_age_of_its_segments(bench, jump_ms: int) -> None:
    """What an owner stamps by a clock that is wrong for hours: nothing goes early, and all of it in the end."""
    bench.log.set_roll_age(HOUR_MS)
    bench.log.append(events([b"a"]), now_ms=bench.env.now_ms() + jump_ms, on_done=bench.outcomes.append)
    gone_after = None
    for hour in range(24):
        bench.env.run_for(HOUR_MS)
        if expire(bench.log, now_ms=bench.env.now_ms(), retention_ms=4 * HOUR_MS) and gone_after is None:
            gone_after = hour + 1
    assert gone_after in (5, 6), "retention, and at most the age of a segment more"


def test_what_is_trimmed_while_files_go_follows_them(bench) -> None:
    for number in range(40):
        bench.append(b"%d" % number * 100)
    firsts = [segment.first_index for segment in bench.log._state.segments.kept]
    for index in firsts[1:4]:
        assert bench.log.trim(index) == index
    bench.env.run_for(200)
    assert [int(name[:20]) for name in bench.segments()] == firsts[3:]


def test_a_log_that_was_taken_over_trims_nothing(bench) -> None:
    for number in range(40):
        bench.append(b"%d" % number * 100)
    kept = bench.segments()
    bench.take_over()
    bench.log.trim(30)
    bench.env.run_for(200)
    assert bench.segments() == kept
    assert bench.log.trim(40) == bench.log.trim(35)
    bench.env.run_for(200)
    assert bench.segments() == kept


def test_a_closed_log_lets_nothing_go(bench) -> None:
    for number in range(40):
        bench.append(b"%d" % number * 100)
    kept = bench.segments()
    bench.log.close(lambda: None)
    bench.env.run_for(200)
    assert expire(bench.log, now_ms=bench.env.now_ms() + 10_000_000, retention_ms=1) == 0
    bench.env.run_for(200)
    assert len(kept) > 1 and bench.segments() == kept


def test_what_could_not_be_removed_goes_the_next_time(bench) -> None:
    for number in range(40):
        bench.append(b"%d" % number * 100)
    bench.env.run_for(2_000)
    bench.env.files.plan(Fault.EIO, forever=True)
    first = expire(bench.log, now_ms=bench.env.now_ms() + 100, retention_ms=3000)
    bench.env.run_for(200)
    before = bench.segments()
    bench.env.files.heal()
    assert expire(bench.log, now_ms=bench.env.now_ms() + 100, retention_ms=10_000_000) == first > 0
    bench.env.run_for(200)
    assert len(bench.segments()) < len(before)


def superseded_then_old(make_bench, seed: int):
    """A log whose second segment was superseded by a repair, and whose first four are old."""
    bench = make_bench(env=SimulatedEnv(seed))
    bench.append(b"zero")
    bench.reopen(close=True)

    def fail(file: MemoryFile, position: int, buffers: Sequence[Buffer]) -> None:
        file.write(position, buffers)
        file.sync()  # the bytes are there, and the disk says that they are not
        raise SyncFailed(errno.EIO, "Input/output error")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MemoryFile, "write_and_sync", fail)
        bench.append(b"refused", wait_ms=300)
    assert bench.counters["log.failed_syncs"] == 1
    for number in range(4):
        bench.append(b"old %d" % number + bytes(2500))
    bench.env.run_for(20_000)
    bench.append(b"young" + bytes(2500))
    return bench


@pytest.mark.parametrize("nth", range(1, 12, 2))
@pytest.mark.parametrize("seed", range(2))
def test_a_removal_that_failed_is_done_again_in_the_same_order(make_bench, seed: int, nth: int) -> None:
    nth_cut = 0
    while True:
        bench = superseded_then_old(make_bench, seed)
        accepted = {run.first_index for run in bench.outcomes if not hasattr(run, "error")}
        stored = bench.everything()
        files = bench.env.files
        assert bench.log._state.segments.superseded and set(stored) == accepted
        files.plan(Fault.EIO, nth)
        expire(bench.log, now_ms=bench.env.now_ms(), retention_ms=15_000)
        bench.env.run_for(200)
        files.heal()
        nth_cut += 1
        files.plan(Fault.POWER_CUT, nth_cut)
        is_cut = False
        try:
            expire(bench.log, now_ms=bench.env.now_ms(), retention_ms=15_000)
            bench.env.run_for(200)
        except PowerCut:
            is_cut = True
        files.heal()
        bench.reopen(power_cut=True)
        shown = bench.everything()
        first = bench.log.bounds.first_index
        assert shown == {index: message for index, message in stored.items() if index >= first}
        if not is_cut:
            return


@pytest.mark.parametrize("seed", range(6))
def test_a_power_cut_while_a_log_is_deleted_wakes_nothing_superseded(make_bench, read_messages, seed: int) -> None:
    nth = 0
    while True:
        nth += 1
        bench = superseded_then_old(make_bench, seed)
        stored, files = bench.everything(), bench.env.files
        bench.env.crash()
        files.plan(Fault.POWER_CUT, nth)
        try:
            remove_log(files, bench.folder)
            return
        except PowerCut:
            files.heal()
        try:
            bench.reopen(power_cut=True)
        except LogLost:
            continue  # no segment is left
        for index in range(bench.log.bounds.first_index, bench.log.bounds.next_index):
            run = bench.read(index, 1)  # what is gone already is refused, for holes do no harm now
            assert isinstance(run, Refused) or read_messages(run.data).items() <= stored.items()
