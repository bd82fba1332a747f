"""Frames between a gateway and a broker without a stream: cut as the driver cuts them (drivers/broker_driver.py)."""

from __future__ import annotations

from collections.abc import Sequence

from hubweir.broker.commands.command import Message
from hubweir.broker.wire import encode_frame
from hubweir.drivers.broker_driver import LENGTHS
from hubweir.env import Buffer


def parts_of(frame: Sequence[Buffer] | bytes) -> tuple[memoryview, bytearray]:
    """Head and body of one whole frame, which is given in one piece or in several."""
    data = frame if isinstance(frame, bytes) else b"".join(bytes(part) for part in frame)
    head_length, body_length = LENGTHS.unpack_from(data)
    body_at = LENGTHS.size + head_length
    assert len(data) == body_at + body_length, f"{len(data)} bytes are not one frame of {body_at + body_length}"
    return memoryview(data)[LENGTHS.size : body_at], bytearray(data[body_at:])


def sent(request_id: int, message: Message) -> tuple[memoryview, bytearray]:
    """Head and body of a message as its receiver gets them."""
    return parts_of(encode_frame(request_id, message))
