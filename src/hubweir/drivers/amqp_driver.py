"""Carries bytes between one transport and one AMQP Endpoint, in either role; decides nothing.

A *turn* is what one wake-up of the loop brings: bytes are received, the endpoint reports events, the host handles
them, and at its end everything that the endpoint wants to send goes out with one write. Whoever has something for the
peer outside of a turn (an append became durable, a read came back) calls `wake()`: all wake-ups of one turn of the loop
share one turn of the connection, in which the host is told that it ends, and then the bytes go out.

One receive buffer serves all connections of a loop, so rows of a delivery event point into bytes that the next read
overwrites: a host copies what it keeps before it returns.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Protocol, cast

from hubweir.amqp.endpoint import Endpoint
from hubweir.amqp.transport.events import Event
from hubweir.drivers.loop_turn import LoopTurn
from hubweir.drivers.monotonic import monotonic_ms
from hubweir.drivers.peer_address import address_text, is_local
from hubweir.drivers.tls import PeerCertificate, peer_certificate
from hubweir.drivers.transport_reading import Pause, TransportReading

logger = logging.getLogger(__name__)

RECEIVE_BUFFER_BYTES = 256 * 1024
# Above the high mark the host stops producing; below the low one it goes on. What lies here is what the socket did not
# take: its own buffer is full, and keeps the peer busy while we come back. So a peer that reads nothing costs little.
WRITE_HIGH_BYTES = 32 * 1024
WRITE_LOW_BYTES = 8 * 1024
# A peer that goes on asking while it reads no answers is not read either above this. Far above the high mark, so that
# a client that writes before it reads is not stopped by what we sent it unasked.
UNREAD_LIMIT_BYTES = 1024 * 1024
# A peer that does not read our close gets this long before its connection is dropped.
CLOSE_GRACE_MS = 5_000


class DriverHost(Protocol):
    """The holder of an endpoint: the gateway's connection host, or a client. Called on the loop only.

    Order: on_connected, then any number of turns (on_event…, on_turn_end), on_closed once and last.
    """

    def on_connected(self, driver: AmqpDriver) -> None:
        """The transport is up. Keep the driver: wake, pause_reading, abort."""

    def on_event(self, event: Event) -> None:
        """One event of the endpoint. Delivery rows are valid only until this returns."""

    def on_turn_end(self) -> None:
        """Last call before the bytes of a turn go out, of one that `wake` asked for, too: settle ranges, top up
        credit."""

    def on_writing_paused(self) -> None:
        """The transport holds WRITE_HIGH_BYTES or more: stop producing for this peer."""

    def on_writable(self) -> None:
        """The transport drained below WRITE_LOW_BYTES: produce again. The driver flushes when this returns."""

    def on_closed(self) -> None:
        """The transport is gone. The endpoint has reported Closed before, in whatever way it ended."""


class ReceiveBuffer:
    """The receive buffer of one loop, lent to one connection at a time, for the length of one read."""

    __slots__ = ("view",)

    def __init__(self, size: int = RECEIVE_BUFFER_BYTES) -> None:
        self.view = memoryview(bytearray(size))


class Turn(Enum):
    """Where a connection is with its turns."""

    NONE = "nobody wants one"
    WANTED = "wake was called, and the loop will call back"
    WITHIN = "one goes on, at whose end everything is written"


class AmqpDriver(asyncio.BufferedProtocol):
    """See the module's text. `asyncio.BufferedProtocol` for TCP, TLS and Unix sockets, on asyncio and uvloop."""

    def __init__(
        self,
        endpoint: Endpoint,
        host: DriverHost,
        buffer: ReceiveBuffer,
        *,
        loop_turn: LoopTurn | None = None,
        on_lost: Callable[[AmqpDriver], None] | None = None,
    ) -> None:
        """loop_turn: of the process, so that connections write behind what ends a turn before them; None: its own.

        on_lost: told after the host that the transport is gone (a list of live drivers takes it out).
        """
        self.endpoint = endpoint
        self._host = host
        self._buffer = buffer.view
        self._loop_turn = loop_turn or LoopTurn(asyncio.get_running_loop())
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        self._at = Turn.NONE
        self._writing_paused = False
        self._reading = TransportReading()
        self._closing = False
        self._on_lost = on_lost

    # What hosts call

    @property
    def transport(self) -> asyncio.Transport | None:
        """The transport, for its `get_extra_info`; None before and after the connection."""
        return self._transport

    @property
    def peer_certificate(self) -> PeerCertificate | None:
        """The certificate that the peer showed and TLS verified; None when it showed none, or there is no TLS."""
        return None if self._transport is None else peer_certificate(self._transport.get_extra_info("peercert"))

    @property
    def is_private(self) -> bool:
        """True when no other machine can read what is said here: there is TLS, or the peer is on this machine."""
        return self.is_tls or (self._transport is not None and is_local(self._transport.get_extra_info("peername")))

    @property
    def is_tls(self) -> bool:
        """True when the peer came over TLS, and is there."""
        return self._transport is not None and self._transport.get_extra_info("ssl_object") is not None

    @property
    def writing_paused(self) -> bool:
        """True between on_writing_paused and on_writable."""
        return self._writing_paused

    @property
    def unwritten_bytes(self) -> int:
        """What the transport holds because the socket has not taken it."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def wake(self) -> None:
        """The host or the endpoint has something to send: one turn of the connection, in this turn of the loop."""
        if self._at is Turn.NONE:
            self._at = Turn.WANTED
            self._loop_turn.at_end(self._wake_up)

    def pause_reading(self) -> None:
        """Take no more bytes from the peer until resume_reading; what was read already is still handled."""
        self._reading.pause(Pause.HOST)

    def resume_reading(self) -> None:
        """Undo pause_reading; does nothing when reading goes on, or was stopped for good."""
        self._reading.go_on(Pause.HOST)

    def stop_reading(self) -> None:
        """Take no more bytes from the peer before our close is sent: the service stops."""
        self._reading.pause(Pause.STOP)

    def abort(self) -> None:
        """Drop the connection now, unsent bytes and all."""
        if self._transport is not None:
            self._transport.abort()

    def receive(self, data: bytes) -> None:
        """Handle bytes that somebody else read from this transport (the port switch, which looked at the first)."""
        self._receive(memoryview(data))

    # What the loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._reading.begin(self._transport)
        self._transport.set_write_buffer_limits(high=WRITE_HIGH_BYTES, low=WRITE_LOW_BYTES)
        self._turn(self._connected)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._receive(self._buffer[:nbytes])

    def eof_received(self) -> bool:
        self._turn(self._ended)
        return False

    def pause_writing(self) -> None:
        self._writing_paused = True
        self._host.on_writing_paused()

    def resume_writing(self) -> None:
        self._writing_paused = False
        self._reading.go_on(Pause.UNREAD)
        # Not within this call: a transport of asyncio whose peer is gone would lose its connection twice.
        self._loop_turn.at_end(self._write_on)

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self.endpoint.is_closed:
            self._turn(self._ended)
        self._transport = None
        try:
            self._host.on_closed()
        finally:
            if self._on_lost is not None:
                self._on_lost(self)

    # One turn

    def _receive(self, data: memoryview) -> None:
        if self._closing:
            return  # our close is on its way; what still comes does not matter (part 2 section 2.4.3)
        self._turn(partial(self.endpoint.receive_data, data, monotonic_ms()))

    def _connected(self) -> list[Event]:
        self._host.on_connected(self)
        return []

    def _writable(self) -> list[Event]:
        self._host.on_writable()
        return []

    def _ended(self) -> list[Event]:
        return self.endpoint.receive_eof(monotonic_ms())

    def _timed(self) -> list[Event]:
        return self.endpoint.on_time(monotonic_ms())

    def _write_on(self) -> None:
        if self._transport is not None and not self._writing_paused:
            self._turn(self._writable)

    def _wake_up(self) -> None:
        if self._at is Turn.WANTED:  # bytes may have brought one meanwhile
            self._turn(list)  # no events

    def _turn(self, step: Callable[[], list[Event]]) -> None:
        """Run a step of this connection, hand its events to the host, then write. A fault of ours ends this
        connection, loudly, and no other."""
        is_within, self._at = self._at is Turn.WITHIN, Turn.WITHIN
        host = self._host
        try:
            for event in step():
                host.on_event(event)
            host.on_turn_end()
            if not is_within:
                self._flush()
        except Exception:
            logger.exception("a fault of the service ends the connection of %s", self._peer())
            self._closing = True
            self.abort()
        finally:
            if not is_within:
                self._at = Turn.NONE

    def _flush(self) -> None:
        transport = self._transport
        if transport is None:
            return
        buffers = self.endpoint.data_to_send()
        if buffers and not transport.is_closing():
            if len(buffers) == 1:
                transport.write(buffers[0])
            else:
                transport.writelines(buffers)
            if self._writing_paused and transport.get_write_buffer_size() > UNREAD_LIMIT_BYTES:
                self._reading.pause(Pause.UNREAD)
        if self._timer is None or self.endpoint.has_changed:
            if self.endpoint.is_closed:
                self._close(transport)
            else:
                self._set_timer()

    def _close(self, transport: asyncio.Transport) -> None:
        """Close once what was written is out, or when the peer has not taken it in time."""
        if self._closing:
            return
        self._closing = True
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop_turn.loop.call_later(CLOSE_GRACE_MS / 1000, self.abort)
        self._reading.go_on_for_good()
        transport.close()

    def _set_timer(self) -> None:
        """Keep one timer, not later than the endpoint's deadline. It may ring early: moving it each read costs more."""
        deadline_ms = self.endpoint.next_deadline_ms()
        if deadline_ms is None or self._closing or (self._timer is not None and self._timer_ms <= deadline_ms):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ms = deadline_ms
        delay_ms = max(0, deadline_ms - monotonic_ms())
        self._timer = self._loop_turn.loop.call_later(delay_ms / 1000, self._rang)

    def _rang(self) -> None:
        self._timer = None
        if not self._closing:
            deadline_ms = self.endpoint.next_deadline_ms()
            self._turn(self._timed if deadline_ms is not None and deadline_ms <= monotonic_ms() else list)

    def _peer(self) -> str:
        name = self._transport.get_extra_info("peername") if self._transport is not None else None
        return address_text(name)
