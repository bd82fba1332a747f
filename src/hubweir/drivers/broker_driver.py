"""Frames with a length in front over a byte stream: how a gateway and a broker of two processes talk.

The driver cuts the stream into frames and joins the frames of one loop turn into one write; what is in them is the
host's business (broker/wire.py). A frame over the limit, or one that the host cannot read, ends the connection.
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

LENGTH = struct.Struct(">I")
RECEIVE_BYTES = 256 * 1024
WRITE_HIGH_BYTES = 1024 * 1024
WRITE_LOW_BYTES = 256 * 1024


class FrameHost(Protocol):
    """Reads and writes the frames of a stream. Called on the loop only."""

    def on_frame(self, frame: memoryview) -> None:
        """A whole frame, length field included; its buffer is the host's to keep. May raise HubweirError."""

    def on_writing_paused(self) -> None:
        """WRITE_HIGH_BYTES wait for the peer: ask for no more than must be."""

    def on_writable(self) -> None:
        """The peer took most of it."""

    def on_closed(self) -> None:
        """The stream ended, from either side. Called once, and last."""


class BrokerDriver(asyncio.BufferedProtocol):
    """One stream. Small frames are copied out of the receive buffer, large ones are received where they will stay."""

    def __init__(self, host: FrameHost, *, frame_limit_bytes: int) -> None:
        self._host = host
        self._limit = frame_limit_bytes
        self._buffer = memoryview(bytearray(RECEIVE_BYTES))
        self._kept = 0  # bytes at the front of _buffer that wait for the rest of their frame
        self._large: memoryview | None = None  # a frame that does not fit into _buffer, as far as it came
        self._large_filled = 0
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
            return self._large[self._large_filled :]
        return self._buffer[self._kept :]

    def buffer_updated(self, nbytes: int) -> None:
        try:
            if self._large is not None:
                self._fill_large(nbytes)
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

    def _fill_large(self, nbytes: int) -> None:
        frame = self._large
        if frame is None:
            return
        self._large_filled += nbytes
        if self._large_filled == len(frame):
            self._large = None
            self._host.on_frame(frame)

    def _cut(self, end: int) -> None:
        """Hand over the whole frames in _buffer[:end] and keep the rest."""
        at = 0
        while end - at >= LENGTH.size:
            size = LENGTH.size + LENGTH.unpack_from(self._buffer, at)[0]
            if size > self._limit + LENGTH.size:
                raise HubweirError(f"a frame of {size} bytes is over the limit of {self._limit}")
            if end - at < size:
                if size > len(self._buffer):
                    self._large = memoryview(bytearray(size))
                    self._large[: end - at] = self._buffer[at:end]
                    self._large_filled = end - at
                    self._kept = 0
                    return
                break
            self._host.on_frame(memoryview(bytearray(self._buffer[at : at + size])))
            at += size
        self._kept = end - at
        if at and self._kept:
            self._buffer[: self._kept] = bytes(self._buffer[at:end])

    def _flush(self) -> None:
        pending, self._pending = self._pending, []
        if pending and self._transport is not None and not self._transport.is_closing():
            self._transport.writelines(pending)


async def connect(connection: socket.socket, make_driver: Callable[[], BrokerDriver]) -> BrokerDriver:
    """Put a driver on a connected, non-blocking Unix socket (one end of a pair, or an accepted one)."""
    _, driver = await asyncio.get_running_loop().create_unix_connection(make_driver, sock=connection)
    return driver
