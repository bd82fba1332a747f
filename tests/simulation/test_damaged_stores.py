"""T10 and attack 91: a small store with every cut, every flipped bit, swapped and misdirected blocks, forged batches.

Never wrong bytes; and nothing below D (the largest durable_upto that a sound batch still says) is dropped silently: a
read there gives the record, or says that it is damaged.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from hubweir.errors import CorruptStore
from hubweir.kernels import scan_batches, which
from hubweir.kernels.contract import (
    B_FIRST_INDEX,
    B_FIRST_OFFSET,
    B_NUMBER,
    BATCH_WIDTH,
    W_INDEX,
    W_NUMBER,
    W_OFFSET,
)
from hubweir.kernels.stored_batch import BatchHeader, read_header
from hubweir.messaging_store.completion import LogEnd, complete_run
from hubweir.messaging_store.disk import batch_scan, segment
from hubweir.messaging_store.disk.layout import parse_segment_name
from hubweir.messaging_store.log import Refused, Run
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.messaging_store.segment_engine.segment_log import SegmentLog
from hubweir.testing.answers import made_log, runs_of
from hubweir.testing.memory_files import MemoryFiles
from hubweir.testing.simulated_env import SimulatedEnv
from tests.simulation.log_world import LOG_ID, STORE, Record, Violation, events_run, records_of
from tests.simulation.planted_defects import cut_at_the_first_damage

FOLDER = f"{STORE}/logs/{LOG_ID}"


@dataclass(slots=True)
class Sample:
    """A store as a kill left it, and what it holds. batches: of the newest segment."""

    files: MemoryFiles
    records: dict[int, bytes]
    older: str
    newest: str
    newest_first_index: int
    batches: list[tuple[int, int, BatchHeader]]  # start, end, header


def _open(files: MemoryFiles) -> tuple[SimulatedEnv, MessagingStore, SegmentLog]:
    env = SimulatedEnv(5, files=files)
    store = MessagingStore.open(env, STORE)
    return env, store, made_log(env, store, LOG_ID)


@pytest.fixture(scope="module")
def sample() -> Sample:
    """Two segments, about 4 KiB: one of an earlier process, closed; one with rounds, a mark, and rounds behind it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segment, "FIRST_STEP_BYTES", 512)
        patch.setattr(segment, "MARK_ROOM_BYTES", 256)
        env, store, log = _open(MemoryFiles(1))

        def append(*messages: bytes) -> None:
            log.append(events_run([[message] for message in messages]), now_ms=env.now_ms(), on_done=lambda _: None)
            env.run_for(50)

        append(b"zero" * 30, b"one" * 40)
        append(b"two" * 50)
        store.close(lambda: None)
        env.run()
        env.crash()
        env, store, log = _open(env.files)
        for number in range(3, 8):
            append(b"%d" % number * (20 * number), b"%d+" % number * 10)
        env.run_for(3000)
        append(b"after the mark" * 5)
        append(b"last" * 5)
        env.crash()
    names = [name for path in env.files.paths() if (name := parse_segment_name(path.rpartition("/")[2]))]
    older, newest = (f"{FOLDER}/{name.file_name}" for name in sorted(names, key=lambda name: name.first_index))
    copied, _, log = _open(env.files.copy())
    records = {record.index: record.message for run in runs_of(copied, log) for record in records_of(run.data)}
    data, at, batches = env.files.bytes_of(newest), segment.SEGMENT_HEADER_SIZE, []
    while at < len(data):
        header = read_header(data, at)
        batches.append((at, header.end, header))
        at = header.end
    assert len(records) == 15 and _vouched_index(batches, max(header.durable_upto for _, _, header in batches)) == 14
    return Sample(env.files, records, older, newest, max(name.first_index for name in names), batches)


def _vouched_index(batches: list[tuple[int, int, BatchHeader]], number: int) -> int:
    """Up to which index batches have smaller numbers than D."""
    return max((header.first_index + header.count for _, _, header in batches if header.number < number), default=0)


def look(sample: Sample, path: str, data: bytes) -> None:
    """Open a copy of the store with other bytes in one file, read all of it, and judge."""
    files = sample.files.copy()
    files.set_bytes(path, data)
    vouched, number = sample.newest_first_index, 0
    if path == sample.newest:
        original = sample.files.bytes_of(path)
        for start, end, header in sample.batches:
            if data[start:end] == original[start:end]:
                number = max(number, header.durable_upto)
        vouched = max(vouched, _vouched_index(sample.batches, number))
    try:
        env, store, log = _open(files)
    except CorruptStore:
        return  # said aloud: nothing is served
    shown = read_everything(env, log)
    for index, message in shown.items():
        if isinstance(message, bytes) and sample.records.get(index) != message:
            raise Violation(f"index {index} is served with wrong bytes")
    for index in range(vouched):
        if index not in shown:
            raise Violation(f"index {index} is below D = {vouched} and was dropped silently")
    if any(message is None for message in shown.values()) and not store.alarms.current():
        raise Violation("damage without an alarm")


def read_everything(env: SimulatedEnv, log: SegmentLog) -> dict[int, bytes | None]:
    """Every index the log says it has: its bytes, or None where the log says that they are damaged."""
    shown: dict[int, bytes | None] = {}
    index = log.bounds.first_index
    while index < log.bounds.next_index:
        answers: list[Run | Refused] = []
        run = log.read(index, max_bytes=1, on_done=answers.append)
        if not isinstance(run, Run):
            env.run_for(100)
            if isinstance(answers[0], Refused):
                assert isinstance(answers[0].error, CorruptStore)
                shown[index] = None
                index += 1
                continue
            run = answers[0]
        found: list[Record] = [record for record in records_of(run.data) if record.index >= index]
        for record in found:
            shown[record.index] = record.message
        index = found[-1].index + 1 if found else run.next_index
    return shown


def _step(measure: Callable[[int], int]) -> int:
    """Every place in the long run; every seventh otherwise; fewer where plain Python checks."""
    return (1 if measure(10) == 10 else 13) * (10 if which() == "pure" else 1)


def test_the_untouched_store_shows_everything(sample: Sample) -> None:
    env, _, log = _open(sample.files.copy())
    assert read_everything(env, log) == sample.records


@pytest.mark.parametrize("which_file", ["older", "newest"])
def test_every_cut(sample: Sample, which_file: str, measure: Callable[[int], int]) -> None:
    path = getattr(sample, which_file)
    data = bytes(sample.files.bytes_of(path))
    for cut in range(0, len(data), _step(measure)):
        look(sample, path, data[:cut])


@pytest.mark.timeout(600)
@pytest.mark.parametrize("which_file", ["older", "newest"])
def test_every_flipped_bit(sample: Sample, which_file: str, measure: Callable[[int], int]) -> None:
    path = getattr(sample, which_file)
    data = bytearray(sample.files.bytes_of(path))
    for bit in range(0, len(data) * 8, _step(measure)):
        data[bit // 8] ^= 1 << bit % 8
        look(sample, path, bytes(data))
        data[bit // 8] ^= 1 << bit % 8


@pytest.mark.parametrize("block", [512, 128])
@pytest.mark.parametrize("which_file", ["older", "newest"])
def test_swapped_and_misdirected_blocks(sample: Sample, which_file: str, block: int) -> None:
    path = getattr(sample, which_file)
    data = bytes(sample.files.bytes_of(path))
    starts = range(0, len(data) - block + 1, block)
    for one in starts:
        for other in starts:
            changed = bytearray(data)
            changed[other : other + block] = data[one : one + block]
            look(sample, path, bytes(changed))
            if one < other:  # the other way round the same two are swapped
                changed[one : one + block] = data[other : other + block]
                look(sample, path, bytes(changed))


def test_whole_batches_in_each_others_place(sample: Sample) -> None:
    """Their checksums hold; only their numbers tell."""
    data = bytes(sample.files.bytes_of(sample.newest))
    for start, end, _ in sample.batches:
        for other, _, _ in sample.batches:
            changed = bytearray(data)
            changed[other : other + end - start] = data[start:end]
            look(sample, sample.newest, bytes(changed))


def test_a_file_of_another_log_is_not_served(sample: Sample) -> None:
    look(sample, sample.older, bytes(sample.files.bytes_of(sample.newest)))


def test_control_cutting_at_the_first_damage_is_found(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    cut_at_the_first_damage(monkeypatch)
    with pytest.raises(Violation, match="dropped silently"):
        test_every_flipped_bit(sample, "newest", lambda count: 1)


def test_control_numbers_unchecked_are_found(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    follow = batch_scan.follow_batches

    def credulous(data, nonce, walk, entries, table):  # type: ignore[no-untyped-def]
        taken, noted, status = follow(data, nonce, walk, entries, table)
        row = array("q", bytes(8 * BATCH_WIDTH))
        if taken or not scan_batches(data, 0, len(data), nonce, row)[0]:
            return taken, noted, status
        walk[W_INDEX], walk[W_OFFSET], walk[W_NUMBER] = row[B_FIRST_INDEX], row[B_FIRST_OFFSET], row[B_NUMBER]
        return follow(data, nonce, walk, entries, table)

    monkeypatch.setattr(batch_scan, "follow_batches", credulous)
    with pytest.raises((Violation, struct.error)):  # a number below what is durable cannot be packed
        test_whole_batches_in_each_others_place(sample)


def _store_with_a_forged_batch(nonce: int) -> tuple[MemoryFiles, int]:
    """Attack 91: one good event; then a torn write of one whose body is a complete batch with a large durable_upto."""
    env, store, log = _open(MemoryFiles(2))
    log.append(events_run([[b"good"]]), now_ms=env.now_ms(), on_done=lambda _: None)
    env.run_for(50)
    forged = events_run([[b"forged"]])
    complete_run(
        forged,
        LogEnd(1, 36, number=10_000),
        nonce=nonce,
        enqueued_time_ms=env.now_ms() + 1,
        durable_upto=10_000,
        writer_epoch=1,
    )
    active = log._state.segments.active
    assert active is not None
    torn_at, path = active.end, active.path
    log.append(events_run([[bytes(forged)]]), now_ms=env.now_ms(), on_done=lambda _: None)
    env.run_for(50)
    env.crash()
    data = env.files.bytes_of(path)
    assert struct.pack(">Q", 10_000) in data[torn_at:]
    data[torn_at : torn_at + 112] = bytes(112)  # the sectors of the outer header never reached the disk
    return env.files, log._state.nonce


@pytest.mark.parametrize("nonce", [0, 1, 0x0123456789ABCDEF])
def test_a_batch_forged_inside_a_body_is_never_served(nonce: int) -> None:
    files, _ = _store_with_a_forged_batch(nonce)
    env, store, log = _open(files)
    assert read_everything(env, log) == {0: b"good"}
    assert not store.alarms.current()


def test_control_without_the_nonce_the_forged_batch_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    forged_nonce = 0x0123456789ABCDEF
    files, nonce = _store_with_a_forged_batch(forged_nonce)
    find, follow = batch_scan.find_sound, batch_scan.follow_batches
    monkeypatch.setattr(batch_scan, "find_sound", lambda file, at, end, _: find(file, at, end, forged_nonce))

    def any_nonce(data, given, *tables):  # type: ignore[no-untyped-def]
        found = follow(data, nonce, *tables)
        return found if found[0] else follow(data, forged_nonce, *tables)

    monkeypatch.setattr(batch_scan, "follow_batches", any_nonce)
    env, _, log = _open(files)
    assert b"forged" in read_everything(env, log).values()
