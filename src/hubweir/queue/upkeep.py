"""What a fragment does for its log now and then: snapshots, trimming, and moving messages that stay long.

The log's prefix goes as far as no message that is there lies in it and two snapshots cover it. A message that stays
long would keep all that was appended behind it: when the log is many times larger than its messages, the oldest of them
are appended again, by a chain of MOVED and their records. They stay what they are but for where they lie.
"""

from __future__ import annotations

import struct
from array import array
from functools import partial

from hubweir.kernels.contract import MESSAGE_WIDTH, Q_RECORD
from hubweir.kernels.queue_contract import M_INDEX, M_STATE, QUEUE_WIDTH, SIZE_SHIFT, STATE_BITS, T_SIZE
from hubweir.kernels.stored_batch import BATCH_RECORDS_LIMIT, KIND_OPERATIONS, OPERATION_HEADER_SIZE
from hubweir.messaging_store.log import Appended, Bounds, Refused
from hubweir.messaging_store.record import begin_batch, seal_batch
from hubweir.queue.fragment_core import FragmentCore
from hubweir.queue.fragment_snapshot import encode_snapshot
from hubweir.queue.fragment_values import Times
from hubweir.queue.operation import MOVED, encode_operation

# A replay of so many records, or bytes of them, takes some tenths of a second.
SNAPSHOT_RECORDS, SNAPSHOT_BYTES = 50_000, 32 * 1024 * 1024
# Pages that are packed in one call, 0.1 ms each: a large queue that has just been filled takes some calls.
PACKED_A_CALL = 256
# A log may have this many bytes more than four times those of its messages, before some are moved.
SLACK_BYTES = 64 * 1024 * 1024
MOVED_MESSAGES, MOVED_BYTES = 512, 4 * 1024 * 1024


class Upkeep:
    """Of one fragment. slack_bytes, snapshot_records, snapshot_bytes: as above; less in tests."""

    def __init__(self, core: FragmentCore) -> None:
        self._core = core
        self.slack_bytes = SLACK_BYTES
        self.snapshot_records = SNAPSHOT_RECORDS
        self.snapshot_bytes = SNAPSHOT_BYTES
        self.snapshot_index = self.snapshot_offset = 0  # of the newest
        self._is_saving = self._is_moving = False

    def maintain(self, times: Times) -> None:
        """See Fragment.maintain."""
        self._core.reads.let_go()
        self._save()
        self._trim()
        self._move(times)

    def _save(self) -> None:
        core = self._core
        bounds = core.log.bounds
        records, size = bounds.next_index - self.snapshot_index, bounds.next_offset - self.snapshot_offset
        if self._is_saving or (records < self.snapshot_records and size < self.snapshot_bytes):
            return
        messages = core.state.messages
        changed = [page for page in messages.pages.values() if page.packed is None]
        if len(changed) > PACKED_A_CALL and not core.operations_under_way():
            for page in changed[:PACKED_A_CALL]:
                messages.pack(page)
            if records < 4 * self.snapshot_records and size < 4 * self.snapshot_bytes:
                return
        self._is_saving = True
        state = encode_snapshot(core.state, core.operations_under_way())
        core.log.save_snapshot(state, partial(self._saved, bounds))

    def _saved(self, bounds: Bounds, refused: Refused | None) -> None:
        self._is_saving = False
        if refused is None:
            self.snapshot_index, self.snapshot_offset = bounds.next_index, bounds.next_offset

    def _trim(self) -> None:
        core = self._core
        least = core.state.messages.least_index()
        reading = core.reads.least_index
        kept = [self.snapshot_index, *(index for index in (least, reading) if index is not None)]
        if min(kept) > core.log.bounds.first_index:
            core.log.trim(min(kept))

    def _move(self, times: Times) -> None:
        core = self._core
        bounds, size = core.log.bounds, core.state.messages.tally[T_SIZE]
        held = bounds.next_offset - bounds.first_offset
        if self._is_moving or held <= self.slack_bytes + 4 * size or times.monotonic_ms < core.retry_ms:
            return
        counts, indexes = self._oldest(bounds.first_index + (bounds.next_index - bounds.first_index) // 2)
        if not counts:
            return
        self._is_moving = True
        rows = array("q", bytes(8 * MESSAGE_WIDTH * len(counts)))
        core.reads.begin(indexes, rows, {}, partial(self._read, counts, rows, times))

    def _oldest(self, before_index: int) -> tuple[array[int], array[int]]:
        """Messages whose records lie before an index, with these, in the order of the log."""
        found: list[tuple[int, int, int]] = []
        for page in self._core.state.messages.pages.values():
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

    def _read(self, counts: array[int], rows: array[int], times: Times, answer: bytearray | Refused) -> None:
        if isinstance(answer, Refused):
            self._is_moving = False
            return
        core = self._core
        places = array("q", [at for at, count in enumerate(counts) if core.state.messages.find(count) is not None])
        left = array("q", [counts[at] for at in places])
        if not left:
            self._is_moving = False
            return
        starts = [rows[at * MESSAGE_WIDTH + Q_RECORD] for at in places]
        operations = [encode_operation(each) for each in core.ranged(MOVED, left)]
        run = moving_run(operations, [_record(answer, start) for start in starts])
        core.append(run, times, partial(self._moved, run))

    def _moved(self, run: bytearray, outcome: Appended | Refused) -> None:
        self._is_moving = False
        if not isinstance(outcome, Refused):
            self._core.state.apply_run(run, is_replay=False)


def moving_run(operations: list[bytes], records: list[bytes]) -> bytearray:
    """One chain: a batch of operations, then the records in batches."""
    run = bytearray()
    start = begin_batch(run)
    for operation in operations:
        run += struct.pack(">I", OPERATION_HEADER_SIZE + len(operation)) + operation
    seal_batch(run, start, count=len(operations), kind=KIND_OPERATIONS, continues=True)
    at = 0
    while at < len(records):
        start = begin_batch(run)
        begin, size = at, 0
        while at < len(records) and (at == begin or size + len(records[at]) <= BATCH_RECORDS_LIMIT):
            run += records[at]
            size += len(records[at])
            at += 1
        seal_batch(run, start, count=at - begin, continues=at < len(records))
    return run


def _record(data: bytearray, at: int) -> bytes:
    return bytes(data[at : at + int.from_bytes(data[at : at + 4], "big")])
