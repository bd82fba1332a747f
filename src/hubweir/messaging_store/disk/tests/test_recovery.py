from __future__ import annotations

from dataclasses import fields
from random import Random

import pytest

from hubweir.errors import CorruptStore
from hubweir.kernels import twins
from hubweir.kernels.contract import W_POSITION
from hubweir.kernels.stored_batch import MAGIC
from hubweir.messaging_store.disk import batch_scan, recovery, sparse_index
from hubweir.messaging_store.disk.batch_scan import Place, follow
from hubweir.messaging_store.disk.newest_segment import load_newest
from hubweir.messaging_store.disk.read_only_files import ReadOnlyFiles
from hubweir.messaging_store.disk.recovery import UsedNumbers, recover
from hubweir.messaging_store.disk.segment import SEGMENT_HEADER_SIZE
from hubweir.messaging_store.disk.sparse_index import SegmentIndexes
from hubweir.messaging_store.log import Durability, Refused
from hubweir.messaging_store.segment_engine.log_state import LogSettings
from hubweir.messaging_store.segment_engine.open_log import SKIPPED_NUMBERS
from hubweir.messaging_store.tests.conftest import LOG_ID, Bench, events
from hubweir.testing.memory_files import MemoryFiles

FOLDER = "store-0/logs/" + "ab" * 16


def newest(bench) -> bytearray:
    data: bytearray = bench.env.files.bytes_of(f"{FOLDER}/{bench.segments()[-1]}")
    return data


def test_an_empty_folder_is_an_empty_log() -> None:
    found = recover(MemoryFiles(), "nowhere", "ab" * 16)
    assert (found.end.index, found.nonce, found.clean, found.segments) == (0, None, True, [])


def test_a_kill_keeps_what_was_written_and_makes_it_durable(bench) -> None:
    bench.append(b"a")
    bench.append(b"b")
    bench.reopen()
    bench.reopen(power_cut=True)
    assert bench.everything() == {0: b"a", 1: b"b"} and not bench.store.alarms.current()


def test_a_torn_tail_is_dropped_without_a_word(bench) -> None:
    bench.append(b"a")
    bench.append(b"torn" * 10)
    newest(bench)[-3] ^= 1
    bench.reopen()
    assert bench.everything() == {0: b"a"} and not bench.store.alarms.current()
    assert bench.append(b"new").first_index == 1


def test_a_tail_chain_goes_back_to_its_first_batch(bench, make_events) -> None:
    bench.append(b"a")
    chain = make_events([b"one"], [b"two"], [b"three" * 10])
    bench.log.append(chain, now_ms=bench.env.now_ms(), on_done=bench.outcomes.append)
    bench.env.run_for(50)
    newest(bench)[-3] ^= 1
    bench.reopen()
    assert bench.everything() == {0: b"a"}


def test_what_a_dropped_chain_held_is_not_the_last_record(bench, make_events) -> None:
    first = bench.append(b"a", wait_ms=5_000)
    chain = make_events([b"one"], [b"two"], [b"three" * 10])
    bench.log.append(chain, now_ms=bench.env.now_ms(), on_done=bench.outcomes.append)
    bench.env.run_for(50)
    newest(bench)[-3] ^= 1
    found = recover(ReadOnlyFiles(bench.env.files), FOLDER, LOG_ID)
    assert (found.last_index, found.last_offset, found.end.index) == (0, first.first_offset, 1)
    assert found.last_time_ms == first.enqueued_time_ms


def test_what_a_lost_segment_took_over_is_not_counted_in_the_one_before(bench) -> None:
    """The second event was rewritten into a new segment, and stands in the old one too; then the new one is lost."""
    bench.append(b"a", wait_ms=2_000)
    bench.append(b"b")
    behind_first = newest(bench).index(MAGIC, SEGMENT_HEADER_SIZE + 1)
    bench.reopen()
    old, new = sorted(bench.segments())
    bench.env.files.remove(f"{FOLDER}/{new}")
    remembered = load_newest(bench.env.files, "store-0", LOG_ID)
    found = recover(ReadOnlyFiles(bench.env.files), FOLDER, LOG_ID, newest=remembered)
    kept = found.segments[0]
    assert (kept.path, kept.end_index, found.lost_from) == (f"{FOLDER}/{old}", 1, 1)
    assert (found.last_index, kept.end_position) == (0, behind_first)


def test_a_newest_segment_without_records_leaves_the_last_record_as_it_was(make_bench) -> None:
    bench = make_bench(durability=Durability.RELAXED)
    last = bench.append(b"a", wait_ms=2_000)
    bench.reopen()  # numbers are skipped, in a segment of their own
    found = recover(ReadOnlyFiles(bench.env.files), FOLDER, LOG_ID)
    assert found.segments[-1].first_index > 0 and found.end.index > SKIPPED_NUMBERS
    assert (found.last_index, found.last_offset) == (0, last.first_offset)
    assert found.last_time_ms == last.enqueued_time_ms


def test_damage_at_d_is_a_torn_tail_though_a_sound_batch_follows(bench) -> None:
    """Both were written by one round: the second says no more than that nothing before the first was unsynced."""
    bench.append(b"first" * 10, wait_ms=0)
    bench.append(b"second" * 10)
    data = newest(bench)
    data[data.index(b"first" * 10)] ^= 1
    bench.reopen()
    assert bench.everything() == {} and not bench.store.alarms.current()


def test_damage_below_d_is_quarantined_and_the_rest_served(bench) -> None:
    for number in range(4):
        bench.append(b"%d" % number * 30)
    bench.env.run_for(2000)
    data = newest(bench)
    data[data.index(b"1" * 30)] ^= 1
    bench.reopen()
    assert bench.log.bounds.next_index == 4
    assert [isinstance(bench.read(index, max_bytes=1), Refused) for index in range(4)] == [False, True, False, False]
    assert isinstance(bench.read(1).error, CorruptStore)
    assert len(bench.store.alarms.current()) == 1 and bench.counters["log.corrupt_records"] == 1
    with pytest.raises(CorruptStore):
        list(bench.runs())
    assert [run.first_index for run in bench.runs(2)] == [2]


def test_damage_in_an_older_segment_is_found_by_the_read(bench) -> None:
    bench.append(b"old" * 30)
    bench.append(b"old too" * 30)
    bench.reopen(close=True)
    bench.append(b"new")
    data = bench.env.files.bytes_of(f"{FOLDER}/{bench.segments()[0]}")
    data[data.index(b"old" * 30)] ^= 1
    bench.reopen()
    assert not bench.store.alarms.current()
    assert isinstance(bench.read(0), Refused) and len(bench.store.alarms.current()) == 1
    assert bench.read(1, max_bytes=1).first_index == 1


def test_nothing_is_ever_written_into_an_old_file(bench) -> None:
    bench.append(b"a")
    bench.append(b"b")
    old = bench.segments()[0]
    before = bytes(bench.env.files.bytes_of(f"{FOLDER}/{old}"))
    bench.reopen()
    bench.append(b"c")
    bench.reopen(close=True)
    assert bytes(bench.env.files.bytes_of(f"{FOLDER}/{old}")) == before


def test_a_relaxed_log_skips_numbers_after_an_unclean_stop_only(make_bench) -> None:
    bench = make_bench(durability=Durability.RELAXED)
    bench.append(b"a")
    bench.reopen(close=True)
    assert bench.append(b"b").first_index == 1
    bench.reopen()
    assert bench.append(b"c").first_index == 2 + SKIPPED_NUMBERS
    assert bench.everything() == {0: b"a", 1: b"b", 2 + SKIPPED_NUMBERS: b"c"}


def test_unfinished_files_are_removed(bench) -> None:
    bench.append(b"a")
    bench.env.files.open(f"{FOLDER}/00000000000000000009-00000009.log.new", create=True).write(0, [b"half"])
    bench.reopen()
    assert not any(path.endswith(".new") for path in bench.env.files.paths())


def test_the_scan_starts_at_the_last_saved_entry(make_bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = make_bench(settings=LogSettings())
    for number in range(40):
        bench.append(b"%d" % number * 4000, wait_ms=5)
    starts: list[int] = []

    def noted(file, walk, *rest):  # type: ignore[no-untyped-def]
        starts.append(walk[W_POSITION])
        return follow(file, walk, *rest)

    monkeypatch.setattr(recovery, "follow", noted)
    bench.reopen(close=True)
    assert min(starts) > 100_000
    assert bench.log.bounds.next_index == 40 and len(bench.everything()) == 40


def save_last_entry(bench, place: Place) -> None:
    """Let the newest segment's saved index end with this place."""
    stem = bench.segments()[-1].removesuffix(".log")
    indexes = SegmentIndexes()
    indexes.note(place, 1)
    indexes.save(bench.env.files, FOLDER, stem)


@pytest.mark.parametrize("off_by", [1, 40])
def test_a_saved_entry_that_names_no_batch_is_not_believed(bench, off_by: int) -> None:
    for number in range(4):
        bench.append(b"%d" % number * 30)
    bench.env.run_for(2000)
    active = bench.log._state.segments.active
    bench.env.crash()
    end = active.end
    save_last_entry(bench, Place(SEGMENT_HEADER_SIZE + off_by, 0, 0))
    found = recover(bench.env.files, FOLDER, "ab" * 16)
    assert found.end.index == 4 and found.end.position == end and found.segments[0].damage == []


def test_a_saved_entry_behind_the_last_record_does_not_hide_the_records(bench) -> None:
    """Only the mark stands behind it: the last record's index and offset are those before."""
    bench.append(b"a", b"b")
    active = bench.log._state.segments.active
    before_mark = Place(active.end, 2, bench.log.bounds.next_offset)
    bench.env.run_for(2000)
    assert active.end > before_mark.position
    last_offset = bench.log.bounds.last_offset
    bench.env.crash()
    save_last_entry(bench, before_mark)
    found = recover(bench.env.files, FOLDER, "ab" * 16)
    assert (found.end.index, found.last_index, found.last_offset) == (2, 1, last_offset)


def test_the_saved_entry_at_which_a_scan_starts_is_not_noted_again(bench) -> None:
    for body in (b"a", b"b"):
        bench.append(body, wait_ms=2_000)
    last = bench.append(b"c")
    third = Place(newest(bench).rindex(MAGIC), last.first_index, last.first_offset)
    bench.env.run_for(2_000)
    bench.env.crash()
    save_last_entry(bench, third)
    [segment] = recover(bench.env.files, FOLDER, "ab" * 16).segments
    assert segment.indexes is not None and len(segment.indexes.offsets) == 1 and segment.end_position > third.position


def test_a_saved_entry_behind_d_does_not_hide_what_nobody_vouched_for(bench) -> None:
    """Three batches of one round: none of them says that another was durable, so all must be rewritten."""
    for body in (b"a", b"b"):
        bench.append(body, wait_ms=0)
    last = bench.append(b"c")
    third = Place(newest(bench).rindex(MAGIC), last.first_index, last.first_offset)
    bench.env.crash()
    save_last_entry(bench, third)
    found = recover(bench.env.files, FOLDER, "ab" * 16)
    assert (found.vouched.index, found.end.index, found.needs_rewrite) == (0, 3, True)


@pytest.mark.parametrize("seed", range(40))
def test_a_start_finds_the_same_whatever_the_piece_and_the_kernel(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random logs with single batches, chains, marks, damage and torn ends."""
    random, bench = Random(seed), Bench()
    for number in range(random.randrange(1, 30)):
        run = events(*[[b"%d" % number] * random.randrange(1, 4)] * random.choice([1, 1, 1, 3]))
        bench.log.append(run, now_ms=bench.env.now_ms(), on_done=bench.outcomes.append)
        bench.env.run_for(random.choice([5, 30, 30, 1_500]))
    path = max(path for path in bench.env.files.paths() if path.startswith(FOLDER) and path.endswith(".log"))
    data = bench.env.files.bytes_of(path)
    for _ in range(seed % 3):
        data[random.randrange(SEGMENT_HEADER_SIZE, len(data))] ^= 1
    if seed % 4 == 0:
        data[random.randrange(min(400, len(data)), len(data) + 1) :] = b""  # behind the header and the first batch
    monkeypatch.setattr(sparse_index, "ENTRY_EVERY_BYTES", random.choice([1, 200, 500]))
    files = ReadOnlyFiles(bench.env.files)

    def found() -> list[object]:
        recovered = recover(files, FOLDER, LOG_ID)
        whole = [getattr(recovered, each.name) for each in fields(recovered) if each.name != "segments"]
        numbers = [recovered.end.number, recovered.vouched.number]  # which places do not compare
        segment = recovered.segments[-1]
        assert segment.indexes is not None
        return [*whole, numbers, segment.damage, segment.indexes.offsets.pack(), segment.indexes.times.pack()]

    expected = found()
    monkeypatch.setattr(batch_scan.follow, "__defaults__", (random.choice([300, 700, 2_000]), None))
    assert found() == expected
    monkeypatch.setattr(batch_scan, "follow_batches", twins.follow_batches)
    assert found() == expected


def test_of_two_notes_of_used_numbers_the_higher_index_and_the_higher_offset_count() -> None:
    """They may come from different files: what either of them says was used is never given again. (Promise P4)"""
    one, other = UsedNumbers(5, 100), UsedNumbers(7, 90)
    assert one.or_more(other) == other.or_more(one) == UsedNumbers(7, 100)
