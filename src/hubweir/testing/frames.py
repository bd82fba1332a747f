"""Frames and whole conversations as bytes, legal and not: what tests feed to an engine.

`raw` builds any frame there can be, with a performative whose fields are given one by one and need not fit. The corpus
of malformed conversations is malformed_frames.py.
"""

from __future__ import annotations

from struct import pack, unpack_from

from hubweir.amqp.messaging.terminus import Source, Target
from hubweir.amqp.security.protocol_header import AMQP_HEADER, SASL_HEADER
from hubweir.amqp.security.sasl import SaslInit
from hubweir.amqp.transport.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Flow,
    Open,
    Performative,
    Transfer,
    decode_performative,
)
from hubweir.amqp.types.composite import Composite, encode_composite
from hubweir.amqp.types.encode import encode
from hubweir.amqp.types.values import Described, Symbol, ULong


def raw(body: bytes, *, channel: int = 0, frame_type: int = 0, doff: int = 2, size: int | None = None) -> bytes:
    """A frame around body; size and data offset say what they are told."""
    header = pack(">IBBH", 8 + len(body) if size is None else size, doff, frame_type, channel)
    return header + body


def frame(performative: Composite, payload: bytes = b"", *, channel: int = 0) -> bytes:
    """A legal frame."""
    return raw(encode_composite(performative) + payload, channel=channel)


def listed(cls: type[Composite], *values: object) -> bytes:
    """A performative whose fields are these values, of whatever type; as many as there are."""
    return encode(Described(ULong(cls.CODE), list(values)))


def sasl_start(mechanism: str = "ANONYMOUS", response: bytes = b"") -> bytes:
    """What a client writes before AMQP."""
    return SASL_HEADER + raw(
        encode_composite(SaslInit(mechanism=Symbol(mechanism), initial_response=response)), frame_type=1
    )


OPEN = Open(container_id="peer", hostname="localhost")
BEGIN = Begin(next_outgoing_id=0, incoming_window=5_000, outgoing_window=5_000, handle_max=255)
SEND_LINK = Attach(
    name="up", handle=0, role=False, source=Source(address="me"), target=Target(address="hub"), initial_delivery_count=0
)
RECEIVE_LINK = Attach(name="down", handle=1, role=True, source=Source(address="hub"), target=Target(address="me"))


def attached() -> bytes:
    """A legal start: header to two links, one each way, on channel 0 behind SASL."""
    return sasl_start() + AMQP_HEADER + frame(OPEN) + frame(BEGIN) + frame(SEND_LINK) + frame(RECEIVE_LINK)


def transfer(delivery_id: int, payload: bytes = b"payload", *, handle: int = 0, settled: bool = False) -> bytes:
    """A legal delivery of one frame."""
    return frame(
        Transfer(
            handle=handle,
            delivery_id=delivery_id,
            delivery_tag=delivery_id.to_bytes(4, "big"),
            message_format=0,
            settled=settled,
        ),
        payload,
    )


def conversation() -> bytes:
    """A legal conversation from header to close: transfers of one and several frames, both settlements, a flow."""
    flow = Flow(
        next_incoming_id=1, incoming_window=5_000, next_outgoing_id=0, outgoing_window=5_000, handle=1, link_credit=10
    )
    first = Transfer(handle=0, delivery_id=2, delivery_tag=b"t", message_format=0, settled=False, more=True)
    return b"".join(
        (
            attached(),
            frame(flow),
            transfer(0),
            transfer(1, settled=True),
            frame(first, b"a" * 300),
            frame(Transfer(handle=0, more=True), b"b" * 300),
            frame(Transfer(handle=0), b"c" * 300),
            raw(b""),
            transfer(3, b""),
            frame(Disposition(role=False, first=0, last=3, settled=True)),
            frame(Detach(handle=0, closed=True)),
            frame(Detach(handle=1, closed=True)),
            frame(End()),
            frame(Close()),
        )
    )


def written(data: bytes | bytearray) -> list[tuple[int, Performative]]:
    """The performatives of an engine's output with their channels, headers and SASL left out; strict about sizes."""
    found = []
    view, position = memoryview(data), 0
    while position < len(view):
        if bytes(view[position : position + 4]) == b"AMQP":
            position += 8
            continue
        size, doff, frame_type, channel = unpack_from(">IBBH", view, position)
        assert doff == 2 and 8 <= size <= len(view) - position, "a frame of ours has an impossible header"
        if frame_type == 0 and size > 8:
            found.append((channel, decode_performative(view, position + 8, position + size)[0]))
        position += size
    return found
