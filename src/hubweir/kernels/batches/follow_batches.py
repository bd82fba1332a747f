"""Follow the stored batches of a log in plain Python: follow_batches, what a start runs over a newest segment."""

from __future__ import annotations

from array import array
from struct import unpack_from

from hubweir.errors import KernelRefusal
from hubweir.kernels.batches.scan_batches import batch_row, check_batch
from hubweir.kernels.buffers.tables import MASK_64, signed
from hubweir.kernels.contract import (
    BATCH_WIDTH,
    BATCHES_DAMAGED,
    BATCHES_LIMIT,
    BATCHES_OK,
    SPARSE_WIDTH,
    W_BEFORE_BATCH,
    W_BEFORE_TIME,
    W_CHAIN_INDEX,
    W_CHAIN_NUMBER,
    W_CHAIN_OFFSET,
    W_CHAIN_POSITION,
    W_DURABLE_UPTO,
    W_ENTRY_BYTES,
    W_FIRST_NUMBER,
    W_INDEX,
    W_IS_CLOSED,
    W_LAST_BATCH,
    W_LAST_TIME,
    W_LIMIT,
    W_MARKS_FROM,
    W_NEXT_ENTRY,
    W_NUMBER,
    W_OFFSET,
    W_POSITION,
    WALK_WIDTH,
    Readable,
)
from hubweir.kernels.stored_batch import (
    CONTROL_IDLE_MARK,
    CONTROL_SKIPPED,
    FLAG_CONTINUES,
    KIND_CONTROL,
    MARK_CLOSED,
    SKIPPED_SIZE,
    SKIPPED_STRUCT,
    BatchHeader,
    read_header,
)

CLOSED_MARK = bytes((CONTROL_IDLE_MARK, MARK_CLOSED))


def follow_batches(
    data: Readable, nonce: int, walk: array[int], entries: array[int], table: array[int] | None
) -> tuple[int, int, int]:
    """Go over stored batches that continue each other; see contract.py."""
    view = memoryview(data)
    if not 0 <= nonce <= MASK_64:
        raise KernelRefusal(f"{nonce} is no nonce")
    if len(walk) < WALK_WIDTH:
        raise KernelRefusal(f"a walk of {len(walk)} numbers is none")
    base, taken, written, at = walk[W_POSITION], 0, 0, 0
    while at < len(view):
        if table is not None and taken == len(table) // BATCH_WIDTH:
            break
        status = check_batch(view, at, len(view), nonce)
        if status != BATCHES_OK:
            return taken, written, status
        batch = read_header(view, at)
        payload = bytes(view[batch.records_at : batch.end]) if batch.kind == KIND_CONTROL else b""
        if not _continues(batch, payload, walk):
            return taken, written, BATCHES_DAMAGED
        if walk[W_INDEX] >= walk[W_LIMIT]:
            return taken, written, BATCHES_LIMIT
        if walk[W_POSITION] >= walk[W_NEXT_ENTRY]:
            if written == len(entries) // SPARSE_WIDTH:
                break
            entry = (walk[W_POSITION], walk[W_INDEX], walk[W_OFFSET], batch.enqueued_time_ms)
            entries[written * SPARSE_WIDTH : (written + 1) * SPARSE_WIDTH] = array("q", entry)
            written += 1
            walk[W_NEXT_ENTRY] = walk[W_POSITION] + walk[W_ENTRY_BYTES]
        if table is not None:
            table[taken * BATCH_WIDTH : (taken + 1) * BATCH_WIDTH] = batch_row(batch)
        if taken == 0:
            walk[W_FIRST_NUMBER] = signed(batch.number)
        _take(batch, payload, walk)
        taken += 1
        at = walk[W_POSITION] - base
    return taken, written, BATCHES_OK


def _continues(batch: BatchHeader, payload: bytes, walk: array[int]) -> bool:
    """Whether a sound batch is one that may follow; of a control batch also whether what it says is all there."""
    if signed(batch.first_index) != walk[W_INDEX] or signed(batch.first_offset) != walk[W_OFFSET]:
        return False
    if signed(batch.number) < walk[W_NUMBER]:
        return False
    return payload[:1] != bytes((CONTROL_SKIPPED,)) or len(payload) >= SKIPPED_SIZE


def _take(batch: BatchHeader, payload: bytes, walk: array[int]) -> None:
    """Move the walk over one batch, which continues it. payload: of a control batch, else nothing."""
    walk[W_DURABLE_UPTO] = max(walk[W_DURABLE_UPTO], signed(batch.number - batch.unsynced))
    if not batch.flags & FLAG_CONTINUES:
        walk[W_CHAIN_POSITION] = -1
    elif walk[W_CHAIN_POSITION] < 0:
        walk[W_CHAIN_POSITION], walk[W_CHAIN_INDEX] = walk[W_POSITION], walk[W_INDEX]
        walk[W_CHAIN_OFFSET], walk[W_CHAIN_NUMBER] = walk[W_OFFSET], signed(batch.number)
        walk[W_BEFORE_BATCH], walk[W_BEFORE_TIME] = walk[W_LAST_BATCH], walk[W_LAST_TIME]
    is_mark = not batch.count and payload[:1] == bytes((CONTROL_IDLE_MARK,))
    if batch.count:
        walk[W_LAST_BATCH], walk[W_LAST_TIME] = walk[W_POSITION], batch.enqueued_time_ms
    walk[W_IS_CLOSED] = is_mark and payload == CLOSED_MARK
    if not is_mark:
        walk[W_MARKS_FROM] = -1
    elif walk[W_MARKS_FROM] < 0:
        walk[W_MARKS_FROM] = walk[W_POSITION]
    if batch.kind != KIND_CONTROL:
        walk[W_INDEX] = signed(walk[W_INDEX] + batch.count)
        walk[W_OFFSET] = signed(walk[W_OFFSET] + batch.end - batch.records_at)
    elif payload[:1] == bytes((CONTROL_SKIPPED,)):
        _, next_index, next_offset = unpack_from(SKIPPED_STRUCT, payload)
        walk[W_INDEX], walk[W_OFFSET] = signed(next_index), signed(next_offset)
    walk[W_NUMBER] = signed(batch.number + 1)
    walk[W_POSITION] += batch.length
