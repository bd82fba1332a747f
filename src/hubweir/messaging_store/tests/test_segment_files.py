from __future__ import annotations

import pytest

from hubweir.messaging_store.log_state import LogSettings
from hubweir.messaging_store.segment_files import load_indexes, read_saved_indexes


@pytest.fixture
def long_segment(make_bench):
    """A closed segment of several index entries, found by the next process."""
    bench = make_bench(settings=LogSettings())
    for number in range(80):
        bench.append(b"%d" % number * 2000, wait_ms=5)
    bench.reopen(close=True)
    bench.append(b"so that the segment before is an old one")
    segment = bench.log._state.segments[0]
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
