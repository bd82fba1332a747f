"""Searches by offset and by time find what a walk over all records would, wherever these lie, and ask few disks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from hubweir.kernels.stored_batch import RECORD_HEADER_SIZE
from hubweir.messaging_store.retention import expire
from hubweir.messaging_store.tests.conftest import SMALL

STATES = ["live", "opened", "trimmed", "trimmed and opened"]


@dataclass(frozen=True)
class Known:
    """A record that was appended."""

    index: int
    offset: int
    time_ms: int


def fill(bench: Any, make_events: Any) -> list[Known]:
    """Runs of two batches; three runs have the same time, and a segment or the tail may begin between them."""
    known: list[Known] = []
    for number in range(54):
        batches = [b"x" * (10 + number % 20), b"y"], [b"z" * 20]
        appended = bench.log.append(make_events(*batches), now_ms=bench.env.now_ms(), on_done=bench.outcomes.append)
        offset = appended.first_offset
        for place, message in enumerate(message for batch in batches for message in batch):
            known.append(Known(appended.first_index + place, offset, appended.enqueued_time_ms))
            offset += RECORD_HEADER_SIZE + len(message)
        assert offset == appended.next_offset
        if number % 3 == 2:
            bench.env.run_for(60)
    bench.env.run_for(2_000)
    return known


@pytest.fixture(params=STATES)
def filled(request, bench, make_events) -> tuple[Any, list[Known]]:
    """A log, and the records that it holds."""
    known = fill(bench, make_events)
    if "trimmed" in request.param:
        expire(bench.log, now_ms=bench.env.now_ms(), retention_ms=bench.env.now_ms() - known[54].time_ms)
        bench.env.run_for(1_000)
    if "opened" in request.param:
        bench.reopen(close=True)
        assert bench.log._state.tail.first_run() is None
    first = bench.log.bounds.first_index
    assert len(bench.segments()) > 2 and (first > 0) is ("trimmed" in request.param)
    return bench, known[first:]


def test_a_search_by_offset_finds_the_first_record_at_or_behind_it(filled) -> None:
    bench, known = filled
    end = bench.log.bounds.next_index
    for each in known:
        assert bench.answer(bench.log.find_offset, each.offset) == each.index
        assert bench.answer(bench.log.find_offset, each.offset + 1) == each.index + 1
    for offset in (0, known[0].offset - 1, known[0].offset):
        assert bench.log.find_offset(offset, lambda found: None) == known[0].index
    for offset in (bench.log.bounds.next_offset, bench.log.bounds.next_offset + 1, 10**12):
        assert bench.log.find_offset(offset, lambda found: None) == end


def test_a_search_by_time_finds_the_first_record_of_then_or_later(filled) -> None:
    bench, known = filled
    end = bench.log.bounds.next_index
    for time_ms in {each.time_ms + more for each in known for more in (-1, 0, 1)} | {0}:
        found = next((each.index for each in known if each.time_ms >= time_ms), end)
        assert bench.answer(bench.log.find_time, time_ms) == found, time_ms - known[0].time_ms
    assert bench.log.find_time(known[-1].time_ms + 1, lambda found: None) == end


def test_a_search_in_what_the_tail_holds_whole_asks_no_disk(make_bench, make_events) -> None:
    """A disk that is slow would hold every new reader up."""
    bench = make_bench(settings=replace(SMALL, tail_bytes=3_000))
    known = fill(bench, make_events)
    held = bench.log._state.tail.first_run()
    assert held is not None and held.first_index > 0 and held.time_ms < known[-1].time_ms
    for each in known[held.first_index :]:
        assert bench.log.find_offset(each.offset, lambda found: None) == each.index
        if each.time_ms > held.time_ms:
            assert isinstance(bench.log.find_time(each.time_ms, lambda found: None), int)


def test_a_log_whose_whole_rest_is_in_the_tail_asks_no_disk_for_a_time(bench) -> None:
    appended = [bench.append(b"%d" % number) for number in range(3)]
    for time_ms in (0, appended[0].enqueued_time_ms):
        assert bench.log.find_time(time_ms, lambda found: None) == 0


def test_a_search_reads_the_segment_that_it_ends_in_and_no_other(bench, make_events) -> None:
    """Each log may have hundreds of them."""
    known = fill(bench, make_events)
    bench.reopen(close=True)
    files, begins = bench.env.files, [int(name[:20]) for name in bench.segments()]
    opens, opened = files.open_to_read, list[str]()

    def note(path: str) -> Any:
        opened.append(path)
        return opens(path)

    files.open_to_read = note
    for each in known[1:]:
        holds = bench.segments()[sum(begin <= each.index for begin in begins) - 1]
        opened.clear()
        bench.answer(bench.log.find_offset, each.offset)
        assert {path.rpartition("/")[2] for path in opened if path.endswith(".log")} == {holds}
        opened.clear()
        if known[each.index - 1].time_ms < each.time_ms and each.index not in begins:
            bench.answer(bench.log.find_time, each.time_ms)
            assert {path.rpartition("/")[2] for path in opened if path.endswith(".log")} == {holds}


def test_a_log_whose_records_are_all_gone_is_not_read_for_a_search(bench) -> None:
    bench.append(b"a")
    bench.append(b"b")
    for _ in range(3):
        expire(bench.log, now_ms=bench.env.now_ms() + 1_000, retention_ms=0)
        bench.env.run_for(500)
    bench.reopen(close=True)
    assert bench.log.bounds.first_index == bench.log.bounds.next_index == 2
    for search in (bench.log.find_time, bench.log.find_offset):
        for value in (0, 1, 10**15):
            assert search(value, lambda found: None) == 2
