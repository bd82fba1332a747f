"""A copy made from outside is the log of one moment: all that had been accepted, nothing that is refused afterwards."""

from __future__ import annotations

from random import Random

import pytest

from hubweir.messaging_store.disk.batch_scan import PIECE_BYTES
from hubweir.messaging_store.disk.inspection import StoredBatch, batches, look_at_log
from hubweir.messaging_store.disk.log_copy import LogChanged, LogCopy
from hubweir.messaging_store.disk.newest_segment import load_newest
from hubweir.messaging_store.disk.notes import load_notes
from hubweir.messaging_store.disk.read_only_files import ReadOnlyFiles
from hubweir.messaging_store.disk.snapshot import load_snapshots
from hubweir.messaging_store.log import Refused
from hubweir.messaging_store.retention import expire
from hubweir.messaging_store.segment_engine.log_state import LogSettings
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.messaging_store.tests.conftest import FOLDER, LOG_ID, Bench
from hubweir.testing.answers import opened_log
from hubweir.testing.memory_files import Fault, MemoryFiles
from hubweir.testing.simulated_env import SimulatedEnv


def looked(bench: Bench) -> LogCopy:
    return LogCopy(ReadOnlyFiles(bench.env.files), FOLDER, LOG_ID)


def copied(copy: LogCopy) -> dict[int, bytes]:
    """index → message of every record that a start would find in the copy."""
    target = MemoryFiles()
    copy.copy_to(target)
    files = ReadOnlyFiles(target)
    found = look_at_log(files, "store-0", LOG_ID)
    assert found.end.index == copy.next_index
    messages = {}
    for item in batches(files, found.segments):
        assert isinstance(item, StoredBatch), item
        messages |= {record.index: bytes(record.data[32:]) for record in item.records()}
    return messages


def test_what_was_accepted_at_the_look_is_in_the_copy_and_what_came_later_is_not(bench: Bench) -> None:
    for number in range(30):
        bench.append(b"early %d " % number * 10)
    copy = looked(bench)
    for number in range(30):
        bench.append(b"late %d " % number * 10)
    assert copy.is_vouched()
    assert copied(copy) == {number: b"early %d " % number * 10 for number in range(30)}


def test_a_store_takes_the_copy_for_whole_and_goes_on_behind_its_last_record(bench: Bench) -> None:
    for number in range(30):
        bench.append(b"early %d " % number * 10)
    copy = looked(bench)
    for number in range(30):
        bench.append(b"late %d " % number * 10)  # in newer segments, which the store remembers by now
    assert copy.is_vouched()
    target = MemoryFiles()
    copy.copy_to(target)
    env = SimulatedEnv(9, files=target)
    log = opened_log(env, store := MessagingStore.open(env, "store-0"), LOG_ID)
    kinds = [alarm.kind.name for alarm in store.alarms.current()]
    assert kinds == ["damaged-file"] and log.bounds.next_index == 30  # EPOCH is not the copy's to write


def test_what_was_lost_before_is_lost_in_the_copy(bench: Bench) -> None:
    for number in range(40):
        bench.append(b"%d " % number * 100)
    bench.env.run_for(2_000)
    bench.env.files.remove(f"{FOLDER}/{bench.segments()[-1]}")
    copy = looked(bench)
    assert copy.is_vouched()
    target = MemoryFiles()
    copy.copy_to(target)
    env = SimulatedEnv(9, files=target)
    log = opened_log(env, store := MessagingStore.open(env, "store-0"), LOG_ID)
    assert log.bounds.next_index > 40 and "the newest, is lost" in str(store.alarms.current()[-1])


def test_a_log_that_was_never_written_is_copied_as_it_is(bench: Bench) -> None:
    copy = looked(bench)
    assert copy.is_vouched() and copied(copy) == {}


def test_the_newest_records_are_vouched_for_by_the_mark_of_an_idle_log(bench: Bench) -> None:
    bench.append(b"the only one")
    copy = looked(bench)
    assert not copy.is_vouched()
    bench.env.run_for(1_000)
    assert copy.is_vouched() and copied(copy) == {0: b"the only one"}


def test_the_newest_records_are_vouched_for_by_a_roll(bench: Bench) -> None:
    bench.append(b"before the roll")
    copy = looked(bench)
    for number in range(20):
        bench.append(b"behind it %d " % number * 30, wait_ms=40)
    assert len(bench.segments()) > 1
    assert copy.is_vouched() and copied(copy) == {0: b"before the roll"}


def test_a_repair_that_drops_what_the_look_saw_makes_the_copy_impossible(bench: Bench) -> None:
    bench.append(b"accepted")
    bench.env.run_for(2_000)
    files = bench.env.files
    files.plan(Fault.SYNC_EIO)
    seen: list[LogCopy] = []
    write = files.count

    def look_before_the_sync(name: str, path: str) -> Fault | None:
        if name == "sync" and not seen and path.endswith(".log"):
            seen.append(LogCopy(ReadOnlyFiles(files.copy()), FOLDER, LOG_ID))
        return write(name, path)

    files.count = look_before_the_sync  # type: ignore[method-assign]
    bench.append(b"REFUSED")
    bench.env.run_for(2_000)
    files.count = write  # type: ignore[method-assign]
    assert isinstance(bench.outcomes[-1], Refused) and bench.outcomes[-1].known
    (copy,) = seen
    assert copy.next_index == 2  # the look saw what was refused afterwards
    copy._files = ReadOnlyFiles(files)
    with pytest.raises(LogChanged, match="refused"):
        copy.is_vouched()


def test_a_deleted_log_is_told(bench: Bench) -> None:
    bench.append(b"here")
    copy = looked(bench)
    bench.env.files.remove_folder(FOLDER)
    with pytest.raises(LogChanged, match="deleted"):
        copy.is_vouched()
    with pytest.raises(LogChanged):
        copy.copy_to(MemoryFiles())
    with pytest.raises(LogChanged, match="deleted"):
        looked(bench)


def trimmed_behind_a_look(bench: Bench, *, snapshot_at: int | None) -> LogCopy:
    """A look at several segments, the first of which retention removes before the copy."""
    for number in range(40):
        if number == snapshot_at:
            for _ in range(2):
                bench.log.save_snapshot(b"state", lambda outcome: None)
                bench.env.run_for(2_000)
        bench.append(b"%d " % number * 100, wait_ms=1_000)
    bench.env.run_for(2_000)
    copy = looked(bench)
    if snapshot_at is not None:
        for _ in range(2):
            bench.log.save_snapshot(b"later state", lambda outcome: None)
            bench.env.run_for(2_000)
    expire(bench.log, now_ms=bench.env.now_ms(), retention_ms=20_000)
    bench.env.run_for(2_000)
    assert bench.log.bounds.first_index > 0
    return copy


def test_what_retention_removes_before_it_is_copied_is_not_in_the_copy(bench: Bench) -> None:
    copy = trimmed_behind_a_look(bench, snapshot_at=None)
    messages = copied(copy)
    assert list(messages) == list(range(min(messages), 40)) and min(messages) > 0


def test_records_that_the_copied_snapshots_do_not_cover_may_not_be_missing(bench: Bench) -> None:
    copy = trimmed_behind_a_look(bench, snapshot_at=1)
    with pytest.raises(LogChanged, match="trimmed"):
        copied(copy)


@pytest.mark.parametrize("covered", [[3], [4], [3, 9], [4, 9], [9, 9]])
def test_a_segment_may_be_missing_whose_records_and_marks_all_snapshots_cover(bench: Bench, covered: list[int]) -> None:
    """The first segment ends before record 3; what is noted between the records may stand at its end."""
    for number in range(10):
        if number == 3:
            bench.log._commit.roll()
            bench.env.run_for(100)
        for _ in range(covered.count(number)):
            bench.log.save_snapshot(b"state", lambda outcome: None)
            bench.env.run_for(100)
        bench.append(b"%d" % number)
    bench.env.run_for(2_000)
    first, _ = bench.segments()
    copy = looked(bench)
    bench.env.files.remove(f"{FOLDER}/{first}")
    if min(covered) > 3:
        assert list(copied(copy)) == list(range(3, 10))
    else:
        with pytest.raises(LogChanged, match="trimmed"):
            copied(copy)


def test_a_roll_right_behind_the_look_vouches_for_it_and_for_good(bench: Bench) -> None:
    bench.append(b"the only one")
    copy = looked(bench)
    assert not copy.is_vouched()
    bench.log._commit.roll()
    bench.env.run_for(100)
    assert len(bench.segments()) == 2 and copy.is_vouched()
    bench.env.files.remove_folder(FOLDER)
    assert copy.is_vouched()


@pytest.mark.parametrize("is_known", [True, False])
def test_the_copys_store_remembers_of_the_log_what_the_store_does(bench: Bench, is_known: bool) -> None:
    bench.append(b"one")
    bench.env.run_for(2_000)
    if not is_known:
        bench.env.files.set_bytes(f"store-0/newest/{LOG_ID}", b"junk")
    target = MemoryFiles()
    looked(bench).copy_to(target)
    known = load_newest(bench.env.files, "store-0", LOG_ID)
    assert load_newest(target, "store-0", LOG_ID) == known and (known is not None) is is_known


def test_a_copy_whose_store_remembered_too_little_has_no_number_beyond_what_is_remembered(bench: Bench) -> None:
    """A segment is made between the look at what the store remembers and the look at the segments."""
    bench.append(b"one")
    older = bytes(bench.env.files.bytes_of(f"store-0/newest/{LOG_ID}"))
    for number in range(400):
        bench.append(b"%d " % number * 40, wait_ms=1)
    bench.env.run_for(2_000)
    bench.env.files.set_bytes(f"store-0/newest/{LOG_ID}", older)
    target = MemoryFiles()
    copy = looked(bench)
    copy.copy_to(target)
    newest = load_newest(target, "store-0", LOG_ID)
    assert newest is not None and newest.name.file_name == bench.segments()[-1]
    assert newest.index_limit >= copy.next_index and newest.offset_limit >= bench.log.bounds.next_offset


def test_nothing_behind_the_look_is_in_a_copy_of_a_large_segment() -> None:
    bench = Bench(settings=LogSettings())
    bench.append(bytes(PIECE_BYTES + 5_000))
    bench.env.run_for(2_000)
    copy = looked(bench)
    bench.append(b"later")
    target, sizes = MemoryFiles(), list[int]()
    copy.copy_to(target, sizes.append)
    assert len(sizes) == 2 and sum(sizes) == copy.size_bytes
    assert [len(target.bytes_of(f"{FOLDER}/{name}")) for name in bench.segments()] == [copy.size_bytes]


def test_small_files_are_those_of_the_look(bench: Bench) -> None:
    bench.append(b"one")
    bench.log.save_snapshot(b"first state", lambda outcome: None)
    bench.note(b"x", b"first note", wait_ms=2_000)
    copy = looked(bench)
    bench.append(b"two")
    bench.note(b"x", b"second note")
    bench.log.save_snapshot(b"second state", lambda outcome: None)
    bench.env.run_for(2_000)
    target = MemoryFiles()
    copy.copy_to(target)
    assert b"first state" in bytes(target.bytes_of(f"{FOLDER}/snapshot"))
    [(name, notes)] = copy.notes().items()
    assert notes == bytes(target.bytes_of(f"{FOLDER}/{name}")) and b"first note" in notes


@pytest.mark.parametrize("seed", range(8))
def test_a_copy_survives_a_power_cut(seed: int) -> None:
    bench = Bench()
    for number in range(Random(seed).randrange(1, 40)):
        bench.append(b"%d " % number * 40)
    bench.env.run_for(2_000)
    target = MemoryFiles(seed)
    bench.log.save_snapshot(b"state " * 200, lambda outcome: None)
    bench.note(b"x", b"noted", wait_ms=2_000)
    looked(bench).copy_to(target)
    for parent in ("store-0/logs", "store-0", ""):  # the caller's part
        target.sync_folder(parent)
    target.power_cut()
    files = ReadOnlyFiles(target)
    assert [snapshot.state for snapshot in load_snapshots(files, FOLDER)] == [b"state " * 200]
    assert load_notes(files, FOLDER).notes[b"x"].body == b"noted"
    found = look_at_log(files, "store-0", LOG_ID)
    seen = [item.header.first_index for item in batches(files, found.segments) if isinstance(item, StoredBatch)]
    assert found.end.index == bench.log.bounds.next_index and len(set(seen)) >= bench.log.bounds.next_index


def test_the_indexes_of_finished_segments_are_copied_with_them(bench: Bench) -> None:
    for number in range(30):
        bench.append(b"early %d " % number * 20)
    bench.env.run_for(2_000)
    target = MemoryFiles()
    looked(bench).copy_to(target)
    theirs = [path for path in bench.env.files.paths() if path.endswith((".offsets", ".times"))]
    assert theirs and {path: target.bytes_of(path) for path in theirs} == {
        path: bench.env.files.bytes_of(path) for path in theirs
    }
