"""Carries AMQP inside WebSocket messages (RFC 6455): the same AmqpDriver, over binary messages instead of a socket.

The handshake arrives as an HTTP request whose head was read already (http_driver.py). From then on the messages of the
peer are one stream of bytes, cut anywhere, and what the driver writes goes out in binary messages. Framing is the
sans-IO protocol of the `websockets` library; no extension is agreed, so nothing is ever inflated.

What a peer may do is limited: 256 KiB a message, so many fragments a message, one ping a second
beyond a burst. Whoever does more, sends text, or does not mask, is told so in a close frame and dropped.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any, cast

from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import SEND_EOF
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol

from hubweir.drivers.amqp_driver import CLOSE_GRACE_MS, AmqpDriver
from hubweir.drivers.monotonic import monotonic_ms
from hubweir.drivers.peer_address import address_text

# AMQP 1.0 over WebSockets says `amqp`; Azure's clients say AMQPWSB10. The one that is offered is echoed.
SUBPROTOCOLS = (Subprotocol("AMQPWSB10"), Subprotocol("amqp"))
MESSAGE_BYTES = 256 * 1024
# Fragments of one message: without it, empty ones would go on for ever. A frame of 64 KiB in pieces of 64 bytes fits.
FRAGMENT_COUNT = 1_024
# Pings: a library that probes the path sends a few at once.
PING_BURST, PING_INTERVAL_MS = 10, 1_000
# Some libraries take no message over 32 KiB unless told to. Nothing is lost by cutting: a message has no meaning here.
SEND_BYTES = 32 * 1024

# The library's own logger writes frames, and so tokens, at level DEBUG: it gets one that never goes so low.
_logger = logging.getLogger(f"{__name__}.protocol")
_logger.setLevel(logging.WARNING)

AmqpFactory = Callable[[str, str], AmqpDriver]


class WebSocketDriver(asyncio.Protocol):
    """One WebSocket with an AmqpDriver behind it, which takes the parts of a transport that it uses from here."""

    def __init__(self, new_amqp: AmqpFactory) -> None:
        """new_amqp: makes the driver of a connection whose handshake succeeded, given the peer's address and Host."""
        self._new_amqp = new_amqp
        self._protocol = ServerProtocol(
            subprotocols=SUBPROTOCOLS, extensions=None, max_size=MESSAGE_BYTES, logger=_logger
        )
        self._transport: asyncio.Transport | None = None
        self._amqp: AmqpDriver | None = None
        self._amqp_closes = False
        self._fragments = 0
        self._ping_level_ms = PING_BURST * PING_INTERVAL_MS
        self._pinged_ms = 0
        self._grace: asyncio.TimerHandle | None = None

    # What the loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._protocol.receive_data(data)
        received: list[bytes] = []
        for event in self._protocol.events_received():
            if isinstance(event, Request):
                self._answer_handshake(event)
            elif isinstance(event, Frame) and not self._take(event, received):
                break
        # Before the stream: an answer to a ping must not wait for what AMQP says.
        self._flush()
        if received and self._amqp is not None:
            self._amqp.receive(received[0] if len(received) == 1 else b"".join(received))

    def eof_received(self) -> bool:
        self._protocol.receive_eof()
        if self._amqp is not None:
            self._amqp.eof_received()
        return False

    def pause_writing(self) -> None:
        if self._amqp is not None:
            self._amqp.pause_writing()

    def resume_writing(self) -> None:
        if self._amqp is not None:
            self._amqp.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._grace is not None:
            self._grace.cancel()
        self._transport = None
        if self._amqp is not None:
            self._amqp.connection_lost(exc)

    # What AmqpDriver calls: the part of asyncio.Transport that it uses

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        if self._transport is not None:
            self._transport.set_write_buffer_limits(high=high, low=low)

    def get_write_buffer_size(self) -> int:
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default if self._transport is None else self._transport.get_extra_info(name, default)

    def is_closing(self) -> bool:
        return self._amqp_closes or self._transport is None or self._transport.is_closing()

    def pause_reading(self) -> None:
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._is_open:
            for at in range(0, len(data), SEND_BYTES):
                self._protocol.send_binary(data[at : at + SEND_BYTES])
            self._flush()

    def writelines(self, buffers: Iterable[bytes | bytearray | memoryview]) -> None:
        self.write(b"".join(buffers))

    def close(self) -> None:
        """Say good-bye; the peer's close frame ends the connection, or the AmqpDriver's own patience does."""
        self._amqp_closes = True
        if self._is_open:
            self._protocol.send_close(CloseCode.NORMAL_CLOSURE)
            self._flush()
        elif self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # Inside

    @property
    def _is_open(self) -> bool:
        return self._protocol.state.name == "OPEN" and self._transport is not None

    def _answer_handshake(self, request: Request) -> None:
        """101 and an AMQP driver, or the status that says what is wrong with the request."""
        response = self._protocol.accept(request)
        self._protocol.send_response(response)
        self._flush()
        if response.status_code == 101 and self._transport is not None:
            peer = f"{address_text(self._transport.get_extra_info('peername'))} (WebSocket)"
            amqp = self._amqp = self._new_amqp(peer, request.headers.get("Host", ""))
            amqp.connection_made(self)  # type: ignore[arg-type]  # as much of a transport as it asks for

    def _take(self, frame: Frame, received: list[bytes]) -> bool:
        """Put the bytes of a data frame into received; False when the peer is told that it went too far."""
        match frame.opcode:
            case Opcode.BINARY | Opcode.CONT:
                self._fragments = 0 if frame.fin else self._fragments + 1
                if self._fragments > FRAGMENT_COUNT:
                    return self._fail(CloseCode.POLICY_VIOLATION, f"a message may have {FRAGMENT_COUNT} fragments")
                if frame.data:
                    received.append(bytes(frame.data))
            case Opcode.TEXT:
                return self._fail(CloseCode.UNSUPPORTED_DATA, "AMQP is binary")
            case Opcode.PING:
                now_ms = monotonic_ms()
                self._ping_level_ms = min(
                    PING_BURST * PING_INTERVAL_MS, self._ping_level_ms + now_ms - (self._pinged_ms or now_ms)
                )
                self._pinged_ms = now_ms
                if self._ping_level_ms < PING_INTERVAL_MS:
                    return self._fail(CloseCode.POLICY_VIOLATION, "one ping a second is allowed")
                self._ping_level_ms -= PING_INTERVAL_MS
        return True

    def _fail(self, code: CloseCode, reason: str) -> bool:
        self._protocol.fail(code, reason)
        return False

    def _flush(self) -> None:
        """Write what the protocol has to say, and end the transport when it says so."""
        transport = self._transport
        if transport is None:
            return
        ends = False
        pieces: list[bytes] = []
        for piece in self._protocol.data_to_send():
            if piece is SEND_EOF or not piece:
                ends = True
            else:
                pieces.append(piece)
        if pieces and not transport.is_closing():
            transport.write(pieces[0] if len(pieces) == 1 else b"".join(pieces))
        if ends and not transport.is_closing():
            transport.close()
        elif self._protocol.close_expected() and self._grace is None:
            self._grace = asyncio.get_running_loop().call_later(CLOSE_GRACE_MS / 1000, self.abort)
