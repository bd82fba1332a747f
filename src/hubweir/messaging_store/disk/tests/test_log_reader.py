from __future__ import annotations

import pytest

from hubweir.kernels.stored_batch import MAGIC, read_header
from hubweir.messaging_store.disk.batch_scan import Place
from hubweir.messaging_store.disk.log_reader import (
    ReadDamaged,
    find_offset_in,
    find_time_in,
    read_run,
    replay_runs,
    segment_of,
)
from hubweir.messaging_store.disk.sparse_index import SegmentIndexes
from hubweir.messaging_store.log import Run


def filled(bench):
    """Several closed segments, and what is in them."""
    appended = [bench.append(b"%d" % number * 100, wait_ms=20) for number in range(50)]
    bench.reopen(close=True)
    return bench.env.files, bench.log._state.segments.kept, appended


def test_every_index_is_found_in_its_segment(bench, read_messages) -> None:
    files, segments, _ = filled(bench)
    assert len(segments) > 1
    for index in range(50):
        run = read_run(files, segments[segment_of(segments, index) :], index, 50, 1)
        assert isinstance(run, Run) and read_messages(run.data) == {index: b"%d" % index * 100}


def test_nothing_at_or_above_the_limit_is_returned(bench, read_messages) -> None:
    files, segments, _ = filled(bench)
    run = read_run(files, segments, 3, 5, 1 << 20)
    assert isinstance(run, Run) and list(read_messages(run.data)) == [3, 4] and run.next_index == 5
    assert read_run(files, segments, 5, 5, 1 << 20) == Run(b"", 5, 5)


def test_damage_ends_a_read_before_it_and_refuses_one_inside(bench, read_messages) -> None:
    files, segments, _ = filled(bench)
    data = files.bytes_of(segments[0].path)
    data[data.index(b"3" * 100)] ^= 1
    run = read_run(files, segments, 0, 50, 1 << 20)
    assert isinstance(run, Run) and list(read_messages(run.data)) == [0, 1, 2]
    damaged = read_run(files, segments, 3, 50, 1 << 20)
    assert isinstance(damaged, ReadDamaged) and (damaged.start, damaged.resume) == (3, 4)
    assert "read on from 4" in str(damaged.error())
    assert damaged.error().resume_index == 4


def test_a_segment_that_ends_too_early_is_damage(bench) -> None:
    files, segments, _ = filled(bench)
    end = segments[1].first_index
    data = bytes(files.bytes_of(segments[0].path))
    files.set_bytes(segments[0].path, data[:400])
    segments[0].end_position, segments[0].indexes = 400, None
    damaged = read_run(files, segments, end - 1, 50, 1 << 20)
    assert isinstance(damaged, ReadDamaged) and damaged.resume == end


def test_replay_gives_everything_once(bench, read_messages) -> None:
    files, segments, _ = filled(bench)
    for start in (0, 1, 17, 49):
        runs = replay_runs(files, segments, start, limit=50, limit_number=50, on_damage=pytest.fail)
        found = [index for run in runs for index in read_messages(run.data)]
        assert found == list(range(start, 50))


def test_a_search_for_what_damage_may_hold_finds_where_the_damage_begins(bench) -> None:
    files, segments, appended = filled(bench)
    data = files.bytes_of(segments[0].path)
    for number in (3, 4):
        data[data.index(b"%d" % number * 100)] ^= 1
    for number in (3, 4):
        assert find_offset_in(files, segments, appended[number].first_offset, 50) == 3
        assert find_time_in(files, segments, appended[number].enqueued_time_ms, 50) == 3
    for number in (2, 5, 6, 40):
        assert find_offset_in(files, segments, appended[number].first_offset, 50) == number
    for number in (2, 6, 40):  # 5 is the first one with its time for certain, or one of the damaged ones is
        assert find_time_in(files, segments, appended[number].enqueued_time_ms, 50) == number


def test_a_search_finds_damage_at_the_end_of_a_segment_and_of_the_log(bench) -> None:
    files, segments, appended = filled(bench)
    end = segments[1].first_index
    for segment, index, limit in ((segments[0], end - 1, 50), (segments[-1], 49, 50)):
        data = files.bytes_of(segment.path)
        data[data.rindex(b"%d" % index * 100)] ^= 1
        segment.indexes = None
        assert find_offset_in(files, segments, appended[index].first_offset, limit) == index
        assert find_time_in(files, segments, appended[index].enqueued_time_ms, limit) == index
    assert find_offset_in(files, segments, appended[end].first_offset, 50) == end
    assert find_time_in(files, segments, appended[end + 1].enqueued_time_ms, 50) == end + 1


def test_searches_step_over_a_segment_whose_file_is_lost(bench) -> None:
    files, segments, appended = filled(bench)
    files.remove(segments[0].path)
    segments[0].is_lost, segments[0].indexes = True, None
    end = segments[1].first_index
    assert find_time_in(files, segments, appended[0].enqueued_time_ms, 50) == end
    assert find_time_in(files, segments, appended[end + 2].enqueued_time_ms, 50) == end + 2
    assert find_offset_in(files, segments, appended[end + 2].first_offset, 50) == end + 2


@pytest.mark.parametrize("is_damaged", [False, True])
def test_searches_pass_over_what_counts_no_more_at_the_end_of_a_segment(bench, is_damaged: bool) -> None:
    """As where a newer segment took the place of an older one's last records."""
    files, segments, appended = filled(bench)
    following = segments[1].first_index
    segments[0].end_index = following - 2
    if is_damaged:
        data = files.bytes_of(segments[0].path)
        at = data.rindex(b"%d" % (following - 2) * 100)
        data[at] ^= 1
        # A search that begins in what counts no more comes upon the damage first.
        batch = read_header(data, data.rindex(MAGIC, 0, at))
        segments[0].indexes = SegmentIndexes()
        segments[0].indexes.note(Place(batch.position, batch.first_index, batch.first_offset), batch.enqueued_time_ms)
    for index in (following - 2, following - 1):
        assert find_offset_in(files, segments, appended[index].first_offset, 50) == following
        assert find_time_in(files, segments, appended[index].enqueued_time_ms, 50) == following
    if not is_damaged:
        assert find_offset_in(files, segments, appended[following - 3].first_offset, 50) == following - 3
        assert find_time_in(files, segments, appended[following - 3].enqueued_time_ms, 50) == following - 3
