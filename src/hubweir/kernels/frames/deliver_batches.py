"""Stored batches as the payload of deliveries, without what is the service's own, in plain Python: deliver_batches."""

from __future__ import annotations

from dataclasses import dataclass
from struct import pack

from hubweir.errors import KernelRefusal
from hubweir.kernels.batches.batches import open_batch, record_end
from hubweir.kernels.buffers.crc import crc32c
from hubweir.kernels.buffers.tables import MASK_64
from hubweir.kernels.contract import STORED_FORMAT, Readable, RunCursor, SendRoom, TransferForm
from hubweir.kernels.frames.deliver import check_cursor, check_form
from hubweir.kernels.frames.transfers import frames_of, prefix_of
from hubweir.kernels.stored_batch import (
    CRC_SEED,
    FLAG_NAME_IS_KEY,
    FLAG_NAME_IS_PUBLISHER,
    HEADER_SIZE,
    HEADER_STRUCT,
    KIND_EVENTS,
    MAGIC,
    VERSION,
    BatchHeader,
)


@dataclass(frozen=True, slots=True)
class _Load:
    """What goes into one delivery, how many events that is, and the place behind them."""

    payload: bytes
    events: int
    stop: RunCursor


def deliver_batches(
    run: Readable,
    cursor: RunCursor,
    form: TransferForm,
    delivery_id: int,
    room: SendRoom,
    max_events: int,
    out: bytearray,
) -> tuple[int, int, int, RunCursor]:
    """Write transfer frames that carry the batches of a run; see contract.py."""
    view = memoryview(run)
    check_cursor(cursor, len(view))
    check_form(form, delivery_id)
    begun, events, deliveries, frames = len(out), 0, 0, 0
    try:
        while cursor.batch_at < len(view) and events < max_events and deliveries < room.deliveries:
            prefix = prefix_of(form, (delivery_id + deliveries) % 2**32, STORED_FORMAT)
            piece = form.max_frame_size - len(prefix)
            left = min(piece, room.bytes - (len(out) - begun) - len(prefix))
            if deliveries and left < piece:
                break
            load = _load(view, cursor, left, max_events - events)
            if not load.events:  # nothing but batches that are no events
                cursor = load.stop
                break
            count = -(-len(load.payload) // piece)
            over = len(out) - begun + len(load.payload) + count * len(prefix) > room.bytes
            if deliveries and (frames + count > room.frames or over):
                break
            out += frames_of(prefix, load.payload, form.max_frame_size)
            events, deliveries, frames = events + load.events, deliveries + 1, frames + count
            cursor = load.stop
    except KernelRefusal:
        del out[begun:]
        raise
    if cursor.batch_at >= len(view):
        return events, deliveries, frames, RunCursor(len(view))
    if not cursor.ordinal:
        cursor = RunCursor(cursor.batch_at)
    return events, deliveries, frames, cursor


def _load(data: memoryview, cursor: RunCursor, room: int, most: int) -> _Load:
    """The events of the next delivery: what room bytes take, whole batches where these fill half of it, but one event
    at least."""
    batch_at, record_at, ordinal = cursor.batch_at, cursor.record_at, cursor.ordinal
    payload, events = b"", 0
    while batch_at < len(data) and events < most:
        batch = open_batch(data, batch_at)
        if batch.kind == KIND_EVENTS and ordinal < batch.count:
            record_at = record_at or batch.records_at
            if not batch.records_at <= record_at <= batch.end:
                raise KernelRefusal(f"the run is damaged in the batch at {batch_at}")
            left = room - len(payload) - HEADER_SIZE - batch.name_length
            if events and 2 * len(payload) >= room and batch.end - record_at > left:
                break  # a batch that goes whole keeps its checksum: better than a full frame
            at, stop = _fitting(data, batch, record_at, ordinal, left, most - events)
            if stop == ordinal and not events:
                at, stop = _fitting(data, batch, record_at, ordinal, batch.end, 1)
            if stop > ordinal:
                payload += _batch(data, batch, record_at, ordinal, at, stop)
                events += stop - ordinal
            if stop < batch.count:
                return _Load(payload, events, RunCursor(batch_at, at, stop))
        batch_at, record_at, ordinal = batch.end, 0, 0
    return _Load(payload, events, RunCursor(batch_at, record_at, ordinal))


def _fitting(data: memoryview, batch: BatchHeader, at: int, ordinal: int, room: int, most: int) -> tuple[int, int]:
    """Where the records end that room bytes take, at most `most`, and the place behind them."""
    if batch.count - ordinal <= most and batch.end - at <= room:
        return batch.end, batch.count
    begun, last = at, min(batch.count, ordinal + most)
    while ordinal < last:
        end = record_end(data, at, batch)
        if end - begun > room:
            break
        at, ordinal = end, ordinal + 1
    if ordinal == batch.count and at != batch.end:
        raise KernelRefusal(f"the records of the batch at {batch.position} end before it")
    return at, ordinal


def _batch(data: memoryview, batch: BatchHeader, record_at: int, ordinal: int, end: int, stop: int) -> bytes:
    """The batch's events ordinal to stop - 1 under a header that tells nothing else."""
    payload = bytes(data[batch.name_at : batch.name_at + batch.name_length]) + data[record_at:end]
    is_whole = len(payload) == batch.end - batch.name_at
    header = pack(
        HEADER_STRUCT, MAGIC, VERSION, KIND_EVENTS, batch.flags & (FLAG_NAME_IS_KEY | FLAG_NAME_IS_PUBLISHER),
        HEADER_SIZE + len(payload), stop - ordinal, batch.name_length, 0,
        batch.payload_crc if is_whole else crc32c(payload, CRC_SEED), 0, 0,
        (batch.first_index + ordinal) & MASK_64, (batch.first_offset + record_at - batch.records_at) & MASK_64,
        batch.enqueued_time_ms, 0, 0, 0,
    )  # fmt: skip
    return header + payload
