"""Maintains a fragment's log now and then: snapshots, trimming, and moving messages that stay long.

The log's prefix goes as far as no message that is there lies in it and two snapshots cover it. A message that stays
long would keep all that was appended behind it: when the log is many times larger than its messages, the oldest of them
are appended again, by a chain of MOVED and their records. They stay what they are but for where they lie. Fragments
that share a log do all of this together; a record that several of them have is moved once for each.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from functools import partial

from hubweir.kernels.contract import MESSAGE_WIDTH, Q_RECORD
from hubweir.kernels.queue_contract import M_INDEX, M_STATE, QUEUE_WIDTH, SIZE_SHIFT, STATE_BITS, T_SIZE
from hubweir.kernels.stored_batch import BATCH_RECORDS_LIMIT
from hubweir.messaging_store.log import Appended, Bounds, Log, Refused
from hubweir.messaging_store.operations import pack_operations
from hubweir.messaging_store.record import begin_batch, seal_batch
from hubweir.queue.fragment_core import FragmentCore
from hubweir.queue.fragment_values import Times
from hubweir.queue.operation import MOVED

# A replay of so many records, or bytes of them, takes some tenths of a second.
SNAPSHOT_RECORDS, SNAPSHOT_BYTES = 50_000, 32 * 1024 * 1024
# Pages that are packed in one call, 0.1 ms each: a large queue that has just been filled takes some calls.
PACKED_A_CALL = 256
# A log may have this many bytes more than four times those of its messages, before some are moved.
SLACK_BYTES = 64 * 1024 * 1024
MOVED_MESSAGES, MOVED_BYTES = 512, 4 * 1024 * 1024


class Upkeep:
    """Of one log. slack_bytes, snapshot_records, snapshot_bytes: as above; less in tests."""

    def __init__(
        self,
        log: Log,
        sharing: Callable[[], Sequence[FragmentCore]],
        snapshot: Callable[[], bytes],
        apply: Callable[[bytearray], None],
    ) -> None:
        """sharing: the fragments whose log it is. snapshot: encodes the state of all. apply: takes a visible run in."""
        self._log = log
        self._sharing = sharing
        self._snapshot = snapshot
        self._apply = apply
        self.slack_bytes = SLACK_BYTES
        self.snapshot_records = SNAPSHOT_RECORDS
        self.snapshot_bytes = SNAPSHOT_BYTES
        self.snapshot_index = self.snapshot_offset = 0  # of the newest
        self._is_saving = self._is_moving = False

    def maintain(self, times: Times) -> None:
        """See Fragment.maintain."""
        cores = self._sharing()
        for core in cores:
            core.reads.let_go()
        self._save(cores)
        self._trim(cores)
        self._move(cores, times)

    def _save(self, cores: Sequence[FragmentCore]) -> None:
        bounds = self._log.bounds
        records, size = bounds.next_index - self.snapshot_index, bounds.next_offset - self.snapshot_offset
        if self._is_saving or (records < self.snapshot_records and size < self.snapshot_bytes):
            return
        changed = [(core, page) for core in cores for page in core.state.messages.pages.values() if page.packed is None]
        if len(changed) > PACKED_A_CALL and not any(core.operations_under_way() for core in cores):
            for core, page in changed[:PACKED_A_CALL]:
                core.state.messages.pack(page)
            if records < 4 * self.snapshot_records and size < 4 * self.snapshot_bytes:
                return
        self._is_saving = True
        self._log.save_snapshot(self._snapshot(), partial(self._saved, bounds))

    def _saved(self, bounds: Bounds, refused: Refused | None) -> None:
        self._is_saving = False
        if refused is None:
            self.snapshot_index, self.snapshot_offset = bounds.next_index, bounds.next_offset

    def _trim(self, cores: Sequence[FragmentCore]) -> None:
        kept = [self.snapshot_index]
        for core in cores:
            needed = core.state.messages.least_index(), core.reads.least_index
            kept += [index for index in needed if index is not None]
        if min(kept) > self._log.bounds.first_index:
            self._log.trim(min(kept))

    def _move(self, cores: Sequence[FragmentCore], times: Times) -> None:
        bounds, size = self._log.bounds, sum(core.state.messages.tally[T_SIZE] for core in cores)
        held = bounds.next_offset - bounds.first_offset
        if self._is_moving or held <= self.slack_bytes + 4 * size:
            return
        before_index = bounds.first_index + (bounds.next_index - bounds.first_index) // 2
        for core in cores:
            counts, indexes = _oldest(core, before_index)
            if counts and times.monotonic_ms >= core.retry_ms:
                self._is_moving = True
                rows = array("q", bytes(8 * MESSAGE_WIDTH * len(counts)))
                core.reads.begin(indexes, rows, {}, partial(self._read, core, counts, rows, times))
                return

    def _read(
        self, core: FragmentCore, counts: array[int], rows: array[int], times: Times, answer: bytearray | Refused
    ) -> None:
        if isinstance(answer, Refused):
            self._is_moving = False
            return
        places = array("q", [at for at, count in enumerate(counts) if core.state.messages.find(count) is not None])
        left = array("q", [counts[at] for at in places])
        if not left:
            self._is_moving = False
            return
        starts = [rows[at * MESSAGE_WIDTH + Q_RECORD] for at in places]
        operations = core.encoded(core.ranged(MOVED, left))
        run = chain_of(operations, [record_at(answer, start) for start in starts])
        core.append(run, times, partial(self._moved, run))

    def _moved(self, run: bytearray, outcome: Appended | Refused) -> None:
        self._is_moving = False
        if not isinstance(outcome, Refused):
            self._apply(run)


def _oldest(core: FragmentCore, before_index: int) -> tuple[array[int], array[int]]:
    """Messages whose records lie before an index, with these, in the order of the log."""
    found: list[tuple[int, int, int]] = []
    for page in core.state.messages.pages.values():
        rows = page.rows
        for at in range(0, len(rows), QUEUE_WIDTH):
            if rows[at + M_STATE] & STATE_BITS and rows[at + M_INDEX] < before_index:
                found.append((rows[at + M_INDEX], page.first + at // QUEUE_WIDTH, rows[at + M_STATE] >> SIZE_SHIFT))
        if len(found) > 4 * MOVED_MESSAGES:
            break
    counts, indexes, size = array("q"), array("q"), 0
    for index, count, more in sorted(found)[:MOVED_MESSAGES]:
        size += more
        if counts and size > MOVED_BYTES:
            break
        counts.append(count)
        indexes.append(index)
    return counts, indexes


def chain_of(operations: Sequence[bytes], records: Sequence[bytes], behind: Sequence[bytes] = ()) -> bytearray:
    """One run, a chain of batches, so all or none: operations, records of messages, more operations."""
    run = pack_operations(operations, continues=bool(records or behind))
    at = 0
    while at < len(records):
        start = begin_batch(run)
        begin, size = at, 0
        while at < len(records) and (at == begin or size + len(records[at]) <= BATCH_RECORDS_LIMIT):
            run += records[at]
            size += len(records[at])
            at += 1
        seal_batch(run, start, count=at - begin, continues=at < len(records) or bool(behind))
    return run + pack_operations(behind)


def record_at(data: bytes | bytearray, at: int) -> bytes:
    """The stored record that begins there."""
    return bytes(data[at : at + int.from_bytes(data[at : at + 4], "big")])
