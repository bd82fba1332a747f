"""Frames: eight bytes of header, then a performative, then a payload (part 2, section 2.3).

| offset | size | name    | meaning |
|-------:|-----:|---------|---------|
|      0 |    4 | size    | of the whole frame, these bytes included, big-endian |
|      4 |    1 | doff    | data offset: where the body starts, in words of 4 bytes; 2 when nothing stands between |
|      5 |    1 | type    | 0 AMQP, 1 SASL |
|      6 |    2 | channel | big-endian; unused in SASL frames |

A frame without a body keeps the connection alive. Reading frames out of a buffer is read_frames.py's work, by the
scan kernel; here they are written, and the few frames of the SASL layer are read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from struct import Struct

from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.amqp.messaging.outcome import Rejected
from hubweir.amqp.transport.faults import ConnectionFault
from hubweir.amqp.transport.performatives import (
    Close,
    Detach,
    Disposition,
    End,
    Performative,
    Transfer,
)
from hubweir.amqp.types.composite import encode_composite_into
from hubweir.errors import FRAMING_ERROR, EncodeError

HEADER_SIZE = 8
AMQP_FRAME, SASL_FRAME = 0, 1
# Every peer must take frames of this size (section 2.4.1); SASL frames are never larger (section 5.3.1).
MIN_MAX_FRAME_SIZE = 512
# Characters of an error's text that fit into such a frame, at four bytes each.
SHORT_DESCRIPTION = 80

_header = Struct(">IBBH")
_NO_HEADER = bytes(HEADER_SIZE)
# A whole frame with a disposition: role receiver, first and last as uint, settled, accepted, not batchable.
_ACCEPTED = Struct(">IBBH3s 3B B BI BI B 4sB")
_ACCEPTED_FIELDS = _ACCEPTED.size - HEADER_SIZE - 5  # behind the descriptor, the constructor of the list and its size
# The same in any state, without what stands behind `settled`: the state, and not batchable.
_SETTLED = Struct(">IBBH3s 3B B BI BI B")
# A list8 has room for this much beside the other fields, and the smallest frames for the list.
SHORT_STATE_LIMIT_BYTES = 200

EMPTY_FRAME = _header.pack(HEADER_SIZE, 2, AMQP_FRAME, 0)


def append_frame(out: bytearray, channel: int, performative: Performative, payload: memoryview | bytes = b"") -> int:
    """Append one AMQP frame to out and return its size in bytes; out stays as it was when that raises EncodeError."""
    start = len(out)
    out += _NO_HEADER
    try:
        encode_composite_into(out, performative)
    except EncodeError:
        del out[start:]
        raise
    out += payload
    size = len(out) - start
    _header.pack_into(out, start, size, 2, AMQP_FRAME, channel)
    return size


def accepted_frame(channel: int, first: int, last: int) -> bytes:
    """The frame that says of deliveries first to last: accepted and settled.

    A service writes no other frame as often, so it is packed in one call; the same as append_frame with a Disposition.
    """
    return _ACCEPTED.pack(
        _ACCEPTED.size, 2, AMQP_FRAME, channel, b"\x00\x53\x15", 0xC0, _ACCEPTED_FIELDS, 6,
        0x41, 0x70, first, 0x70, last, 0x41, b"\x00\x53\x24\x45", 0x42,
    )  # fmt: skip


def settled_frames(channel: int, ranges: Iterable[tuple[int, int]], state: bytes, *, role: bool) -> bytes:
    """The frames that say of deliveries first to last, for each range: settled, in this state.

    state: encoded, at most SHORT_STATE_LIMIT_BYTES. The same as append_frame with a Disposition for each.
    """
    size = _SETTLED.size + len(state) + 1
    fields = size - HEADER_SIZE - 5
    who, tail = 0x41 if role else 0x42, state + b"\x42"
    return b"".join(
        [
            _SETTLED.pack(
                size, 2, AMQP_FRAME, channel, b"\x00\x53\x15", 0xC0, fields, 6, who, 0x70, first, 0x70, last, 0x41
            )
            + tail
            for first, last in ranges
        ]
    )


def sasl_frame(body: bytes) -> bytes:
    """One SASL frame around an encoded SASL performative."""
    return _header.pack(HEADER_SIZE + len(body), 2, SASL_FRAME, 0) + body


@dataclass(frozen=True, slots=True)
class SaslFrame:
    """Where the body of a SASL frame lies in a buffer."""

    body: int
    end: int


def find_sasl_frame(buffer: bytearray) -> SaslFrame | None:
    """The SASL frame at the start of buffer, None while it is not complete.

    Raises ConnectionFault as soon as its size is over 512 bytes or its header is not a SASL frame's.
    """
    if len(buffer) >= 4:
        size = int.from_bytes(buffer[:4], "big")
        if not HEADER_SIZE <= size <= MIN_MAX_FRAME_SIZE:
            raise ConnectionFault(FRAMING_ERROR, f"a SASL frame of {size} bytes; {MIN_MAX_FRAME_SIZE} are the most")
        if len(buffer) >= HEADER_SIZE:
            body = 4 * buffer[4]
            if buffer[5] != SASL_FRAME or not HEADER_SIZE <= body <= size:
                raise ConnectionFault(FRAMING_ERROR, "a frame that is not a SASL frame, before the SASL outcome")
            if len(buffer) >= size:
                return SaslFrame(body, size)
    return None


def split_transfer(first: Transfer, payload: memoryview, channel: int, max_frame_size: int) -> list[bytearray]:
    """The frames of one delivery: whole when it fits, else more=true on all but the last.

    Every frame repeats the delivery id; only the first carries tag, format and state. All have the eleven fields.
    """
    frames: list[bytearray] = []
    position = 0
    transfer = first
    while True:
        frame = bytearray()
        overhead = append_frame(frame, channel, transfer)
        room = max_frame_size - overhead
        part = payload[position : position + room]
        position += len(part)
        if position < len(payload):
            more = Transfer(
                handle=transfer.handle,
                delivery_id=transfer.delivery_id,
                delivery_tag=transfer.delivery_tag,
                message_format=transfer.message_format,
                settled=transfer.settled,
                more=True,
                state=transfer.state,
            )
            # `true` and `false` are one byte each: the size does not change.
            frame.clear()
            append_frame(frame, channel, more)
        frame += part
        _header.pack_into(frame, 0, len(frame), 2, AMQP_FRAME, channel)
        frames.append(frame)
        if position >= len(payload):
            return frames
        transfer = Transfer(handle=first.handle, delivery_id=first.delivery_id, settled=first.settled)


def cut_down(performative: Performative) -> Performative:
    """The same frame with a short error, or without the state, so that it fits into the smallest frames there are."""
    if isinstance(performative, (Detach, End, Close)) and performative.error is not None:
        return replace(performative, error=_short(performative.error))
    if isinstance(performative, Disposition):
        state = performative.state
        if isinstance(state, Rejected) and state.error is not None:
            return replace(performative, state=Rejected(error=_short(state.error)))
        return replace(performative, state=None)
    return performative


def _short(error: AmqpError) -> AmqpError:
    return AmqpError(condition=error.condition, description=error.description[:SHORT_DESCRIPTION])


def cut_frames(data: bytearray, start: int, count: int) -> int:
    """The position behind the first count frames of our own making that stand in data from start on."""
    for _ in range(count):
        start += int.from_bytes(data[start : start + 4], "big")
    return start
