"""A server at the point where tests of links begin: a session stands and the peer has attached its links."""

from __future__ import annotations

from dataclasses import replace

from hubweir.amqp.endpoint import Endpoint, EndpointSettings, Role
from hubweir.amqp.security.protocol_header import AMQP_HEADER
from hubweir.amqp.transport.events import LinkAttached
from hubweir.amqp.transport.performatives import Attach, Begin, Open
from hubweir.testing.endpoint_pair import Side
from hubweir.testing.frames import BEGIN, OPEN, SEND_LINK, frame


def feed(side: Side, data: bytes) -> None:
    """Feed bytes as one read, from a buffer that is overwritten behind it, and keep what the side wrote."""
    buffer = bytearray(data)
    side.take(side.endpoint.receive_data(memoryview(buffer), 0))
    buffer[:] = bytes(len(buffer))
    side.drain()


def served(
    *,
    links: int = 1,
    accepts: bool = True,
    max_message_size: int = 1 << 20,
    settings: EndpointSettings | None = None,
    peer: Open = OPEN,
    begin: Begin = BEGIN,
    attach: Attach = SEND_LINK,
) -> Side:
    """A server without SASL whose peer has attached `links` links like attach, on handles from 0.

    One link keeps the name of attach; several are numbered behind it.
    """
    side = Side(
        Endpoint(Role.SERVER, replace(settings or EndpointSettings("server"), sasl=False), now_ms=0), accepts=False
    )
    feed(side, AMQP_HEADER + frame(peer) + frame(begin))
    for handle in range(links):
        name = attach.name if links == 1 else f"{attach.name}{handle}"
        feed(side, frame(replace(attach, name=name, handle=handle)))
        event = side.events[-1]
        if accepts and isinstance(event, LinkAttached):
            event.link.accept(max_message_size=max_message_size)
    side.accepts = accepts
    side.drain()
    return side
