from __future__ import annotations

import pytest

from hubweir.messaging_store.disk.log_reader import read_run
from hubweir.messaging_store.disk.segment_files import load_indexes, read_saved_indexes
from hubweir.messaging_store.log import Run
from hubweir.messaging_store.segment_engine.log_state import LogSettings


@pytest.fixture
def long_segment(make_bench):
    """A closed segment of several index entries, found by the next process."""
    bench = make_bench(settings=LogSettings())
    for number in range(80):
        bench.append(b"%d" % number * 2000, wait_ms=5)
    bench.reopen(close=True)
    bench.append(b"so that the segment before is an old one")
    segment = bench.log._state.segments.kept[0]
    return bench.env.files, segment


def test_saved_and_rebuilt_indexes_lead_to_the_same_places(long_segment) -> None:
    files, segment = long_segment
    saved = load_indexes(files, segment)
    assert len(saved.offsets) > 2 and len(saved.times) == len(saved.offsets)
    for name in segment.names()[1:]:
        files.remove(f"{segment.folder}/{name}")
    rebuilt = load_indexes(files, segment)
    for index in range(0, 80, 7):
        one, other = saved.offsets.before_index(index), rebuilt.offsets.before_index(index)
        assert one is not None and other is not None and one.index <= index and other.index <= index


def test_rebuilt_indexes_end_where_the_next_segment_begins(long_segment) -> None:
    """What stands behind was taken over by the next segment."""
    files, segment = long_segment
    segment.end_index = load_indexes(files, segment).offsets.last().index
    for name in segment.names()[1:]:
        files.remove(f"{segment.folder}/{name}")
    assert load_indexes(files, segment).offsets.last().index < segment.end_index


def test_rebuilt_indexes_are_saved_for_the_next_time(long_segment) -> None:
    files, segment = long_segment
    files.bytes_of(f"{segment.folder}/{segment.names()[1]}")[20] ^= 1
    assert read_saved_indexes(files, segment) is None
    load_indexes(files, segment)
    assert read_saved_indexes(files, segment) is not None


def test_a_full_disk_does_not_stop_the_rebuilding(long_segment) -> None:
    files, segment = long_segment
    for name in segment.names()[1:]:
        files.remove(f"{segment.folder}/{name}")
    files.capacity_bytes = 0
    assert len(load_indexes(files, segment).offsets) > 2


def test_a_long_run_gets_entries_inside_and_a_cold_read_of_its_middle_begins_there(
    make_bench, make_events, read_messages
) -> None:
    bench = make_bench(settings=LogSettings())
    bench.append(b"before")
    bench.log.append(
        make_events(*([b"%d" % number * 10_000] for number in range(40))), now_ms=0, on_done=bench.outcomes.append
    )
    bench.env.run_for(50)
    state = bench.log._state
    segment = state.segments.kept[-1]
    assert segment.indexes is not None and len(segment.indexes.offsets) >= 8
    for index in range(1, 41):
        place = segment.indexes.offsets.before_index(index)
        assert place is not None and index - 7 <= place.index <= index
    run = read_run(bench.env.files, state.segments.kept, 30, state.visible.index, 1)
    assert isinstance(run, Run) and read_messages(run.data) == {30: b"29" * 10_000}


def test_entries_inside_runs_are_those_that_a_scan_of_the_file_makes(make_bench, make_events) -> None:
    bench = make_bench(settings=LogSettings())
    for _ in range(20):
        bench.log.append(make_events(*([bytes(5000)] for _ in range(30))), now_ms=0, on_done=bench.outcomes.append)
        bench.env.run_for(50)
    segment = bench.log._state.segments.kept[-1]
    assert segment.indexes is not None
    as_written = segment.indexes
    segment.indexes = None
    rebuilt = load_indexes(bench.env.files, segment)
    assert len(rebuilt.offsets) >= 40
    assert as_written.offsets.pack() == rebuilt.offsets.pack() and as_written.times.pack() == rebuilt.times.pack()
