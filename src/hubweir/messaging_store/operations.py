"""Batches of operations: the records of a log that keeps its owner's changes, such as the catalog's.

One operation is one record: its length, 4 bytes, then the owner's bytes. A run of them is a chain of batches, so after
a crash all operations of a run are there, or none.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

from hubweir.kernels.stored_batch import BATCH_RECORDS_LIMIT, KIND_OPERATIONS, OPERATION_HEADER_SIZE, BatchHeader
from hubweir.messaging_store.record import begin_batch, headers_of, seal_batch

_U32 = struct.Struct(">I")


def pack_operations(operations: Iterable[bytes], *, continues: bool = False) -> bytearray:
    """A sealed run of kind operations, one record each; a chain when it takes more than one batch, so all or none.

    The run of no operations is empty. continues: batches that belong to the same chain are put behind it.
    """
    groups: list[list[bytes]] = []
    room = 0
    for operation in operations:
        size = OPERATION_HEADER_SIZE + len(operation)
        if size > room:
            groups.append([])
            room = BATCH_RECORDS_LIMIT
        groups[-1].append(operation)
        room -= size
    out = bytearray()
    for number, group in enumerate(groups, 1):
        start = begin_batch(out)
        for operation in group:
            out += _U32.pack(OPERATION_HEADER_SIZE + len(operation)) + operation
        seal_batch(out, start, count=len(group), kind=KIND_OPERATIONS, continues=continues or number < len(groups))
    return out


def operations_of(run: bytes | bytearray | memoryview) -> Iterator[tuple[int, memoryview]]:
    """(index, bytes) of every operation record in a run; batches of other kinds are stepped over. For replay."""
    for header in headers_of(run):
        if header.kind == KIND_OPERATIONS:
            yield from enumerate(operations_in(run, header), header.first_index)


def operations_in(run: bytes | bytearray | memoryview, header: BatchHeader) -> Iterator[memoryview]:
    """Bytes of every operation record of one batch, in order; of a batch of control none."""
    view, at = memoryview(run), header.records_at
    for _ in range(header.count):
        (length,) = _U32.unpack_from(view, at)
        yield view[at + OPERATION_HEADER_SIZE : at + length]
        at += length
