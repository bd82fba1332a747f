"""HTTP/1.1 connections: uvicorn's protocol on httptools, with a guard in front of its parser.

httptools takes a header of any size and waits for its end for ever, so the guard counts bytes, headers and time of
every request head and answers 431 or 408 (RFC 9110 section 15.5.9, RFC 6585 section 5). Each piece given to the
parser is small, so at most that much is parsed beyond a limit. uvicorn's own server object is not used: it would take
the signals of the process.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

# Programme part 3, HTTP: line, headers, count, head time.
LINE_BYTES = 8 * 1024
HEAD_BYTES = 32 * 1024
HEADER_COUNT = 64
HEAD_TIME_MS = 10_000
PIECE_BYTES = 4 * 1024


class GuardedHttpProtocol(HttpToolsProtocol):
    """uvicorn's protocol with limits on a request's head."""

    def __init__(self, *arguments: Any, head_time_ms: int = HEAD_TIME_MS, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._in_head = True
        self._head_bytes = 0
        self._line_bytes = 0
        self._header_count = 0
        self._head_time_ms = head_time_ms
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(  # type: ignore[override]  # as uvicorn has it
        self, transport: asyncio.Transport
    ) -> None:
        super().connection_made(transport)
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        for at in range(0, len(data), PIECE_BYTES):
            if self.transport.is_closing():
                return
            piece = data[at : at + PIECE_BYTES]
            if self._in_head:
                self._head_bytes += len(piece)
            super().data_received(piece)
            if self._in_head and self._head_bytes > HEAD_BYTES:
                self._refuse("431 Request Header Fields Too Large", f"a request head may have {HEAD_BYTES} bytes")

    # Called by the parser

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if not self._in_head:  # a further request of this connection
            self._in_head = True
            self._head_bytes = 0
            self._start_timer()
        self._line_bytes = 0
        self._header_count = 0

    def on_url(self, url: bytes) -> None:
        self._line_bytes += len(url)
        if self._line_bytes > LINE_BYTES:
            self._refuse("414 URI Too Long", f"a request line may have {LINE_BYTES} bytes")
            return
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_count += 1
        if self._header_count > HEADER_COUNT:
            self._refuse("431 Request Header Fields Too Large", f"a request may have {HEADER_COUNT} headers")
            return
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._stop_timer()
        if not self.transport.is_closing():
            super().on_headers_complete()

    # Inside

    def _start_timer(self) -> None:
        self._stop_timer()
        self._head_timer = self.loop.call_later(
            self._head_time_ms / 1000, self._refuse, "408 Request Timeout", "a request head must come in time"
        )

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _refuse(self, status: str, text: str) -> None:
        """Answer and close, once."""
        if self.transport is None or self.transport.is_closing():
            return
        body = text.encode()
        head = f"HTTP/1.1 {status}\r\ncontent-type: text/plain\r\nconnection: close\r\ncontent-length: {len(body)}\r\n"
        self.transport.write(head.encode() + b"\r\n" + body)
        self.transport.close()


class HttpDriver:
    """Makes one protocol a connection for an ASGI application, and ends them all."""

    def __init__(self, application: Any, *, head_time_ms: int = HEAD_TIME_MS) -> None:
        """application: an ASGI 3 application; it gets no lifespan events."""
        self._config = Config(
            application,
            http=GuardedHttpProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
        )
        self._config.load()
        self._state = ServerState()
        self._head_time_ms = head_time_ms

    def new_protocol(self) -> asyncio.Protocol:
        """The protocol of one connection, as the port switch asks for it."""
        return GuardedHttpProtocol(
            config=self._config, server_state=self._state, app_state={}, head_time_ms=self._head_time_ms
        )

    async def close(self, *, grace_ms: int) -> None:
        """Let requests under way end within grace_ms, then drop what is left."""
        for connection in list(self._state.connections):
            connection.shutdown()
        loop = asyncio.get_running_loop()
        end = loop.time() + grace_ms / 1000
        while self._state.connections and loop.time() < end:
            await asyncio.sleep(0.01)
        for connection in list(self._state.connections):
            if connection.transport is not None:
                connection.transport.abort()
