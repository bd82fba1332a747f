"""HTTP/1.1 connections: uvicorn's protocol on httptools, with a guard in front of its parser.

httptools takes a header of any size and waits for its end for ever, so the guard counts bytes, headers and time of
every request head and answers 431 or 408 (RFC 9110 section 15.5.9, RFC 6585 section 5), refuses heads that could be
read in two ways (request_head.py), bodies that trickle in or never end, and holds back what a peer pipelines. Each
piece given to the parser is small, so at most that much is parsed beyond a limit. A request for the WebSocket address
hands its connection over to websocket_driver.py. uvicorn's own server object is not used: it would take the signals
of the process.

A refusal is written only when it answers the request that it is about. While an earlier request is still being
answered the connection is closed without a word: its peer would take the refusal for that request's answer.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from hubweir.drivers.request_head import head_fault, is_websocket_path
from hubweir.drivers.websocket_driver import AmqpFactory, WebSocketDriver
from hubweir.limits import PortLimits

# Safety limits of HTTP: line, headers, count, body rate.
LINE_BYTES = 8 * 1024
HEAD_BYTES = 32 * 1024
HEADER_COUNT = 64
BODY_BYTES_PER_S = 1024
# The rate is taken over this long, so a body that is there in less is never slow.
BODY_WINDOW_MS = 10_000
# Beyond every limit of a message or document: an answer that came early leaves this much to be read and dropped.
BODY_BYTES = 16 * 1024 * 1024
PIECE_BYTES = 4 * 1024
# Requests that wait behind the one being answered; the rest of the bytes waits unparsed.
PIPELINE_COUNT = 64
# In scope["extensions"]: the names of the headers as the peer spelt them, in the order of scope["headers"].
HEADER_NAMES = "hubweir.header_names"


class ReadingInTurn(FlowControl):
    """Does not read on while requests wait: uvicorn would at every answer, and a peer that pipelines would pile up."""

    def __init__(self, transport: asyncio.Transport, must_wait: Callable[[], bool]) -> None:
        super().__init__(transport)
        self._must_wait = must_wait

    def resume_reading(self) -> None:
        if not self._must_wait():
            super().resume_reading()


class GuardedHttpProtocol(HttpToolsProtocol):
    """uvicorn's protocol with limits."""

    def __init__(
        self,
        *arguments: Any,
        limits: PortLimits,
        amqp: AmqpFactory | None = None,
        body_window_ms: int = BODY_WINDOW_MS,
        **named: Any,
    ) -> None:
        super().__init__(*arguments, **named)
        if amqp is not None:
            # uvicorn calls it with its configuration, which this driver has no use for.
            self.ws_protocol_class = lambda **_: WebSocketDriver(amqp)  # type: ignore[assignment]
        self._in_head = True
        self._gone = False  # refused, or handed over
        self._head_bytes = 0
        self._line_bytes = 0
        self._header_count = 0
        self._body_bytes = 0
        self._body_bytes_at_ring = 0
        self._held = b""
        self._limits = limits
        self._body_window_ms = body_window_ms
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(  # type: ignore[override]  # as uvicorn has it
        self, transport: asyncio.Transport
    ) -> None:
        super().connection_made(transport)
        known = weakref.ref(self)  # weakly, so that an ended connection is freed at once

        def must_wait() -> bool:
            protocol = known()
            return protocol is not None and bool(protocol._held or protocol.pipeline)

        self.flow = ReadingInTurn(transport, must_wait)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone = True
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._held:
            self._held += data
            self.flow.pause_reading()
        else:
            self._feed(data)

    def _feed(self, data: bytes) -> None:
        for at in range(0, len(data), PIECE_BYTES):
            if self._gone or self.transport.is_closing():
                return
            if len(self.pipeline) >= PIPELINE_COUNT:
                self._held = data[at:]
                self.flow.pause_reading()
                return
            piece = data[at : at + PIECE_BYTES]
            if self._in_head:
                self._head_bytes += len(piece)
            super().data_received(piece)
            if self._in_head and self._head_bytes > HEAD_BYTES:
                self._refuse("431 Request Header Fields Too Large", f"a request head may have {HEAD_BYTES} bytes")

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._held and len(self.pipeline) < PIPELINE_COUNT:
            self.loop.call_soon(self._feed_held)

    def _feed_held(self) -> None:
        held, self._held = self._held, b""
        self._feed(held)
        if not self._gone:
            self.flow.resume_reading()

    # Called by the parser

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = {HEADER_NAMES: []}  # type: ignore[dict-item]  # a list of names
        if not self._in_head:  # a further request of this connection
            self._in_head = True
            self._head_bytes = 0
            self._await_head()
        self._line_bytes = 0
        self._header_count = 0

    def on_url(self, url: bytes) -> None:
        self._line_bytes += len(url)
        if self._line_bytes > LINE_BYTES:
            self._refuse("414 URI Too Long", f"a request line may have {LINE_BYTES} bytes")
        if not self._gone:
            super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_count += 1
        if not self._in_head:
            self._refuse("400 Bad Request", "no fields are taken behind a body")
        elif self._header_count > HEADER_COUNT:
            self._refuse("431 Request Header Fields Too Large", f"a request may have {HEADER_COUNT} headers")
        if not self._gone:
            self.scope["extensions"][HEADER_NAMES].append(name)  # type: ignore[attr-defined]
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self._gone:
            return
        fault = head_fault(self.parser.get_method().decode(), self.url, self.parser.get_http_version(), self.headers)
        if fault is not None:
            self._refuse(*fault)
            return
        self._in_head = False
        self._body_bytes = self._body_bytes_at_ring = 0
        self._start_timer(self._body_window_ms, self._judge_body)
        super().on_headers_complete()
        if self.parser.should_upgrade() and not self._should_upgrade():
            # Answered as if no upgrade had been asked for; what follows on the connection is not HTTP to the parser.
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        if self._gone:
            return
        self._body_bytes += len(body)
        if self._body_bytes > BODY_BYTES:
            self._refuse("413 Content Too Large", f"a body may have {BODY_BYTES} bytes")
            return
        super().on_body(body)

    def on_message_complete(self) -> None:
        if not self._gone:
            self._stop_timer()
            super().on_message_complete()

    # Called by uvicorn

    def _should_upgrade(self) -> bool:
        return (
            not self._gone  # refused: the parser says all the same that an upgrade was asked for
            and self.ws_protocol_class is not None
            and self.parser.get_method() == b"GET"
            and is_websocket_path(self.url)
            and super()._should_upgrade()
        )

    def _unsupported_upgrade_warning(self) -> None:
        """Nobody needs a line in the log for every peer that offers another protocol."""

    def handle_websocket_upgrade(self) -> None:
        self._gone = True
        self._stop_timer()
        super().handle_websocket_upgrade()
        self.parser = None  # type: ignore[assignment]  # it holds this protocol, and ends with it only when HTTP does

    def send_400_response(self, msg: str) -> None:
        self._refuse("400 Bad Request", msg)

    # Inside

    def _await_head(self) -> None:
        self._start_timer(self._limits.http_head_ms, self._head_is_late)

    def _head_is_late(self) -> None:
        self._refuse("408 Request Timeout", "a request head must come in time")

    def _judge_body(self) -> None:
        """Look whether the body comes fast enough. While we do not read, its peer is not to blame."""
        came, self._body_bytes_at_ring = self._body_bytes - self._body_bytes_at_ring, self._body_bytes
        if came < BODY_BYTES_PER_S * self._body_window_ms // 1000 and not self.flow.read_paused and not self._held:
            self._refuse("408 Request Timeout", f"a body must come with {BODY_BYTES_PER_S} bytes a second")
        else:
            self._start_timer(self._body_window_ms, self._judge_body)

    def _start_timer(self, delay_ms: int, callback: Any) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(delay_ms / 1000, callback)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @property
    def _may_answer(self) -> bool:
        """Whether the next answer that the peer reads is that of the request which is being parsed."""
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request, whatever its type says
        if cycle is None:
            return True
        if self._in_head or not cycle.more_body:  # what is being parsed comes behind the request of cycle
            return cycle.response_complete and not self.pipeline
        return not self.pipeline and not cycle.response_started

    def _refuse(self, status: str, text: str) -> None:
        """Answer if that cannot be misunderstood, and close; once."""
        if self._gone or self.transport is None or self.transport.is_closing():
            return
        if self._may_answer:
            body = text.encode()
            head = f"HTTP/1.1 {status}\r\ncontent-type: text/plain\r\nconnection: close\r\n"
            self.transport.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        self._gone = True
        self._stop_timer()
        self.transport.close()


class HttpDriver:
    """Makes one protocol a connection for an ASGI application, and ends them all."""

    def __init__(self, application: Any, *, limits: PortLimits, amqp: AmqpFactory | None = None) -> None:
        """application: an ASGI 3 application; it gets no lifespan events. amqp: makes the drivers of WebSockets."""
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
        self._amqp = amqp
        self._limits = limits

    def new_protocol(self) -> asyncio.Protocol:
        """The protocol of one connection, as the port switch asks for it."""
        return GuardedHttpProtocol(
            config=self._config,
            server_state=self._state,
            app_state={},
            limits=self._limits,
            amqp=self._amqp,
        )

    async def close(self, *, grace_ms: int) -> None:
        """Let requests under way end within grace_ms, then drop what is left; no task of a request outlives this."""
        for connection in list(self._state.connections):
            connection.shutdown()
        loop = asyncio.get_running_loop()
        end = loop.time() + grace_ms / 1000
        while self._state.connections and loop.time() < end:
            await asyncio.sleep(0.01)
        for connection in list(self._state.connections):
            if connection.transport is not None:
                connection.transport.abort()
        await asyncio.sleep(0)  # in which the connections hear of their end: nobody writes to them any more
        tasks = list(self._state.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
