"""The small ranges of one task, read as if they were one: links attach at the same time, rows share batches.

A micro-batch of a thousand events has a few hundred of each partition. Read one after the other, each would wait for a
link, for its events and for the JVM that takes a batch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Protocol

import pyarrow as pa

# Of rows that share a batch: more gain nothing, and a column of Arrow takes 2 GiB.
_BYTES_A_BATCH = 64 * 1024 * 1024


class BegunReader(Protocol):
    """Of one range, as RangeReader is; its length is the number of its events."""

    def __len__(self) -> int: ...
    def begin(self) -> None: ...
    def read(self) -> Iterator[pa.RecordBatch]: ...
    def close(self) -> None: ...


def read_together(readers: Sequence[BegunReader], under_way: int, rows_a_batch: int) -> Iterator[pa.RecordBatch]:
    """All rows, reader by reader. A batch has rows_a_batch of them or few more, but the last, and one before a larger;
    fewer where rows are large.

    under_way: how many events the ranges that are asked for ahead may have in all, with the one that is read; a range
    that has more is asked for alone. May be closed early: every link is given back.
    """
    if len(readers) == 1:
        yield from readers[0].read()
        return
    waiting, begun = deque(readers), deque[BegunReader]()
    held: list[pa.RecordBatch] = []
    try:
        while waiting or begun:
            while waiting and (not begun or sum(map(len, begun)) + len(waiting[0]) <= under_way):
                begun.append(waiting.popleft())
                begun[-1].begin()
            for batch in begun[0].read():
                together = [*held, batch]
                if held and (
                    sum(each.num_rows for each in together) > rows_a_batch
                    or sum(each.nbytes for each in together) > _BYTES_A_BATCH
                ):
                    yield _joined(held)
                    held = []
                held.append(batch)
            begun.popleft()
        if held:
            yield _joined(held)
    finally:
        for reader in begun:
            reader.close()


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    (joined,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return joined
