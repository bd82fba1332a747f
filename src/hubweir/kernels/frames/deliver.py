"""Turn stored events into transfer frames in plain Python: deliver."""

from __future__ import annotations

from dataclasses import dataclass
from struct import pack, unpack_from

from hubweir.errors import KernelRefusal
from hubweir.kernels.batches.batches import open_batch, record_end
from hubweir.kernels.buffers.tables import MASK_64
from hubweir.kernels.contract import Readable, RunCursor, SendRoom, TransferForm
from hubweir.kernels.frames.transfers import frames_of, prefix_of
from hubweir.kernels.messages.sections import (
    DELIVERY_ANNOTATIONS,
    HEADER,
    MESSAGE_ANNOTATIONS,
    Malformed,
    Section,
    is_name,
    map_entries,
    read_section,
)
from hubweir.kernels.stored_batch import (
    ABSENT,
    AT_DELIVERY_ANNOTATIONS,
    AT_HEADER_END,
    AT_MESSAGE_ANNOTATIONS,
    FLAG_NAME_IS_KEY,
    FLAG_NAME_IS_PUBLISHER,
    KIND_EVENTS,
    RECORD_HEADER_SIZE,
    BatchHeader,
)

# AMQP part 2 section 2.4.1: no peer may ask for less.
LEAST_FRAME_SIZE = 512

SEQUENCE_NUMBER, OFFSET, ENQUEUED_TIME = b"x-opt-sequence-number", b"x-opt-offset", b"x-opt-enqueued-time"
PARTITION_KEY, PUBLISHER = b"x-opt-partition-key", b"x-opt-publisher"


@dataclass(frozen=True, slots=True)
class Name:
    """What a batch's name block adds to the annotations of each of its events, and which stored names it replaces."""

    entries: tuple[bytes, ...]
    replaced: tuple[bytes, ...]


def deliver(
    run: Readable,
    cursor: RunCursor,
    form: TransferForm,
    delivery_id: int,
    room: SendRoom,
    out: bytearray,
    inserted: bytes = b"",
) -> tuple[int, int, RunCursor]:
    """Write transfer frames for the events of a run; see contract.py."""
    view = memoryview(run)
    check_cursor(cursor, len(view))
    check_form(form, delivery_id)
    batch_at, record_at, ordinal = cursor.batch_at, cursor.record_at, cursor.ordinal
    begun, events, frames = len(out), 0, 0
    try:
        while batch_at < len(view):
            batch = open_batch(view, batch_at)
            name = _name(view, batch)
            at = record_at or batch.records_at
            while batch.kind == KIND_EVENTS and ordinal < batch.count:
                message = _message(view, batch, at, ordinal, name, inserted)
                prefix = prefix_of(form, (delivery_id + events) % 2**32, 0)
                count = max(1, -(-len(message) // (form.max_frame_size - len(prefix))))
                size = len(message) + count * len(prefix)
                over = frames + count > room.frames or len(out) - begun + size > room.bytes
                if events >= room.deliveries or (events and over):
                    return events, frames, RunCursor(batch_at, at if ordinal else 0, ordinal)
                out += frames_of(prefix, message, form.max_frame_size)
                events, frames = events + 1, frames + count
                at, ordinal = record_end(view, at, batch), ordinal + 1
            batch_at, record_at, ordinal = batch.end, 0, 0
    except (KernelRefusal, Malformed) as refusal:
        del out[begun:]
        raise KernelRefusal(f"the run is damaged in the batch at {batch_at}") from refusal
    return events, frames, RunCursor(len(view))


def check_cursor(cursor: RunCursor, size: int) -> None:
    """Refuse what is no place in a run of so many bytes."""
    batch_at, record_at, ordinal = cursor.batch_at, cursor.record_at, cursor.ordinal
    if not 0 <= batch_at <= size or record_at < 0 or ordinal < 0 or (ordinal > 0 and record_at == 0):
        raise KernelRefusal(f"batch {batch_at}, record {record_at}, place {ordinal} are no position of a run")


def check_form(form: TransferForm, delivery_id: int) -> None:
    """Refuse what no transfer frame can say."""
    channel, handle = form.channel, form.handle
    if not 0 <= channel < 2**16 or not 0 <= handle < 2**32 or not 0 <= delivery_id < 2**32:
        raise KernelRefusal(f"channel {channel}, handle {handle} or delivery id {delivery_id} is out of range")
    if form.max_frame_size < LEAST_FRAME_SIZE:
        raise KernelRefusal(f"max-frame-size {form.max_frame_size} is under {LEAST_FRAME_SIZE}")


def _name(data: memoryview, batch: BatchHeader) -> Name:
    stripped = (SEQUENCE_NUMBER, OFFSET, ENQUEUED_TIME, PUBLISHER)
    if not batch.name_length or not batch.flags & (FLAG_NAME_IS_KEY | FLAG_NAME_IS_PUBLISHER):
        return Name((), stripped)
    text = string(bytes(data[batch.name_at : batch.name_at + batch.name_length]))
    names = (PARTITION_KEY, PUBLISHER) if batch.flags & FLAG_NAME_IS_PUBLISHER else (PARTITION_KEY,)
    return Name(tuple(symbol(name) + text for name in names), (*stripped, PARTITION_KEY))


def _message(data: memoryview, batch: BatchHeader, at: int, ordinal: int, name: Name, inserted: bytes) -> bytes:
    """Return the message of the record at `at` as it goes out."""
    end = record_end(data, at, batch)
    start = at + RECORD_HEADER_SIZE
    header = _header(data, at, end)
    own = section_at(data, at, AT_DELIVERY_ANNOTATIONS, DELIVERY_ANNOTATIONS, end)
    stored = section_at(data, at, AT_MESSAGE_ANNOTATIONS, MESSAGE_ANNOTATIONS, end)
    sequence_number = (batch.first_index + ordinal) & MASK_64
    offset = (batch.first_offset + at - batch.records_at) & MASK_64
    entries = [
        symbol(SEQUENCE_NUMBER) + b"\x81" + sequence_number.to_bytes(8, "big"),
        symbol(OFFSET) + string(b"%d" % offset),
        symbol(ENQUEUED_TIME) + b"\x83" + batch.enqueued_time_ms.to_bytes(8, "big", signed=True),
        *name.entries,
    ]
    if stored is not None:
        for key, value, stop in map_entries(data, stored.value, stored.end):
            if not any(is_name(data, key, value, replaced) for replaced in name.replaced):
                entries.append(bytes(data[key:stop]))
    front = b"" if header is None else bytes(data[header.start : header.end])
    front += inserted or (b"" if own is None else bytes(data[own.start : own.end]))
    # What is left is everything between the sections that moved to the front.
    moved = sorted((part.start, part.end) for part in (header, own, stored) if part is not None)
    rest = b""
    for part_start, part_end in moved:
        if part_start < start:
            raise Malformed
        rest += data[start:part_start]
        start = part_end
    return front + _annotations(entries) + rest + data[start:end]


def section_at(data: memoryview, record: int, field: int, code: int, end: int) -> Section | None:
    """Return the section whose position stands in a field of the record header."""
    position = int.from_bytes(data[record + field : record + field + 4], "big")
    if position == ABSENT:
        return None
    if position > end - record - RECORD_HEADER_SIZE:
        raise Malformed
    section = read_section(data, record + RECORD_HEADER_SIZE + position, end)
    if section.code != code:
        raise Malformed
    return section


def _header(data: memoryview, record: int, end: int) -> Section | None:
    """Return the header section. It is first unless a sender put others before it: then walk to it."""
    header_end = int.from_bytes(data[record + AT_HEADER_END : record + AT_HEADER_END + 4], "big")
    if not header_end:
        return None
    at = record + RECORD_HEADER_SIZE
    if header_end > end - at:
        raise Malformed
    stop = at + header_end
    positions = unpack_from(">6I", data, record + AT_DELIVERY_ANNOTATIONS)
    if min(positions) >= header_end:
        return Section(HEADER, at, at, stop)
    while at < stop:
        section = read_section(data, at, stop)
        if section.code == HEADER:
            return section
        at = section.end
    raise Malformed


def _annotations(entries: list[bytes]) -> bytes:
    """Return the message annotations section of these entries (key and value of each), as small as it can be."""
    content, count = b"".join(entries), 2 * len(entries)
    if len(content) + 1 <= 0xFF and count <= 0xFF:
        return b"\x00\x53\x72\xc1" + pack(">BB", len(content) + 1, count) + content
    return b"\x00\x53\x72\xd1" + pack(">II", len(content) + 4, count) + content


def symbol(name: bytes) -> bytes:
    return pack(">BB", 0xA3, len(name)) + name


def string(text: bytes) -> bytes:
    return (pack(">BB", 0xA1, len(text)) if len(text) <= 0xFF else pack(">BI", 0xB1, len(text))) + text
