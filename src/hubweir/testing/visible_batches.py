"""The batches of a replicated log that count, in memory: what its owner reads and searches."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from hubweir.kernels import find_offset
from hubweir.messaging_store.completion import last_record_offset
from hubweir.messaging_store.log import Run
from hubweir.messaging_store.record import headers_of


@dataclass(frozen=True, slots=True)
class VisibleBatch:
    """A batch of an entry that counts, and the position of the entry."""

    data: bytes
    first_index: int
    next_index: int
    first_offset: int
    next_offset: int
    last_offset: int
    time_ms: int
    number: int
    position: int


class VisibleBatches:
    """In order, without gaps. An index or a time behind all of them is answered with None."""

    def __init__(self) -> None:
        self._batches: list[VisibleBatch] = []

    def add(self, run: bytes, position: int) -> Iterator[VisibleBatch]:
        """Put the batches of a completed run behind the others, each when it is asked for; they all have records."""
        for header in headers_of(run):
            data = run[header.position : header.end]
            last = last_record_offset(data, 0, header.count, header.first_offset, header.records_at - header.position)
            self._batches.append(
                VisibleBatch(
                    data,
                    header.first_index,
                    header.first_index + header.count,
                    header.first_offset,
                    header.first_offset + header.record_bytes,
                    last,
                    header.enqueued_time_ms,
                    header.number,
                    position,
                )  # fmt: skip
            )
            yield self._batches[-1]

    def keep(self, first_index: int, next_index: int) -> None:
        """Forget those that do not lie between these indexes."""
        self._batches = [
            batch for batch in self._batches if first_index <= batch.first_index and batch.next_index <= next_index
        ]

    def read(self, index: int, max_bytes: int) -> Run:
        """From the one that holds index on: one at least, then up to max_bytes."""
        at = bisect_right(self._batches, index, key=lambda batch: batch.first_index) - 1
        taken, size = [self._batches[at]], len(self._batches[at].data)
        for batch in self._batches[at + 1 :]:
            size += len(batch.data)
            if size > max_bytes:
                break
            taken.append(batch)
        return Run(b"".join(batch.data for batch in taken), taken[0].first_index, taken[-1].next_index)

    def runs_from(self, index: int) -> Iterator[Run]:
        """Each of them, from the one that holds index on."""
        for batch in self._batches:
            if batch.next_index > index:
                yield Run(batch.data, batch.first_index, batch.next_index)

    def find_offset(self, offset: int) -> int | None:
        """Index of the first record at offset or behind it."""
        for batch in self._batches:
            if batch.next_offset > offset:
                return batch.first_index + find_offset(batch.data, 0, offset)[1]
        return None

    def find_time(self, time_ms: int) -> int | None:
        """Index of the first record of time_ms or later."""
        return next((batch.first_index for batch in self._batches if batch.time_ms >= time_ms), None)

    def split_at(self, index: int) -> tuple[VisibleBatch | None, VisibleBatch | None]:
        """The last one that ends at index or before it, and the first one behind that."""
        kept = bisect_right(self._batches, index, key=lambda batch: batch.next_index)
        return (self._batches[kept - 1] if kept else None), (self._batches[kept] if kept < len(self._batches) else None)
