"""The key of a message: what chooses its fragment, where an entity has several.

Its session id, else its partition key, else its message id where that counts, as the kernel find_message_keys finds it
in deliveries (kernels/contract.py): this page reads it from records. It also says which two message ids are the same.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from msgspec import Struct

from hubweir.kernels import read_fields
from hubweir.kernels.messages.sections import BINARY, STRING, variable
from hubweir.kernels.queue_contract import (
    I_ID,
    I_ID_LENGTH,
    I_KEY,
    I_KEY_LENGTH,
    I_LENGTH,
    I_RECORD,
    I_SESSION,
    I_SESSION_LENGTH,
    INCOMING_WIDTH,
)
from hubweir.messaging_store.record import headers_of

Data = bytes | bytearray | memoryview
_NUMBERS = (0x44, 0x53, 0x80)


class KeyedRecord(Struct, frozen=True):
    """The stored record of one message, and its key; None: it has none."""

    record: bytes
    key: bytes | None


def keyed_records(run: Data, *, takes_ids: bool) -> Iterator[KeyedRecord]:
    """The records of a run of sealed batches, with their keys. takes_ids: the message id is the last of these."""
    for header in headers_of(run):
        fields = array("q", bytes(8 * INCOMING_WIDTH * header.count))
        read_fields(run, header.position, fields)
        for at in range(0, len(fields), INCOMING_WIDTH):
            key = sent_key(run, fields, at)
            start = fields[at + I_ID]
            if key is None and takes_ids and start >= 0:
                key = content_of_id(run, start, start + fields[at + I_ID_LENGTH])
            record = fields[at + I_RECORD]
            yield KeyedRecord(bytes(run[record : record + fields[at + I_LENGTH]]), key)


def keys_in(run: Data, *, takes_ids: bool) -> list[bytes | None]:
    """The keys of the messages of a run; see keyed_records."""
    return [each.key for each in keyed_records(run, takes_ids=takes_ids)]


def sent_key(data: Data, fields: array[int], at: int) -> bytes | None:
    """The session id, else the partition key, of the incoming row at `at`; None: it has neither."""
    start = fields[at + I_SESSION]
    if start >= 0:
        return bytes(data[start : start + fields[at + I_SESSION_LENGTH]])
    start, length = fields[at + I_KEY], fields[at + I_KEY_LENGTH]
    return bytes(data[start : start + length]) if start >= 0 and length > 0 else None


def content_of_id(data: Data, start: int, end: int) -> bytes:
    """What is in an encoded message id, whichever way it is encoded: of a number all eight bytes."""
    code = data[start]
    if code in STRING or code in BINARY:
        begin, stop = variable(memoryview(data), start, end)
        return bytes(data[begin:stop])
    content = bytes(data[start + 1 : end])
    return content.rjust(8, b"\0") if code in _NUMBERS else content
