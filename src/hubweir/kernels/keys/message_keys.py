"""The keys that choose the fragments of messages, in plain Python: find_message_keys."""

from __future__ import annotations

from array import array

from hubweir.errors import KernelRefusal
from hubweir.kernels.buffers.tables import check_rows
from hubweir.kernels.contract import (
    DELIVERY_WIDTH,
    K_HASH,
    K_LENGTH,
    K_START,
    K_WHERE,
    KEY_MALFORMED,
    KEY_MESSAGE,
    KEY_NONE,
    KEY_SCATTERED,
    KEY_WIDTH,
    Readable,
)
from hubweir.kernels.keys.keys import hash_key
from hubweir.kernels.messages.check_messages import GROUP_ID, ID_TYPES, MESSAGE_ID, content_of, keys_of, text_of
from hubweir.kernels.messages.ingest import open_delivery, read_delivery
from hubweir.kernels.messages.sections import (
    BINARY,
    MESSAGE_ANNOTATIONS,
    NULL,
    PROPERTIES,
    PROPERTIES_FIELDS,
    STRING,
    Malformed,
    find_section,
    list_fields,
    read_message,
)

NUMBERS = (0x44, 0x53, 0x80)


def find_message_keys(
    data: Readable,
    rows: array[int],
    first_row: int,
    last_row: int,
    takes_ids: bool,
    fragments: int,
    table: array[int],
) -> tuple[int, int]:
    """One key row a delivery; see contract.py."""
    view = memoryview(data)
    if fragments < 1:
        raise KernelRefusal(f"an entity has no {fragments} fragments")
    check_rows(rows, DELIVERY_WIDTH, first_row, last_row)
    check_rows(table, KEY_WIDTH, 0, last_row - first_row)
    deliveries = [read_delivery(view, rows, row) for row in range(first_row, last_row)]
    without = refused = 0
    for at, delivery in zip(range(0, len(table), KEY_WIDTH), deliveries, strict=False):
        where, hashed = _delivery_key(view, *delivery, takes_ids, fragments)
        without += where == KEY_NONE
        refused += where in (KEY_MALFORMED, KEY_SCATTERED)
        table[at + K_START] = table[at + K_LENGTH] = 0
        table[at + K_WHERE], table[at + K_HASH] = where, hashed
    return without, refused


def _delivery_key(
    data: memoryview, start: int, end: int, message_format: int, takes_ids: bool, fragments: int
) -> tuple[int, int]:
    """K_WHERE and K_HASH of one delivery."""
    try:
        messages, _ = open_delivery(data, start, end, message_format)
        keys = [_message_key(data, message.start, message.end, takes_ids) for message in messages]
    except Malformed:
        return KEY_MALFORMED, 0
    hashes = [hash_key(key) for key in keys if key is not None]
    if not hashes:
        return KEY_NONE, 0
    if len({abs(each) % fragments for each in hashes}) > 1:
        return KEY_SCATTERED, 0
    return KEY_MESSAGE, hashes[0]


def _message_key(data: memoryview, start: int, end: int, takes_ids: bool) -> bytes | None:
    """The key of one message; None: it has none."""
    sections = read_message(data, start, end)
    properties = list_fields(data, find_section(sections, PROPERTIES), PROPERTIES_FIELDS)
    partition_key, _ = keys_of(data, find_section(sections, MESSAGE_ANNOTATIONS))
    identifier, session = properties[MESSAGE_ID], text_of(properties[GROUP_ID])
    if identifier != NULL and identifier[0] not in ID_TYPES:
        raise Malformed
    if session is not None:
        return session
    if partition_key:
        return partition_key
    if not takes_ids or identifier == NULL:
        return None
    if identifier[0] in (*STRING, *BINARY):
        return content_of(identifier)
    return identifier[1:].rjust(8, b"\0") if identifier[0] in NUMBERS else identifier[1:]
