from __future__ import annotations

import pytest

from hubweir.messaging_store.log import Durability
from hubweir.messaging_store.retention import Held, expired_count, remove_segments
from hubweir.messaging_store.segment import SegmentHeader, create
from hubweir.messaging_store.segment_files import Segment
from hubweir.testing.memory_files import Fault, MemoryFiles, PowerCut


def segments(*last_times: int) -> list[Segment]:
    """Segments of 10 records each; last_times: of the newest record before each."""
    headers = [
        SegmentHeader("00" * 16, 1, 1, number * 10, 0, 0, time_ms, 0, Durability.DURABLE)
        for number, time_ms in enumerate(last_times)
    ]
    return [Segment(header, "", header.first_index + 10, 0) for header in headers]


def test_a_segment_goes_when_its_newest_record_is_too_old() -> None:
    known = segments(-1, 100, 200, 300)
    for kept_ms, count in ((50, 0), (101, 1), (201, 2), (301, 3), (900, 3)):
        assert expired_count(known, 400, oldest_kept_ms=kept_ms, trim_limit=None)[0] == count


def test_the_newest_one_is_followed_by_an_empty_one_when_it_is_old() -> None:
    known = segments(-1, 100)
    assert expired_count(known, 400, oldest_kept_ms=400, trim_limit=None) == (1, False)
    assert expired_count(known, 400, oldest_kept_ms=401, trim_limit=None) == (1, True)
    assert expired_count([], -1, oldest_kept_ms=401, trim_limit=None) == (0, False)
    assert expired_count(segments(-1), -1, oldest_kept_ms=401, trim_limit=None) == (0, False)


def test_snapshots_hold_back_what_they_do_not_cover() -> None:
    known = segments(-1, 100, 200, 300)
    assert expired_count(known, 400, oldest_kept_ms=900, trim_limit=20) == (2, False)


def test_a_reader_that_is_behind_holds_back_what_it_has_not_read_for_a_time() -> None:
    known = segments(-1, 100, 200, 300)

    def count(keep_from: int, oldest_ms: int) -> int:
        return expired_count(known, 400, oldest_kept_ms=900, trim_limit=None, held=Held(keep_from, oldest_ms))[0]

    assert [count(keep_from, 0) for keep_from in (0, 9, 10, 29, 30)] == [0, 0, 1, 2, 3]
    assert [count(0, oldest_ms) for oldest_ms in (100, 101, 201, 301)] == [0, 1, 2, 3]


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
        files.plan(files.calls + nth, Fault.POWER_CUT)
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


def test_a_closed_log_lets_nothing_go(bench) -> None:
    for number in range(40):
        bench.append(b"%d" % number * 100)
    kept = bench.segments()
    bench.log.close(lambda: None)
    bench.env.run_for(200)
    assert bench.log.expire(now_ms=bench.env.now_ms() + 10_000_000, retention_ms=1) == 0
    bench.env.run_for(200)
    assert len(kept) > 1 and bench.segments() == kept


def test_what_could_not_be_removed_goes_the_next_time(bench) -> None:
    for number in range(40):
        bench.append(b"%d" % number * 100)
    bench.env.run_for(2_000)
    bench.env.files.plan(1, Fault.EIO, forever=True)
    first = bench.log.expire(now_ms=bench.env.now_ms() + 100, retention_ms=3000)
    bench.env.run_for(200)
    before = bench.segments()
    bench.env.files.heal()
    assert bench.log.expire(now_ms=bench.env.now_ms() + 100, retention_ms=10_000_000) == first > 0
    bench.env.run_for(200)
    assert len(bench.segments()) < len(before)
