"""The newest visible runs of a log, in memory: what live readers are served from.

Whole runs as they were appended, bounded by bytes. What is not synced yet (relaxed mode) is never dropped, whatever
the bound: after a failed sync it is the only evidence there is. Runs are in order and without gaps, but for numbers
that a control batch skipped. After a crash: gone; the files hold it.
"""

from __future__ import annotations

import struct
from bisect import bisect_right

from msgspec import Struct

from hubweir.kernels.stored_batch import AT_COUNT, AT_FIRST_INDEX, AT_LENGTH
from hubweir.messaging_store.log import Run

_LENGTH_COUNT = struct.Struct(">II")
_INDEX = struct.Struct(">Q")
assert AT_COUNT == AT_LENGTH + 4
_COMPACT_AT = 256


class TailRun(Struct, frozen=True):
    """One appended run and what it spans; control runs span no index. number: of its first batch."""

    number: int
    data: memoryview
    first_index: int
    next_index: int
    next_offset: int
    time_ms: int


class Tail:
    """Runs in order. start_index: everything visible from here on is in it."""

    __slots__ = ("_bytes", "_firsts", "_head", "_limit_bytes", "_runs", "start_index")

    def __init__(self, limit_bytes: int, start_index: int) -> None:
        self._limit_bytes = limit_bytes
        self._runs: list[TailRun] = []
        self._firsts: list[int] = []
        self._head = 0
        self._bytes = 0
        self.start_index = start_index

    def add(self, run: TailRun) -> None:
        """Put a run behind the others; `shrink` follows."""
        self._runs.append(run)
        self._firsts.append(run.first_index)
        self._bytes += len(run.data)

    def shrink(self, keep_from: int) -> None:
        """Drop runs over the bound from the front, but none with a batch number from keep_from on, nor the last.

        Batch numbers tell what is synced, indexes do not: a control batch takes none.
        """
        head, runs = self._head, self._runs
        while self._bytes > self._limit_bytes and head < len(runs) - 1 and runs[head + 1].number <= keep_from:
            self._bytes -= len(runs[head].data)
            self.start_index = runs[head].next_index
            head += 1
        if head >= _COMPACT_AT and head * 2 >= len(runs):
            del runs[:head], self._firsts[:head]
            head = 0
        elif head != self._head:
            empty = TailRun(0, memoryview(b""), 0, 0, 0, 0)
            runs[self._head : head] = [empty] * (head - self._head)
        self._head = head

    def forget_from(self, number: int) -> None:
        """Drop every run from this batch number on: it was put here, but never shown."""
        while len(self._runs) > self._head and self._runs[-1].number >= number:
            self._bytes -= len(self._runs.pop().data)
            self._firsts.pop()

    def runs_from(self, number: int) -> list[memoryview]:
        """The data of every run whose first batch has this number or a higher one, in order."""
        return [run.data for run in self._runs[self._head :] if run.number >= number]

    def read(self, index: int, max_bytes: int) -> Run | None:
        """Batches from the one that holds index on: one at least, then up to max_bytes. None: nothing from there on.

        No copy when they lie in one appended run.
        """
        number = max(bisect_right(self._firsts, index, self._head) - 1, self._head)
        runs = self._runs
        while number < len(runs) and runs[number].next_index <= index:
            number += 1  # numbers that were skipped, and control runs
        if number == len(runs):
            return None
        run = runs[number]
        start, stop, next_index = 0, len(run.data), run.next_index  # a run that is wanted whole is not walked
        if index > run.first_index:
            start = _batch_of(run.data, index)
        if stop - start > max_bytes:
            stop, next_index = _up_to(run.data, start, max_bytes)
        first_index = _INDEX.unpack_from(run.data, start + AT_FIRST_INDEX)[0]
        if stop < len(run.data) or number + 1 == len(runs):
            return Run(run.data[start:stop], first_index, next_index)
        parts, size = [run.data[start:stop]], stop - start
        while number + 1 < len(runs):
            number += 1
            run = runs[number]
            if size + len(run.data) > max_bytes:
                break
            parts.append(run.data)
            size += len(run.data)
            next_index = run.next_index
        return Run(parts[0] if len(parts) == 1 else b"".join(parts), first_index, next_index)

    def find_offset(self, offset: int) -> TailRun | None:
        """The first run that reaches beyond an offset. Ask only for offsets from the tail's start on."""
        number = bisect_right(self._runs, offset, self._head, key=lambda run: run.next_offset)
        return self._runs[number] if number < len(self._runs) else None

    def find_time(self, time_ms: int) -> int | None:
        """Index of the first record enqueued at time_ms or later; None when none is."""
        number = bisect_right(self._runs, time_ms - 1, self._head, key=lambda run: run.time_ms)
        while number < len(self._runs) and self._runs[number].first_index == self._runs[number].next_index:
            number += 1
        return self._runs[number].first_index if number < len(self._runs) else None

    def first_run(self) -> TailRun | None:
        """The oldest run that is still held."""
        return self._runs[self._head] if self._head < len(self._runs) else None


def _batch_of(data: memoryview, index: int) -> int:
    """Position of the batch of a run that holds index."""
    at = 0
    while True:
        length, count = _LENGTH_COUNT.unpack_from(data, at + AT_LENGTH)
        if index < _INDEX.unpack_from(data, at + AT_FIRST_INDEX)[0] + count:
            return at
        at += length


def _up_to(data: memoryview, start: int, max_bytes: int) -> tuple[int, int]:
    """Where to stop behind start so that one batch at least, and at most max_bytes, lie between; the next index."""
    length, count = _LENGTH_COUNT.unpack_from(data, start + AT_LENGTH)
    stop, next_index = start + length, _INDEX.unpack_from(data, start + AT_FIRST_INDEX)[0] + count
    while stop < len(data):
        length, count = _LENGTH_COUNT.unpack_from(data, stop + AT_LENGTH)
        if stop + length - start > max_bytes:
            break
        next_index = _INDEX.unpack_from(data, stop + AT_FIRST_INDEX)[0] + count
        stop += length
    return stop, next_index
