"""One port speaks everything: the first bytes of a connection tell TLS from plain, then AMQP from HTTP.

How, so that it works on asyncio and uvloop alike: wait until the socket is readable, look at one byte without taking
it (0x16 opens every TLS handshake), make the transport with or without TLS around a sniffer, and let the sniffer hand
over to the real protocol with the bytes it saw. `start_tls` after a read cannot work: the ClientHello is gone by then.

From accept to hand-over a connection has first_bytes_ms, handshake included. At most undecided_connections are in that
state; one more drops the oldest of them, so peers that say nothing cannot keep others out. (limits.py has the numbers)
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from typing import Protocol, cast

from hubweir.drivers.listening_socket import AcceptLoop, bind
from hubweir.drivers.peer_address import address_text
from hubweir.drivers.tasks import Tasks
from hubweir.limits import PortLimits

logger = logging.getLogger(__name__)

TLS_HANDSHAKE = 0x16
AMQP = b"AMQP"


class ReceivingProtocol(Protocol):
    """A protocol that can be given bytes which somebody else has read: AmqpDriver."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None: ...

    def receive(self, data: bytes) -> None: ...


AmqpFactory = Callable[[str], ReceivingProtocol]
HttpFactory = Callable[[], asyncio.Protocol]


class PortSwitch:
    """Some listening ports that all speak everything."""

    def __init__(
        self,
        *,
        amqp: AmqpFactory,
        http: HttpFactory,
        tls: ssl.SSLContext | None,
        limits: PortLimits,
    ) -> None:
        """amqp (given the peer's address, for logs) and http make one protocol a connection.

        tls may be replaced at any time, for connections that come from then on. Without it TLS connections are closed.
        """
        self._amqp = amqp
        self._http = http
        self.tls = tls
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._tasks = Tasks("port switch")
        self._accepting: list[AcceptLoop] = []
        # Insertion order is age: the first is the oldest.
        self._undecided: dict[_Undecided, None] = {}

    def listen(self, host: str, port: int, *, share: Callable[[socket.socket], None] | None = None) -> tuple[str, int]:
        """Bind, listen, and return the address bound (port 0 took a free one). AddressTaken when it cannot be.

        share: several processes listen there (listening_socket.bind), and it says which of them gets a connection: it
        gives to `adopt` what is for this one.
        """
        listener = bind(host, port, is_shared=share is not None)
        address = listener.getsockname()
        self._accepting.append(AcceptLoop(listener, share or self.adopt, self._loop))
        return address[0], address[1]

    def adopt(self, connection: socket.socket) -> None:
        """Take care of a connected, non-blocking socket as if it had come in on a port."""
        if len(self._undecided) >= self._limits.undecided_connections:
            next(iter(self._undecided)).drop("too many connections say nothing")
        self._undecided[_Undecided(self, connection)] = None

    def stop_listening(self) -> None:
        """Close the listening sockets. What was handed over lives on; what is undecided may still decide."""
        for accepting in self._accepting:
            accepting.close()
        self._accepting = []

    async def close(self) -> None:
        """Stop listening and drop what is undecided."""
        self.stop_listening()
        for undecided in list(self._undecided):
            undecided.drop("the service stops")
        await self._tasks.stop()

    # For _Undecided only

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    @property
    def first_bytes_s(self) -> float:
        return self._limits.first_bytes_ms / 1000

    def make_transport(
        self, undecided: _Undecided, connection: socket.socket, tls: ssl.SSLContext | None
    ) -> Callable[[], object]:
        """Begin, and return what breaks it off."""
        return self._tasks.start(undecided.connect(connection, tls), name="new connection")

    def decided(self, undecided: _Undecided) -> None:
        self._undecided.pop(undecided, None)

    def hand_over(self, transport: asyncio.Transport, first_bytes: bytes) -> None:
        """Give the transport and the bytes read so far to the protocol that they ask for."""
        if first_bytes.startswith(AMQP):
            driver = self._amqp(address_text(transport.get_extra_info("peername")))
            transport.set_protocol(cast(asyncio.BaseProtocol, driver))
            driver.connection_made(transport)
            driver.receive(first_bytes)
        else:
            protocol = self._http()
            transport.set_protocol(protocol)
            protocol.connection_made(transport)
            protocol.data_received(first_bytes)


class _Undecided(asyncio.Protocol):
    """One connection from accept to hand-over: first its socket, then the sniffer of its transport."""

    def __init__(self, switch: PortSwitch, connection: socket.socket) -> None:
        self._switch = switch
        self._socket: socket.socket | None = connection
        self._transport: asyncio.Transport | None = None
        self._break_off: Callable[[], object] = _nothing  # while the transport is being made, handshake included
        self._seen = b""
        self._deadline = switch.loop.call_later(switch.first_bytes_s, self.drop, "it said nothing in time")
        switch.loop.add_reader(connection, self._look)

    def drop(self, why: str) -> None:
        """Close it, whatever state it is in."""
        logger.debug("connection dropped: %s", why)
        self._end()
        if self._socket is not None:
            self._switch.loop.remove_reader(self._socket)
            self._socket.close()
            self._socket = None
        self._break_off()
        if self._transport is not None:
            self._transport.abort()

    def _look(self) -> None:
        """The socket is readable: its first byte says whether TLS comes. It stays in the socket."""
        connection = self._socket
        if connection is None:
            return
        try:
            first = connection.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self.drop(str(error))
            return
        if not first:
            self.drop("it closed without a word")
            return
        secure = first[0] == TLS_HANDSHAKE
        if secure and self._switch.tls is None:
            self.drop("it wants TLS, and there is no certificate")
            return
        self._switch.loop.remove_reader(connection)
        self._socket = None
        self._break_off = self._switch.make_transport(self, connection, self._switch.tls if secure else None)

    async def connect(self, connection: socket.socket, tls: ssl.SSLContext | None) -> None:
        """Make the transport; the handshake is part of it. The deadline of this connection ends it, too."""
        timeout = self._switch.first_bytes_s if tls is not None else None
        try:
            await self._switch.loop.connect_accepted_socket(
                lambda: self, connection, ssl=tls, ssl_handshake_timeout=timeout
            )
        except (OSError, TimeoutError) as error:  # ssl.SSLError and resets are OSError
            self._end()
            connection.close()
            logger.info("a connection ended in its handshake: %s", str(error) or type(error).__name__)
        except asyncio.CancelledError:
            self._end()
            connection.close()
            raise

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._seen += data
        if len(self._seen) < len(AMQP) and AMQP.startswith(self._seen):
            return
        transport = self._transport
        if transport is None:
            return
        self._end()
        self._transport = None
        try:
            self._switch.hand_over(transport, self._seen)
        except Exception:
            logger.exception("a new connection could not be taken over")
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        self._transport = None

    def _end(self) -> None:
        self._deadline.cancel()
        self._switch.decided(self)


def _nothing() -> None:
    """Nothing is under way."""
