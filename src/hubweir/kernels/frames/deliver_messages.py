"""Turn stored messages of a queue into transfer frames in plain Python: deliver_messages, encode_message."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from struct import pack

from msgspec.structs import replace

from hubweir.errors import KernelRefusal
from hubweir.kernels.buffers.tables import MASK_64, check_rows
from hubweir.kernels.contract import (
    FORWARDED_BIT,
    MESSAGE_WIDTH,
    Q_DELIVERY_COUNT,
    Q_ENQUEUE_NUMBER,
    Q_ENQUEUED_MS,
    Q_EXPIRES_MS,
    Q_ID_NUMBER,
    Q_LOCK,
    Q_LOCK_CHECK,
    Q_LOCKED_UNTIL_MS,
    Q_PARTITION,
    Q_RECORD,
    Q_SEQUENCE_NUMBER,
    Q_STATE,
    Q_TTL_MS,
    Readable,
    SendRoom,
    TransferForm,
)
from hubweir.kernels.frames.deliver import check_form, string, symbol
from hubweir.kernels.frames.transfers import frames_of, prefix_of
from hubweir.kernels.messages.sections import (
    DELIVERY_ANNOTATIONS,
    HEADER,
    HEADER_FIELDS,
    MESSAGE_ANNOTATIONS,
    NULL,
    PROPERTIES,
    PROPERTIES_FIELDS,
    Malformed,
    Section,
    find_section,
    is_name,
    list_fields,
    map_entries,
    read_message,
)
from hubweir.kernels.stored_batch import RECORD_HEADER_SIZE

# What the broker writes itself: an entry of the sender's under one of these names goes nowhere.
BROKER_NAMES = (
    b"x-opt-enqueued-time",
    b"x-opt-sequence-number",
    b"x-opt-enqueue-sequence-number",
    b"x-opt-locked-until",
    b"x-opt-message-state",
    b"x-opt-partition-id",
)
# Of these null counts as left out.
NULL_NAMES = (
    b"x-opt-partition-key",
    b"x-opt-via-partition-key",
    b"x-opt-deadletter-source",
    b"x-opt-scheduled-enqueue-time",
)
# A forward writes it into the record of a dead letter; in a message that was not forwarded it is the sender's.
DEAD_LETTER_SOURCE = b"x-opt-deadletter-source"
LOCK_TOKEN = b"x-opt-lock-token"
# Places in the header and properties lists. (part 3, sections 3.2.1 and 3.2.4)
TTL, DELIVERY_COUNT = 2, 4
MESSAGE_ID, ABSOLUTE_EXPIRY_TIME = 0, 8
ID_DIGITS = 16


def deliver_messages(
    run: Readable,
    rows: array[int],
    first_row: int,
    id_prefix: bytes,
    form: TransferForm,
    delivery_id: int,
    room: SendRoom,
    out: bytearray,
    handles: array[int] | None = None,
) -> tuple[int, int]:
    """Write transfer frames for the messages of rows; see contract.py."""
    view = memoryview(run)
    last_row = len(rows) // MESSAGE_WIDTH
    check_rows(rows, MESSAGE_WIDTH, first_row, last_row)
    check_form(form, delivery_id)
    if handles is not None:
        check_handles(handles, last_row)
    check_prefix(id_prefix)
    begun, messages, frames = len(out), 0, 0
    try:
        last_row = min(last_row, first_row + room.deliveries)
        for at in range(first_row * MESSAGE_WIDTH, last_row * MESSAGE_WIDTH, MESSAGE_WIDTH):
            row = rows[at : at + MESSAGE_WIDTH]
            message = _message(view, row, id_prefix)
            if handles is not None:
                form = replace(form, handle=handles[at // MESSAGE_WIDTH])
            prefix = prefix_of(form, (delivery_id + messages) % 2**32, 0, tag=_tag(row))
            count = max(1, -(-len(message) // (form.max_frame_size - len(prefix))))
            size = len(message) + count * len(prefix)
            if messages and (frames + count > room.frames or len(out) - begun + size > room.bytes):
                break
            out += frames_of(prefix, message, form.max_frame_size)
            messages, frames = messages + 1, frames + count
    except Malformed as refusal:
        del out[begun:]
        raise KernelRefusal("the run is damaged, or a row names no record of it") from refusal
    return messages, frames


def encode_message(run: Readable, rows: array[int], row: int, id_prefix: bytes) -> bytes:
    """Return one message of rows as it goes out; see contract.py."""
    check_rows(rows, MESSAGE_WIDTH, row, row + 1)
    check_prefix(id_prefix)
    try:
        return _message(memoryview(run), rows[row * MESSAGE_WIDTH : (row + 1) * MESSAGE_WIDTH], id_prefix)
    except Malformed as refusal:
        raise KernelRefusal("the run is damaged, or a row names no record of it") from refusal


def check_handles(handles: array[int], rows: int) -> None:
    check_rows(handles, 1, 0, rows)
    if any(not 0 <= handle < 2**32 for handle in handles):
        raise KernelRefusal("a handle is out of range")


def check_prefix(id_prefix: bytes) -> None:
    if len(id_prefix) != ID_DIGITS:
        raise KernelRefusal(f"the front of a message id has {ID_DIGITS} bytes, not {len(id_prefix)}")


def _message(data: memoryview, row: array[int], id_prefix: bytes) -> bytes:
    """Return the message of a row as it goes out: four sections written anew, then the others as they came."""
    start, end = _record(data, row[Q_RECORD])
    sections = read_message(data, start, end)
    moved = (HEADER, DELIVERY_ANNOTATIONS, MESSAGE_ANNOTATIONS, PROPERTIES)
    header, own, stored, properties = (find_section(sections, code) for code in moved)
    rest = b"".join(bytes(data[each.start : each.end]) for each in sections if each.code not in moved)
    return (
        _header(data, header, row)
        + _delivery_annotations(data, own, row)
        + _message_annotations(data, stored, row)
        + _properties(data, properties, row, id_prefix)
        + rest
    )


def _record(data: memoryview, at: int) -> tuple[int, int]:
    """Return where the message of the record at `at` starts and ends."""
    if not 0 <= at <= len(data) - RECORD_HEADER_SIZE:
        raise Malformed
    length = int.from_bytes(data[at : at + 4], "big")
    if not RECORD_HEADER_SIZE <= length <= len(data) - at:
        raise Malformed
    return at + RECORD_HEADER_SIZE, at + length


def _tag(row: array[int]) -> bytes:
    """Return the delivery tag: the lock token as a GUID lies in memory, its first three groups turned round."""
    token = _token(row) if row[Q_LOCK] else bytes(8) + row[Q_SEQUENCE_NUMBER].to_bytes(8, "big", signed=True)
    return token[3::-1] + token[5:3:-1] + token[7:5:-1] + token[8:]


def _token(row: array[int]) -> bytes:
    return (row[Q_LOCK] & MASK_64).to_bytes(8, "big") + (row[Q_LOCK_CHECK] & MASK_64).to_bytes(8, "big")


def _header(data: memoryview, header: Section | None, row: array[int]) -> bytes:
    fields = list_fields(data, header, HEADER_FIELDS)
    fields[TTL] = NULL if row[Q_TTL_MS] < 0 else pack(">BI", 0x70, min(row[Q_TTL_MS], 0xFFFFFFFF))
    fields[DELIVERY_COUNT] = pack(">BI", 0x70, row[Q_DELIVERY_COUNT] & 0xFFFFFFFF)
    return _list(HEADER, fields)


def _delivery_annotations(data: memoryview, own: Section | None, row: array[int]) -> bytes:
    entries = []
    if own is not None:
        for key, value, end in map_entries(data, own.value, own.end):
            if not is_name(data, key, value, LOCK_TOKEN):
                entries.append(bytes(data[key:end]))
    if row[Q_LOCK]:
        entries.append(symbol(LOCK_TOKEN) + b"\x98" + _token(row))
    return _map(DELIVERY_ANNOTATIONS, entries) if entries else b""


def _message_annotations(data: memoryview, stored: Section | None, row: array[int]) -> bytes:
    entries = []
    for name, column, constructor, size in (
        (b"x-opt-enqueued-time", Q_ENQUEUED_MS, b"\x83", 8),
        (b"x-opt-sequence-number", Q_SEQUENCE_NUMBER, b"\x81", 8),
        (b"x-opt-enqueue-sequence-number", Q_ENQUEUE_NUMBER, b"\x81", 8),
        (b"x-opt-locked-until", Q_LOCKED_UNTIL_MS, b"\x83", 8),
        (b"x-opt-message-state", Q_STATE, b"\x71", 4),
        (b"x-opt-partition-id", Q_PARTITION, b"\x61", 2),
    ):
        absent = row[column] <= 0 if column == Q_STATE else row[column] < 0
        if not absent:
            entries.append(symbol(name) + constructor + (row[column] & MASK_64).to_bytes(8, "big")[-size:])
    if stored is not None:
        was_forwarded = row[Q_ID_NUMBER] >> FORWARDED_BIT & 1
        for key, value, end in map_entries(data, stored.value, stored.end):
            if any(is_name(data, key, value, name) for name in BROKER_NAMES):
                continue
            if not was_forwarded and is_name(data, key, value, DEAD_LETTER_SOURCE):
                continue
            if data[value] == 0x40 and any(is_name(data, key, value, name) for name in NULL_NAMES):
                continue
            entries.append(bytes(data[key:end]))
    return _map(MESSAGE_ANNOTATIONS, entries) if entries else b""


def _properties(data: memoryview, properties: Section | None, row: array[int], id_prefix: bytes) -> bytes:
    fields = list_fields(data, properties, PROPERTIES_FIELDS)
    if fields[MESSAGE_ID] == NULL:
        fields[MESSAGE_ID] = string(id_prefix + b"%016x" % (row[Q_ID_NUMBER] & MASK_64))
    fields[ABSOLUTE_EXPIRY_TIME] = NULL if row[Q_EXPIRES_MS] < 0 else pack(">Bq", 0x83, row[Q_EXPIRES_MS])
    return _list(PROPERTIES, fields)


def _list(code: int, fields: list[bytes]) -> bytes:
    """Return a list section of these fields, without the nulls at its end."""
    while fields and fields[-1] == NULL:
        fields.pop()
    return _compound(code, 0xC0, fields, len(fields))


def _map(code: int, entries: list[bytes]) -> bytes:
    return _compound(code, 0xC1, entries, 2 * len(entries))


def _compound(code: int, constructor: int, items: Iterable[bytes], count: int) -> bytes:
    content = b"".join(items)
    if len(content) + 1 <= 0xFF and count <= 0xFF:
        return pack(">BBBBBB", 0, 0x53, code, constructor, len(content) + 1, count) + content
    return pack(">BBBBII", 0, 0x53, code, constructor | 0x10, len(content) + 4, count) + content
