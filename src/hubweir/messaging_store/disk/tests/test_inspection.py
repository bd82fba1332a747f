"""A log seen from outside: every record where it stands, every planted damage by its name, nothing changed."""

from __future__ import annotations

import pytest

from hubweir.messaging_store.disk.inspection import (
    Finding,
    StoredBatch,
    batches,
    findings,
    look_at_log,
    newest_state,
    other_files,
    torn_tail,
)
from hubweir.messaging_store.disk.read_only_files import ReadOnlyFiles
from hubweir.messaging_store.disk.segment import SEGMENT_HEADER_SIZE
from hubweir.messaging_store.tests.conftest import FOLDER, LOG_ID, Bench

MESSAGES = [f"message {number} ".encode() * 9 for number in range(40)]


def found_in(bench: Bench) -> list[Finding]:
    files = ReadOnlyFiles(bench.env.files)
    return list(findings(files, FOLDER, look_at_log(files, "store-0", LOG_ID)))


def filled(bench: Bench) -> Bench:
    """Several segments, the newest closed cleanly by nobody: the log stays open, as under a server."""
    for message in MESSAGES:
        bench.append(message)
    bench.env.run_for(2_000)
    return bench


def segments(bench: Bench) -> list[str]:
    return [path for path in bench.env.files.paths() if path.startswith(FOLDER) and path.endswith(".log")]


def test_every_record_of_an_open_log_is_seen_and_nothing_is_changed(bench: Bench) -> None:
    filled(bench)
    disk = bench.env.files
    before = {path: bytes(disk.bytes_of(path)) for path in disk.paths()}
    files = ReadOnlyFiles(disk)
    found = look_at_log(files, "store-0", LOG_ID)
    assert len(found.segments) > 2 and found.end.index == len(MESSAGES)
    seen = {}
    for item in batches(files, found.segments):
        assert isinstance(item, StoredBatch)
        place = disk.bytes_of(item.segment.path)[item.position : item.position + item.header.length]
        assert bytes(place) == item.data[item.header.position : item.header.end]
        seen |= {record.index: bytes(record.data[32:]) for record in item.records()}
    assert seen == dict(enumerate(MESSAGES))
    assert found_in(bench) == []
    assert {path: bytes(disk.bytes_of(path)) for path in disk.paths()} == before
    assert disk.locks == {"store-0"}  # the owner's own


@pytest.mark.parametrize("index", [0, 1, 17, 39, 40])
def test_a_walk_starts_with_the_batch_that_holds_the_index(bench: Bench, index: int) -> None:
    files = ReadOnlyFiles(filled(bench).env.files)
    walked = list(batches(files, look_at_log(files, "store-0", LOG_ID).segments, index))
    numbers = [record.index for item in walked if isinstance(item, StoredBatch) for record in item.records()]
    assert numbers == list(range(index, len(MESSAGES)))


def test_a_flipped_bit_in_an_older_segment_is_damage_with_its_place(bench: Bench) -> None:
    path = segments(filled(bench))[0]
    data = bench.env.files.bytes_of(path)
    at = data.index(MESSAGES[2])
    data[at] ^= 1
    (finding,) = found_in(bench)
    assert (finding.kind, finding.path) == ("damage", path)
    assert finding.position < at and "records 2 to 2" in finding.text


def test_damage_that_reaches_the_end_of_an_older_segment_is_told_to_its_last_record(bench: Bench) -> None:
    first, second = segments(filled(bench))[:2]
    end = int(second.rpartition("/")[2].partition("-")[0])
    data = bench.env.files.bytes_of(first)
    data[data.index(MESSAGES[end - 1])] ^= 1
    (finding,) = found_in(bench)
    assert f"records {end - 1} to {end - 1}" in finding.text and "the end of the segment" in finding.text


def test_a_flipped_bit_in_the_newest_segment_is_damage_once_a_mark_vouches(bench: Bench) -> None:
    path = segments(filled(bench))[-1]
    data = bench.env.files.bytes_of(path)
    data[data.index(MESSAGES[-1])] ^= 1
    (finding,) = found_in(bench)
    assert (finding.kind, finding.path) == ("damage", path) and "records 39 to 39" in finding.text


def test_a_torn_tail_is_named_and_zeros_set_aside_are_not(bench: Bench) -> None:
    filled(bench)
    files, path = ReadOnlyFiles(bench.env.files), segments(bench)[-1]
    found = look_at_log(files, "store-0", LOG_ID)
    assert torn_tail(files, found) is None
    end = found.end.position
    data = bytes(bench.env.files.bytes_of(path)[:end])
    first = data.index(MESSAGES[-1])
    bench.env.files.set_bytes(path, data + data[first - 80 : first + 9] + bytes(100))
    (finding,) = found_in(bench)
    assert (finding.kind, finding.path, finding.position) == ("torn tail", path, end)


def test_a_newest_segment_that_was_cut_inside_its_last_batch_is_torn_from_there(bench: Bench) -> None:
    bench.append(b"kept")
    bench.append(b"torn")
    path = segments(bench)[-1]
    data = bytes(bench.env.files.bytes_of(path))
    bench.env.files.set_bytes(path, data[: data.index(b"torn") + 2])
    (finding,) = found_in(bench)
    assert finding.kind == "torn tail" and "the next index is 1" in finding.text


def test_a_lost_end_of_an_older_segment_is_missing(bench: Bench) -> None:
    files = ReadOnlyFiles(filled(bench).env.files)
    older = look_at_log(files, "store-0", LOG_ID).segments[0]
    ends = [item for item in batches(files, [older]) if isinstance(item, StoredBatch) and item.header.count]
    data = bytes(bench.env.files.bytes_of(older.path))
    bench.env.files.set_bytes(older.path, data[: ends[-1].position])
    (finding,) = found_in(bench)
    assert (finding.kind, finding.position) == ("missing", ends[-1].position)


def test_a_damaged_header_and_a_damaged_snapshot_are_named(bench: Bench) -> None:
    filled(bench)
    bench.log.save_snapshot(b"state", lambda _: None)
    bench.env.run_for(100)
    assert newest_state(ReadOnlyFiles(bench.env.files), FOLDER) == (len(MESSAGES), b"state")
    bench.env.files.bytes_of(segments(bench)[0])[SEGMENT_HEADER_SIZE - 1] ^= 1
    bench.env.files.bytes_of(f"{FOLDER}/snapshot")[-1] ^= 1
    assert [finding.kind for finding in found_in(bench)] == ["snapshot", "header"]


def test_files_that_are_no_part_of_a_log_are_told_apart(bench: Bench) -> None:
    filled(bench)
    for name in ("note", "note.new"):
        bench.env.files.set_bytes(f"{FOLDER}/{name}", b"")
    assert other_files(ReadOnlyFiles(bench.env.files), FOLDER) == ["note"]


def test_lost_segments_are_missing_and_the_others_are_walked() -> None:
    bench = Bench()
    for number in range(6):
        if number in (2, 4):
            bench.env.run_for(2_000)
            bench.reopen()
        bench.append(b"%d" % number)
    bench.env.run_for(2_000)
    _, middle, newest = bench.segments()
    for name in (middle, newest):
        bench.env.files.remove(f"{FOLDER}/{name}")
    files = ReadOnlyFiles(bench.env.files)
    told = list(findings(files, FOLDER, look_at_log(files, "store-0", LOG_ID)))
    # The middle one is named by the newest only, which is gone: its range is told with the one that is missed.
    assert [finding.kind for finding in told][-1] == "missing" and newest in told[-1].path
    walked = list(batches(files, look_at_log(files, "store-0", LOG_ID).segments))
    assert any(isinstance(item, tuple) and item[0].is_lost for item in walked)
    assert [item.header.first_index for item in walked if isinstance(item, StoredBatch) and item.header.count] == [0, 1]


def test_records_that_a_snapshot_had_are_missing() -> None:
    bench = Bench()
    bench.append(b"a")
    bench.env.run_for(2_000)
    path = f"{FOLDER}/{bench.segments()[0]}"
    older = bytes(bench.env.files.bytes_of(path))
    bench.append(b"b")
    bench.log.save_snapshot(b"state", lambda outcome: None)
    bench.env.run_for(2_000)
    bench.env.files.set_bytes(path, older)
    files = ReadOnlyFiles(bench.env.files)
    (finding,) = findings(files, FOLDER, look_at_log(files, "store-0", LOG_ID))
    assert finding.kind == "missing" and "from 1 on" in finding.text
