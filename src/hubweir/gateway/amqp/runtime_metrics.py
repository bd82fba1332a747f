"""Encodes runtime metrics, which tell a receiver that asked for them how far its partition reaches.

The four delivery annotations, encoded once a send for all deliveries of it; the deliver kernel copies them in. The
encodings are fixed in width, as some clients cast: symbol keys, long, string of decimal digits, timestamps.
"""

from __future__ import annotations

import struct

from hubweir.amqp.messaging.annotations import (
    ENABLE_RECEIVER_RUNTIME_METRIC,
    LAST_ENQUEUED_OFFSET,
    LAST_ENQUEUED_SEQUENCE_NUMBER,
    LAST_ENQUEUED_TIME_UTC,
    RUNTIME_INFO_RETRIEVAL_TIME_UTC,
)
from hubweir.amqp.transport.link import Link
from hubweir.broker.commands.partition import PartitionInfo

_SECTION = b"\x00\x53\x71"
_LONG, _TIMESTAMP, _STRING8, _SYMBOL8, _MAP8 = 0x81, 0x83, 0xA1, 0xA3, 0xC1
_ENTRIES = 4


def wants_metrics(link: Link) -> bool:
    """Whether the peer's attach desires the capability; it is offered then."""
    desired = None if link.attach is None else link.attach.desired_capabilities
    return ENABLE_RECEIVER_RUNTIME_METRIC in (desired or ())


def encode_metrics(info: PartitionInfo, now_ms: int) -> bytes:
    """A delivery annotations section. info: of a partition that has had events, so none of its values is missing."""
    offset = b"%d" % info.last_offset
    content = b"".join(
        (
            _key(LAST_ENQUEUED_SEQUENCE_NUMBER) + struct.pack(">Bq", _LONG, info.last_sequence_number),
            _key(LAST_ENQUEUED_OFFSET) + bytes((_STRING8, len(offset))) + offset,
            _key(LAST_ENQUEUED_TIME_UTC) + struct.pack(">Bq", _TIMESTAMP, info.last_enqueued_time_ms or 0),
            _key(RUNTIME_INFO_RETRIEVAL_TIME_UTC) + struct.pack(">Bq", _TIMESTAMP, now_ms),
        )
    )
    return _SECTION + bytes((_MAP8, len(content) + 1, 2 * _ENTRIES)) + content


def _key(name: str) -> bytes:
    return bytes((_SYMBOL8, len(name))) + name.encode("ascii")
