"""Many messages in one transfer, as Azure's clients publish events.

A transfer of BATCH_FORMAT carries an envelope: a message whose body is data sections, each the encoded bytes of one
complete message. Of the envelope's other sections only the partition key in its message annotations means anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hubweir.amqp.messaging import sections as section_of
from hubweir.amqp.messaging.message import write_section_head
from hubweir.amqp.messaging.sections import BodyKind, find_sections, walk_sections
from hubweir.amqp.types import format_codes as code_of
from hubweir.amqp.types.field_types import ANNOTATIONS
from hubweir.amqp.types.read_scalar import Buffer, read_length
from hubweir.amqp.types.values import Symbol
from hubweir.amqp.types.write_scalar import write_binary
from hubweir.errors import DecodeError

# message-format of a transfer: one plain message, or an envelope of many.
MESSAGE_FORMAT: Final = 0
BATCH_FORMAT: Final = 0x8001_3700


def pack_batch(messages: Iterable[bytes], *, annotations: dict[Symbol | str, object] | None = None) -> bytes:
    """The payload of a batch transfer. annotations: the envelope's message annotations, such as the partition key."""
    out = bytearray()
    if annotations:
        write_section_head(out, section_of.MESSAGE_ANNOTATIONS)
        ANNOTATIONS.write(out, annotations)
    for message in messages:
        write_section_head(out, section_of.DATA)
        write_binary(out, message)
    return bytes(out)


def unpack_batch(payload: Buffer) -> list[memoryview]:
    """The messages inside the payload of a batch transfer, as views into it; DecodeError when it is no batch.

    The messages themselves are not looked at.
    """
    if find_sections(payload).body_kind not in (BodyKind.DATA, BodyKind.NONE):
        raise DecodeError("the envelope of a batch has a body that is not data")
    view = memoryview(payload)
    return [
        view[_data_start(payload, section.value, section.end) : section.end]
        for section in walk_sections(payload)
        if section.code == section_of.DATA
    ]


def _data_start(payload: Buffer, value: int, end: int) -> int:
    width = 1 if payload[value] == code_of.BINARY8 else 4
    return read_length(payload, width, value + 1, end)[1]
