"""Records of messages as a log has them: what is read of a batch before its messages are in the table."""

from __future__ import annotations

from array import array

from msgspec import Struct

from hubweir.kernels import read_fields
from hubweir.kernels.queue_contract import I_SESSION, I_SESSION_LENGTH, INCOMING_WIDTH
from hubweir.kernels.stored_batch import BatchHeader

Data = bytes | bytearray | memoryview


class ChangedRecord(Struct, frozen=True):
    """Another record for a copy: its incoming row, the log index of its batch, its session id."""

    fields: array[int]
    first_index: int
    session_id: bytes | None


def changed_records(data: Data, header: BatchHeader) -> list[ChangedRecord]:
    """The records of a batch, for copies."""
    fields = array("q", bytes(8 * INCOMING_WIDTH * header.count))
    read_fields(data, header.position, fields)
    return [
        ChangedRecord(
            fields[place * INCOMING_WIDTH : (place + 1) * INCOMING_WIDTH],
            header.first_index,
            session_id,
        )
        for place, session_id in enumerate(session_ids_of(data, fields))
    ]


def session_ids_of(data: Data, fields: array[int]) -> list[bytes | None]:
    """The session id of each incoming row; None: it has none."""
    starts, lengths = fields[I_SESSION::INCOMING_WIDTH], fields[I_SESSION_LENGTH::INCOMING_WIDTH]
    return [
        bytes(data[start : start + length]) if start >= 0 else None
        for start, length in zip(starts, lengths, strict=True)
    ]
