"""Find messages that no queue takes, in plain Python: check_messages."""

from __future__ import annotations

from array import array

from hubweir.kernels.buffers.tables import check_rows
from hubweir.kernels.contract import (
    CHECK_KEY,
    CHECK_LONG,
    CHECK_MALFORMED,
    CHECK_OK,
    CHECK_SESSION,
    DELIVERY_WIDTH,
    Readable,
)
from hubweir.kernels.messages.ingest import open_delivery, read_delivery
from hubweir.kernels.messages.sections import (
    BINARY,
    DELIVERY_ANNOTATIONS,
    HEADER,
    HEADER_FIELDS,
    MESSAGE_ANNOTATIONS,
    NULL,
    PROPERTIES,
    PROPERTIES_FIELDS,
    STRING,
    Malformed,
    Section,
    find_section,
    is_name,
    list_fields,
    map_entries,
    read_message,
    variable,
)

# Places in the properties list. (part 3, section 3.2.4)
MESSAGE_ID, GROUP_ID, REPLY_TO_GROUP_ID = 0, 10, 12
ID_TYPES = (*STRING, *BINARY, 0x44, 0x53, 0x80, 0x98)
PARTITION_KEY, VIA_PARTITION_KEY = b"x-opt-partition-key", b"x-opt-via-partition-key"


class Fault(Exception):
    """What is wrong with a message; never leaves this page."""

    def __init__(self, status: int) -> None:
        self.status = status


def check_messages(
    data: Readable, rows: array[int], first_row: int, last_row: int, most_characters: int, needs_session: bool
) -> tuple[int, int]:
    """The first delivery that a queue does not take, and why; see contract.py."""
    view = memoryview(data)
    check_rows(rows, DELIVERY_WIDTH, first_row, last_row)
    deliveries = [read_delivery(view, rows, row) for row in range(first_row, last_row)]
    for row, (start, end, message_format) in enumerate(deliveries, first_row):
        try:
            messages, _ = open_delivery(view, start, end, message_format)
            for message in messages:
                _check(view, message.start, message.end, most_characters, needs_session)
        except Malformed:
            return row, CHECK_MALFORMED
        except Fault as fault:
            return row, fault.status
    return last_row, CHECK_OK


def _check(data: memoryview, start: int, end: int, most_characters: int, needs_session: bool) -> None:
    sections = read_message(data, start, end)
    list_fields(data, find_section(sections, HEADER), HEADER_FIELDS)
    own = find_section(sections, DELIVERY_ANNOTATIONS)
    if own is not None:
        map_entries(data, own.value, own.end)
    properties = list_fields(data, find_section(sections, PROPERTIES), PROPERTIES_FIELDS)
    partition_key, via_partition_key = keys_of(data, find_section(sections, MESSAGE_ANNOTATIONS))
    session = text_of(properties[GROUP_ID])
    identifier = properties[MESSAGE_ID]
    if identifier != NULL and identifier[0] not in ID_TYPES:
        raise Malformed
    named = [session, text_of(properties[REPLY_TO_GROUP_ID]), partition_key, via_partition_key]
    if identifier[0] in (*STRING, *BINARY):
        named.append(content_of(identifier))
    if any(text is not None and _characters(text) > most_characters for text in named):
        raise Fault(CHECK_LONG)
    if needs_session and session is None:
        raise Fault(CHECK_SESSION)
    if session is not None and partition_key is not None and session != partition_key:
        raise Fault(CHECK_KEY)


def keys_of(data: memoryview, annotations: Section | None) -> list[bytes | None]:
    """Return the partition key and the via-partition key of a message, of each the last that is there."""
    found: dict[bytes, bytes | None] = {}
    if annotations is not None:
        for key, value, end in map_entries(data, annotations.value, annotations.end):
            for name in (PARTITION_KEY, VIA_PARTITION_KEY):
                if is_name(data, key, value, name):
                    found[name] = _key_of(bytes(data[value:end]))
    return [found.get(PARTITION_KEY), found.get(VIA_PARTITION_KEY)]


def _key_of(value: bytes) -> bytes | None:
    """Return what an encoded key holds: azure-servicebus for Python sends the one that it received as a binary."""
    return content_of(value) if value[0] in BINARY else text_of(value)


def text_of(value: bytes) -> bytes | None:
    """Return what an encoded string holds, None of null; Malformed of another type."""
    if value == NULL:
        return None
    if value[0] not in STRING:
        raise Malformed
    return content_of(value)


def content_of(value: bytes) -> bytes:
    start, end = variable(memoryview(value), 0, len(value))
    return value[start:end]


def _characters(text: bytes) -> int:
    """How many characters UTF-8 text has: bytes 0x80 to 0xBF go on with one, all others start one."""
    return sum(byte & 0xC0 != 0x80 for byte in text)
