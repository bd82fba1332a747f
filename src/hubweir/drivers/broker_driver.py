"""Frames of a head and a body over a byte stream: how a gateway and a broker of two processes talk.

| offset | size | name        | meaning |
|-------:|-----:|-------------|---------|
|      0 |    4 | head length | bytes of the head |
|      4 |    4 | body length | bytes of the body; most frames have none |
|      8 |      | head        | for the host to read at once |
|        |      | body        | in a buffer of its own, for the host to keep and to write to |

The integers are big-endian. The driver cuts the stream into frames and joins the frames of one loop turn into one
write; what is in them is the host's business (broker/wire.py). A large frame is received where its body will stay. A
frame over the limit, or one that the host cannot read, ends the connection.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from collections.abc import Callable, Sequence
from typing import Protocol, cast

from hubweir.env import Buffer
from hubweir.errors import HubweirError

logger = logging.getLogger(__name__)

LENGTHS = struct.Struct(">II")
RECEIVE_BYTES = 256 * 1024
# A larger frame that is not there whole has the rest received where it will stay. A smaller one waits in the receive
# buffer for its rest and is copied out of it, which costs less than a read of its own.
SMALL_FRAME_BYTES = 32 * 1024
# What the system takes of a stream before the other end reads: a whole run, so that neither end is woken for each part
# of it. A system may allow less (net.core.wmem_max).
SOCKET_BYTES = 1024 * 1024
WRITE_HIGH_BYTES = 1024 * 1024
WRITE_LOW_BYTES = 256 * 1024


class FrameHost(Protocol):
    """Reads and writes the frames of a stream. Called on the loop only."""

    def on_frame(self, head: memoryview, body: bytearray) -> None:
        """A whole frame. head: read it before this returns. body: the host's from now on. May raise HubweirError.

        The body must not change its size before this returns.
        """

    def on_writing_paused(self) -> None:
        """WRITE_HIGH_BYTES wait for the peer: ask for no more than must be."""

    def on_writable(self) -> None:
        """The peer took most of it."""

    def on_closed(self) -> None:
        """The stream ended, from either side. Called once, and last."""


class BrokerDriver(asyncio.BufferedProtocol):
    """One stream. frame_limit_bytes: of a head and its body together."""

    def __init__(self, host: FrameHost, *, frame_limit_bytes: int) -> None:
        self._host = host
        self._limit = frame_limit_bytes
        self._buffer = memoryview(bytearray(RECEIVE_BYTES))
        self._kept = 0  # bytes at the front of _buffer that wait for the rest of their frame
        self._large: _LargeFrame | None = None
        self._transport: asyncio.Transport | None = None
        self._pending: list[Buffer] = []
        self._loop = asyncio.get_running_loop()

    def send(self, buffers: Sequence[Buffer]) -> None:
        """Send a frame at the end of this loop turn, together with the others of it. Nothing after the end."""
        if self._transport is None or self._transport.is_closing():
            return
        if not self._pending:
            self._loop.call_soon(self._flush)
        self._pending.extend(buffers)

    def pause_reading(self) -> None:
        """Take no more frames for now; those that were received already still come."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def close(self) -> None:
        """Send what waits, then end the stream."""
        if self._transport is not None:
            self._flush()
            self._transport.close()

    def abort(self) -> None:
        """End the stream now."""
        if self._transport is not None:
            self._transport.abort()

    # What the loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=WRITE_HIGH_BYTES, low=WRITE_LOW_BYTES)

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._large is not None:
            return self._large.left[0]
        return self._buffer[self._kept :]

    def buffer_updated(self, nbytes: int) -> None:
        try:
            if self._large is not None:
                self._fill(self._large, nbytes)
            else:
                self._cut(self._kept + nbytes)
        except HubweirError as error:
            logger.error("the stream between gateway and broker is broken off: %s", error)
            self.abort()

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._host.on_writing_paused()

    def resume_writing(self) -> None:
        self._host.on_writable()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._pending = []
        self._host.on_closed()

    # Inside

    def _fill(self, frame: _LargeFrame, nbytes: int) -> None:
        frame.filled(nbytes)
        if not frame.left:
            self._large = None
            self._host.on_frame(memoryview(frame.head), frame.body)

    def _cut(self, end: int) -> None:
        """Hand over the whole frames in _buffer[:end] and keep the rest."""
        at, view = 0, self._buffer
        while end - at >= LENGTHS.size:
            head_length, body_length = LENGTHS.unpack_from(view, at)
            size = head_length + body_length
            if size > self._limit:
                raise HubweirError(f"a frame of {size} bytes is over the limit of {self._limit}")
            head_at = at + LENGTHS.size
            body_at, frame_end = head_at + head_length, head_at + size
            if frame_end > end:
                if size > SMALL_FRAME_BYTES:
                    self._large = _LargeFrame(head_length, body_length, view[head_at:end])
                    at = end
                break
            self._host.on_frame(view[head_at:body_at], bytearray(view[body_at:frame_end]))
            at = frame_end
        self._kept = end - at
        if at and self._kept:
            view[: self._kept] = view[at:end]  # may overlap: memoryviews take care of that

    def _flush(self) -> None:
        pending, self._pending = self._pending, []
        if pending and self._transport is not None and not self._transport.is_closing():
            self._transport.writelines(pending)


class _LargeFrame:
    """A frame on its way. left: the parts of it that are still to be received, in order; none when it is whole."""

    __slots__ = ("body", "head", "left")

    def __init__(self, head_length: int, body_length: int, came: memoryview) -> None:
        """came: what is there of it; copied."""
        self.head, self.body = bytearray(head_length), bytearray(body_length)
        self.left: list[memoryview] = []
        for part in (memoryview(self.head), memoryview(self.body)):
            size = min(len(part), len(came))
            part[:size], came = came[:size], came[size:]
            if size < len(part):
                self.left.append(part[size:])

    def filled(self, nbytes: int) -> None:
        """So many bytes of the first part that is left were received into it."""
        rest = self.left[0][nbytes:]
        self.left[:1] = [rest] if rest else []


async def connect_stream(connection: socket.socket, make_driver: Callable[[], BrokerDriver]) -> BrokerDriver:
    """Put a driver on a connected, non-blocking Unix socket (one end of a pair, or an accepted one).

    The socket is closed when that fails, with OSError, or is cancelled.
    """
    try:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BYTES)
        _, driver = await asyncio.get_running_loop().create_unix_connection(make_driver, sock=connection)
    except BaseException:
        connection.close()
        raise
    return driver
