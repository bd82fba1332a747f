"""segment_order.py: a segment that is lost is missed, refused to readers, and none of its numbers is used again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hubweir.errors import CorruptStore
from hubweir.messaging_store.disk.log_copy import LogCopy
from hubweir.messaging_store.disk.newest_segment import load_newest
from hubweir.messaging_store.disk.read_only_files import ReadOnlyFiles
from hubweir.messaging_store.disk.recovery import recover
from hubweir.messaging_store.disk.segment import unpack_header
from hubweir.messaging_store.log import Durability, Refused, Run
from hubweir.messaging_store.retention import expire
from hubweir.testing.memory_files import MemoryFiles

LOG_ID = "ab" * 16
FOLDER = f"store-0/logs/{LOG_ID}"


def lose(bench, name: str) -> bytes:
    """Take a segment's file away while no process runs; return what was in it."""
    bench.env.run_for(2_000)
    bench.env.crash()
    bench.env = bench.env.restart()
    data = bytes(bench.env.files.bytes_of(f"{FOLDER}/{name}"))
    bench.env.files.remove(f"{FOLDER}/{name}")
    bench.env.files.sync_folder(FOLDER)
    return data


def put_back(bench, name: str, data: bytes) -> None:
    bench.env.crash()
    bench.env = bench.env.restart()
    file = bench.env.files.open(f"{FOLDER}/{name}", create=True)
    file.write(0, [data])
    file.sync()
    bench.env.files.sync_folder(FOLDER)


def fill(bench) -> None:
    """Three segments: 0 to 1, 2 to 3, 4 to 5."""
    for number in range(6):
        if number in (2, 4):
            bench.env.run_for(2_000)
            bench.reopen()
        bench.append(b"%d" % number)
    assert len(bench.segments()) == 3


@pytest.mark.parametrize("durability", Durability)
def test_a_lost_newest_segment_is_told_and_its_numbers_are_not_used_again(make_bench, durability) -> None:
    bench = make_bench(durability=durability)
    fill(bench)
    seen = set(bench.everything())
    newest = bench.segments()[-1]
    limit = load_newest(bench.env.files, "store-0", LOG_ID).index_limit
    data = lose(bench, newest)
    bench.open()
    (alarm,) = map(str, bench.store.alarms.current())
    assert newest in alarm and "lost" in alarm
    appended = bench.append(b"other")
    assert appended.first_index == limit > max(seen)
    lost_from = int(newest[:20])
    below = {}
    for index in sorted(seen):
        answer = bench.read(index)
        if index < lost_from:
            assert isinstance(answer, Run)
            below[index] = answer
        else:
            assert isinstance(answer, Refused) and isinstance(answer.error, CorruptStore)
            assert answer.error.resume_index == limit
    assert below
    bench.reopen()
    assert any(newest in alarm for alarm in map(str, bench.store.alarms.current())), "told until it is back"
    put_back(bench, newest, data)
    bench.open()
    assert bench.store.alarms.current() == () or durability is Durability.RELAXED
    assert all(isinstance(bench.read(index), Run) for index in seen)


def test_nothing_is_written_into_a_log_whose_newest_segment_is_lost_until_it_is_used(bench) -> None:
    fill(bench)
    lose(bench, bench.segments()[-1])
    before = bench.env.files.paths()
    bench.open()
    assert [path for path in bench.env.files.paths() if path.startswith(FOLDER)] == [
        path for path in before if path.startswith(FOLDER)
    ]
    first = bench.log.bounds.next_index
    bench.reopen()
    assert bench.log.bounds.next_index == first, "the same limit again, and not one more"


def test_a_lost_segment_in_the_middle_is_told_at_the_start(bench) -> None:
    fill(bench)
    middle = bench.segments()[1]
    data = lose(bench, middle)
    bench.open()
    (alarm,) = map(str, bench.store.alarms.current())
    assert middle in alarm and "records 2 to 3" in alarm
    answer = bench.read(2)
    assert isinstance(answer, Refused) and answer.error.resume_index == 4
    assert bench.append(b"6").first_index == 6
    offset = bench.log.bounds.last_offset
    bench.env.run_for(2_000)
    bench.reopen()
    assert bench.answer(bench.log.find_offset, offset) == 6, "searches step over it"
    put_back(bench, middle, data)
    bench.open()
    assert bench.store.alarms.current() == () and bench.everything()[2] == b"2"


def test_what_retention_took_is_not_lost(bench) -> None:
    fill(bench)
    bench.env.run_for(10_000)
    bench.append(b"6")
    expire(bench.log, now_ms=bench.env.now_ms(), retention_ms=5_000)
    bench.env.run_for(1_000)
    assert len(bench.segments()) < 3
    bench.reopen()
    assert bench.store.alarms.current() == () and 6 in bench.everything()


def test_a_lost_segment_keeps_what_it_superseded_from_coming_back(bench) -> None:
    """A refused event stands in the old file; the segment that superseded it is lost: the event stays refused."""
    bench.append(b"a")
    bench.env.run_for(2_000)
    name = bench.segments()[0]
    longer = bytes(bench.env.files.bytes_of(f"{FOLDER}/{name}"))
    bench.reopen()
    bench.append(b"b")
    newest = bench.segments()[-1]
    lose(bench, newest)
    bench.env.files.set_bytes(f"{FOLDER}/{name}", longer)
    bench.open()
    assert isinstance(bench.read(1), Refused)
    assert bench.read(0).next_index == 1


def test_a_segment_that_begins_where_a_newer_one_does_is_superseded_whole_and_removed(bench) -> None:
    bench.append(b"a")
    bench.env.run_for(2_000)
    bench.reopen()
    old = bench.segments()[0]
    twin = old.replace("-00000001", "-00000009")
    content = bytes(bench.env.files.bytes_of(f"{FOLDER}/{old}"))
    header = unpack_header(content)
    assert header is not None
    bench.env.crash()
    bench.env = bench.env.restart()
    bench.env.files.set_bytes(f"{FOLDER}/{twin}", replace(header, writer_epoch=9).pack() + content[128:])
    found = recover(bench.env.files, FOLDER, LOG_ID)
    assert [segment.header.name.file_name for segment in found.segments] == [twin] and found.superseded == [old]
    bench.open()
    assert bench.everything() == {0: b"a"}


def test_a_copy_beside_a_lost_segment_is_as_large_as_what_is_there(bench) -> None:
    fill(bench)
    lose(bench, bench.segments()[1])
    files = bench.env.files
    copy = LogCopy(ReadOnlyFiles(files), FOLDER, LOG_ID)
    copied = []
    copy.copy_to(MemoryFiles(), copied.append)
    assert copy.size_bytes == sum(copied) > 0


def test_a_store_that_forgot_a_log_skips_numbers_rather_than_guess(bench) -> None:
    fill(bench)
    bench.env.run_for(2_000)
    bench.env.files.set_bytes(f"store-0/newest/{LOG_ID}", b"junk")
    bench.reopen()
    assert any("newest" in alarm for alarm in map(str, bench.store.alarms.current()))
    assert bench.append(b"6").first_index > 1_000_000
    assert len(bench.everything()) == 7
    bench.reopen()
    assert not any("newest" in alarm for alarm in map(str, bench.store.alarms.current()))


def test_a_snapshot_beyond_the_end_is_believed(bench) -> None:
    """The newest segment's file is an older copy: it ends before what a snapshot covers."""
    bench.append(b"a")
    bench.env.run_for(2_000)
    name = bench.segments()[0]
    older = bytes(bench.env.files.bytes_of(f"{FOLDER}/{name}"))
    bench.append(b"b")
    bench.append(b"c")
    saved = []
    bench.log.save_snapshot(b"state", saved.append)
    bench.env.run_for(2_000)
    assert saved == [None]
    limit = load_newest(bench.env.files, "store-0", LOG_ID).index_limit
    bench.env.crash()
    bench.env = bench.env.restart()
    bench.env.files.set_bytes(f"{FOLDER}/{name}", older)
    bench.open()
    assert any("ends before record 2" in alarm for alarm in map(str, bench.store.alarms.current()))
    assert bench.append(b"other").first_index == limit
    assert bench.snapshot() == (3, b"state")
    answer = bench.read(1)
    assert isinstance(answer, Refused) and answer.error.resume_index == limit
