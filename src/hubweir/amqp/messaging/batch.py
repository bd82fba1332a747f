"""Many messages in one transfer, as Azure's clients publish events.

A transfer of BATCH_FORMAT carries an envelope: a message whose body is data sections, each the encoded bytes of one
complete message. Of the envelope's other sections only the partition key in its message annotations means anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hubweir.amqp.messaging import sections as section_of
from hubweir.amqp.messaging.message import write_section_head
from hubweir.amqp.types.field_types import ANNOTATIONS
from hubweir.amqp.types.values import Symbol
from hubweir.amqp.types.write_scalar import write_binary

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
