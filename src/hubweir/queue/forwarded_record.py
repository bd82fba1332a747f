"""The record of a message that is forwarded, where it has to say more than it did.

A message keeps one id wherever it goes, so one that came without an id takes along the one that it had here. A dead
letter says where it was dead-lettered; what its sender wrote there says nothing, and goes when it is forwarded first.
Other sections stay byte for byte.
"""

from __future__ import annotations

import struct

from hubweir.kernels.messages.sections import (
    DELIVERY_ANNOTATIONS,
    HEADER,
    MESSAGE_ANNOTATIONS,
    NULL,
    PROPERTIES,
    PROPERTIES_FIELDS,
    Malformed,
    find_section,
    is_name,
    list_fields,
    map_entries,
    read_message,
)
from hubweir.kernels.stored_batch import RECORD_HEADER_SIZE
from hubweir.queue.changed_properties import record_of

SOURCE_NAME = b"x-opt-deadletter-source"
_HEAD = struct.Struct(">BBBBII")


def forwarded_record(record: bytes, message_id: bytes, source: bytes | None, *, was_forwarded: bool) -> bytes:
    """A stored record whose message has this id, unless it has one, and this dead-letter source.

    source: None leaves what an earlier forward wrote. A record that holds no legal message stays as it is.
    """
    view = memoryview(record)
    try:
        sections = read_message(view, RECORD_HEADER_SIZE, len(record))
        annotations, properties = find_section(sections, MESSAGE_ANNOTATIONS), find_section(sections, PROPERTIES)
        fields = list_fields(view, properties, PROPERTIES_FIELDS)
        entries = [] if annotations is None else map_entries(view, annotations.value, annotations.end)
    except Malformed:
        return record
    front = [bytes(view[each.start : each.end]) for each in sections if each.code in (HEADER, DELIVERY_ANNOTATIONS)]
    written = [] if annotations is None else [bytes(view[annotations.start : annotations.end])]
    kept = [bytes(view[key:end]) for key, value, end in entries if not is_name(view, key, value, SOURCE_NAME)]
    if source is not None:
        kept.append(b"\xa3" + bytes((len(SOURCE_NAME),)) + SOURCE_NAME + _string(source))
    if source is not None or (len(kept) < len(entries) and not was_forwarded):
        written = [_section(MESSAGE_ANNOTATIONS, 0xD1, kept, 2 * len(kept))]
    if fields[0] == NULL:
        fields[0] = _string(message_id)
        written.append(_section(PROPERTIES, 0xD0, fields, len(fields)))
    elif properties is not None:
        written.append(bytes(view[properties.start : properties.end]))
    behind = [bytes(view[each.start : each.end]) for each in sections if each.code > PROPERTIES]
    return record_of(b"".join((*front, *written, *behind)))


def _section(code: int, constructor: int, items: list[bytes], count: int) -> bytes:
    content = b"".join(items)
    return _HEAD.pack(0, 0x53, code, constructor, 4 + len(content), count) + content


def _string(text: bytes) -> bytes:
    return b"\xa1" + bytes((len(text),)) + text if len(text) < 256 else b"\xb1" + struct.pack(">I", len(text)) + text
