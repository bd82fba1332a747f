"""Application properties that receivers changed: kept beside a message, and put into it when it is read.

They are an encoded AMQP map with string keys; what it says of a name goes before what the message says. The message as
it was sent stays as it is in the log. Rare, so nothing here is quick.
"""

from __future__ import annotations

import struct

from hubweir.kernels.messages.sections import (
    APPLICATION_PROPERTIES,
    DATA,
    DELIVERY_ANNOTATIONS,
    FOOTER,
    HEADER,
    MAP,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
    SEQUENCE,
    STRING,
    VALUE,
    Malformed,
    map_entries,
    read_message,
    skip_value,
    variable,
)
from hubweir.kernels.stored_batch import ABSENT, RECORD_HEADER_SIZE, RECORD_STRUCT

REASON, DESCRIPTION = b"DeadLetterReason", b"DeadLetterErrorDescription"
# Of all that receivers changed of one message: as many bytes as its sender may give it.
CHANGES_LIMIT_BYTES = 64 * 1024
_MAP_HEAD = struct.Struct(">BII")
_SECTION_HEAD = bytes((0x00, 0x53, APPLICATION_PROPERTIES))


def is_property_map(data: bytes) -> bool:
    """Whether this is one encoded map whose keys are strings."""
    try:
        _entries(data)
    except (Malformed, IndexError):
        return False
    return True


def dead_letter_properties(reason: str | None, description: str | None) -> bytes:
    """The map that says why a message was dead-lettered; b"" when nothing is said."""
    said = ((REASON, reason), (DESCRIPTION, description))
    return _encoded({name: _string(text.encode()) for name, text in said if text is not None})


def merged_properties(before: bytes, more: bytes) -> bytes:
    """The map of both; what more says of a name goes before. Either may be b""."""
    if not before or not more:
        return before or more
    return _encoded(_entries(before) | _entries(more))


def changed_record(record: bytes, changes: bytes) -> bytes:
    """A stored record (kernels/stored_batch.py) whose message has these application properties besides its own.

    Where its own are no map with string keys, it stays as it was sent.
    """
    view = memoryview(record)
    sections = read_message(view, RECORD_HEADER_SIZE, len(record))
    front = [bytes(record[each.start : each.end]) for each in sections if each.code not in _BEHIND]
    behind = [bytes(record[each.start : each.end]) for each in sections if each.code in _BODY_AND_FOOTER]
    own = next((each for each in sections if each.code == APPLICATION_PROPERTIES), None)
    before = b"" if own is None else bytes(record[own.value : own.end])
    try:
        merged = merged_properties(before, changes)
    except Malformed:
        return record
    message = b"".join((*front, _SECTION_HEAD, merged, *behind))
    return record_of(message)


def record_of(message: bytes) -> bytes:
    """The stored record of an encoded message."""
    return _record_header(message) + message


_BODY = (DATA, SEQUENCE, VALUE)
_BODY_AND_FOOTER = (*_BODY, FOOTER)
_BEHIND = (*_BODY_AND_FOOTER, APPLICATION_PROPERTIES)


def _record_header(message: bytes) -> bytes:
    sections = read_message(memoryview(message), 0, len(message))
    starts: dict[int, int] = {}
    header_end = 0
    for section in sections:
        starts.setdefault(DATA if section.code in _BODY else section.code, section.start)
        if section.code == HEADER:
            header_end = section.end
    named = (DELIVERY_ANNOTATIONS, MESSAGE_ANNOTATIONS, PROPERTIES, APPLICATION_PROPERTIES, DATA, FOOTER)
    places = [starts.get(code, ABSENT) for code in named]
    return struct.pack(RECORD_STRUCT, RECORD_HEADER_SIZE + len(message), header_end, *places)


def _entries(data: bytes) -> dict[bytes, bytes]:
    """Encoded values by the text of their names; Malformed when data is no map of them."""
    view = memoryview(data)
    if not data or data[0] not in MAP or skip_value(view, 0, len(data)) != len(data):
        raise Malformed
    entries = {}
    for key, value, end in map_entries(view, 0, len(data)):
        if data[key] not in STRING:
            raise Malformed
        start, stop = variable(view, key, value)
        entries[bytes(data[start:stop])] = bytes(data[value:end])
    return entries


def _encoded(entries: dict[bytes, bytes]) -> bytes:
    if not entries:
        return b""
    body = b"".join(_string(name) + value for name, value in entries.items())
    return _MAP_HEAD.pack(0xD1, 4 + len(body), 2 * len(entries)) + body


def _string(text: bytes) -> bytes:
    return b"\xa1" + bytes((len(text),)) + text if len(text) < 256 else b"\xb1" + struct.pack(">I", len(text)) + text
