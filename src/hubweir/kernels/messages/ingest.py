"""Turn deliveries into event records in plain Python: ingest, find_key, count_events."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from struct import pack

from hubweir.errors import KernelRefusal
from hubweir.kernels.buffers.tables import check_range, check_rows
from hubweir.kernels.contract import (
    BATCH_FORMAT,
    D_FORMAT,
    D_LENGTH,
    D_START,
    DELIVERY_WIDTH,
    INGEST_DONE,
    INGEST_MALFORMED,
    INGEST_NAME,
    INGEST_PROPERTIES,
    INGEST_ROOM,
    KEY_ENVELOPE,
    KEY_MALFORMED,
    KEY_MESSAGE,
    KEY_NONE,
    PROPERTIES_LIMIT,
    PROPERTY_LIMIT,
    Readable,
)
from hubweir.kernels.messages.sections import (
    APPLICATION_PROPERTIES,
    DATA,
    DELIVERY_ANNOTATIONS,
    FOOTER,
    HEADER,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
    SEQUENCE,
    STRING,
    VALUE,
    Malformed,
    Section,
    compound,
    find_section,
    is_name,
    map_entries,
    read_message,
    read_section,
    skip_value,
    variable,
)
from hubweir.kernels.stored_batch import ABSENT, RECORD_HEADER_SIZE, RECORD_STRUCT

PARTITION_KEY = b"x-opt-partition-key"


class PropertiesTooLarge(Exception):
    """A message's properties are over a limit; never leaves this page."""


@dataclass(frozen=True, slots=True)
class Message:
    """One encoded message of a delivery: where its data section starts, where its own bytes start and end."""

    section: int
    start: int
    end: int

    @property
    def record_size(self) -> int:
        return RECORD_HEADER_SIZE + self.end - self.start


def ingest(
    data: Readable,
    rows: array[int],
    first_row: int,
    last_row: int,
    resume_at: int,
    name: bytes | None,
    out: bytearray,
    room: int,
) -> tuple[int, int, int, int]:
    """Append event records for deliveries to out; see contract.py."""
    view = memoryview(data)
    check_rows(rows, DELIVERY_WIDTH, first_row, last_row)
    deliveries = [read_delivery(view, rows, row) for row in range(first_row, last_row)]
    if resume_at:
        _check_resume(deliveries, resume_at)
    begun, events = len(out), 0
    for row, (start, end, message_format) in enumerate(deliveries, first_row):
        mark, events_before = len(out), events
        try:
            messages: Iterable[Message]
            if resume_at:
                messages = _rest_of_envelope(view, resume_at, end)
            else:
                messages, sections = open_delivery(view, start, end, message_format)
                if name is not None and not _takes(view, sections, name, message_format):
                    return row, 0, events, INGEST_NAME
                if mark > begun and sum(message.record_size for message in messages) > room - (mark - begun):
                    return row, 0, events, INGEST_ROOM
            for message in messages:
                if len(out) > begun and message.record_size > room - (len(out) - begun):
                    return row, message.section, events, INGEST_ROOM
                out += _record(view, message)
                events += 1
        except Malformed:
            del out[mark:]
            return row, 0, events_before, INGEST_MALFORMED
        except PropertiesTooLarge:
            del out[mark:]
            return row, 0, events_before, INGEST_PROPERTIES
        resume_at = 0
    return last_row, 0, events, INGEST_DONE


def find_key(data: Readable, start: int, end: int, message_format: int) -> tuple[int, int, int]:
    """Where the partition key of one delivery is; see contract.py."""
    view = memoryview(data)
    check_range(start, end, len(view))
    try:
        messages, sections = open_delivery(view, start, end, message_format)
        key = _key(view, sections)
        where = KEY_ENVELOPE if message_format == BATCH_FORMAT else KEY_MESSAGE
        if key is None and message_format == BATCH_FORMAT and messages:
            key = _key(view, read_message(view, messages[0].start, messages[0].end))
            where = KEY_MESSAGE
    except Malformed:
        return 0, 0, KEY_MALFORMED
    return (0, 0, KEY_NONE) if key is None else (key[0], key[1] - key[0], where)


def count_events(data: Readable, start: int, end: int, message_format: int) -> int:
    """How many events a delivery holds, -1 when it is malformed; see contract.py."""
    view = memoryview(data)
    check_range(start, end, len(view))
    try:
        messages, _ = open_delivery(view, start, end, message_format)
        for message in messages:
            read_message(view, message.start, message.end)
    except Malformed:
        return -1
    return len(messages)


def read_delivery(data: memoryview, rows: array[int], row: int) -> tuple[int, int, int]:
    """Return (start, end, message format) of a delivery row."""
    at = row * DELIVERY_WIDTH
    start, length = rows[at + D_START], rows[at + D_LENGTH]
    if not 0 <= start <= len(data) or not 0 <= length <= len(data) - start:
        raise KernelRefusal(f"delivery row {row} does not lie in {len(data)} bytes")
    return start, start + length, rows[at + D_FORMAT]


def _check_resume(deliveries: list[tuple[int, int, int]], resume_at: int) -> None:
    if deliveries:
        start, end, message_format = deliveries[0]
        if message_format == BATCH_FORMAT and start < resume_at < end:
            return
    raise KernelRefusal(f"no delivery can be resumed at {resume_at}")


def open_delivery(data: memoryview, start: int, end: int, message_format: int) -> tuple[list[Message], list[Section]]:
    """Return the encoded messages of a delivery, and the sections of its envelope or of the single message itself."""
    if message_format not in (0, BATCH_FORMAT):
        raise Malformed
    sections = read_message(data, start, end)
    if message_format == 0:
        return [Message(start, start, end)], sections
    if any(section.code in (SEQUENCE, VALUE) for section in sections):
        raise Malformed
    return [_message(data, section) for section in sections if section.code == DATA], sections


def _rest_of_envelope(data: memoryview, at: int, end: int) -> Iterator[Message]:
    """Yield the messages of an envelope from the section at `at` on; its other sections were checked before."""
    while at < end:
        section = read_section(data, at, end)
        if section.code == DATA:
            yield _message(data, section)
        at = section.end


def _message(data: memoryview, section: Section) -> Message:
    return Message(section.start, *variable(data, section.value, section.end))


def _takes(data: memoryview, sections: list[Section], name: bytes, message_format: int) -> bool:
    """Whether a delivery may lie under this name block: its events are delivered with that name as their key.

    A single message has no envelope: any fits where there is no name, as its key stays in its own annotations.
    """
    if message_format == 0 and not name:
        return True
    key = _key(data, sections)
    return (b"" if key is None else bytes(data[key[0] : key[1]])) == name


def _key(data: memoryview, sections: list[Section]) -> tuple[int, int] | None:
    """Where the text of x-opt-partition-key starts and ends; None when it is absent, null or empty."""
    annotations = find_section(sections, MESSAGE_ANNOTATIONS)
    if annotations is None:
        return None
    for key, value, end in map_entries(data, annotations.value, annotations.end):
        if is_name(data, key, value, PARTITION_KEY):
            if data[value] == 0x40:
                return None
            if data[value] not in STRING:
                raise Malformed
            start, stop = variable(data, value, end)
            return (start, stop) if stop > start else None
    return None


def _record(data: memoryview, message: Message) -> bytes:
    """Return the stored record of one message: where its sections are, then its bytes as they came."""
    start = message.start
    sections = read_message(data, start, message.end)
    if message.record_size >= ABSENT:
        raise Malformed
    _check_properties(data, sections)
    header = find_section(sections, HEADER)
    body = next((section for section in sections if section.code in (DATA, SEQUENCE, VALUE)), None)
    others = (DELIVERY_ANNOTATIONS, MESSAGE_ANNOTATIONS, PROPERTIES, APPLICATION_PROPERTIES)
    named = [*(find_section(sections, code) for code in others), body, find_section(sections, FOOTER)]
    positions = [ABSENT if section is None else section.start - start for section in named]
    header_end = 0 if header is None else header.end - start
    return pack(RECORD_STRUCT, message.record_size, header_end, *positions) + data[start : message.end]


def _check_properties(data: memoryview, sections: list[Section]) -> None:
    """Raise PropertiesTooLarge for sections over a limit. Sections within the limit of one property are not walked."""
    front = [section for section in sections if section.code < DATA]
    size = sum(section.end - section.start for section in front)
    if size > PROPERTIES_LIMIT:
        raise PropertiesTooLarge
    for section in sorted(front, key=lambda section: section.code):
        if section.code < MESSAGE_ANNOTATIONS or section.end - section.start <= PROPERTY_LIMIT:
            continue
        count, at, stop = compound(data, section.value, section.end)
        values = 1 if section.code == PROPERTIES else 2
        if count % values:
            raise Malformed
        for _ in range(count // values):
            start = at
            for _ in range(values):
                at = skip_value(data, at, stop)
            if at - start > PROPERTY_LIMIT:
                raise PropertiesTooLarge
