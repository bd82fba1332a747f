"""The way to what listens on a Unix socket of another process: a broker, or another target of commands.

It connects by itself, and again when the stream ends, after 50 ms and then ever later. While there is no stream, it is
*away*: commands are refused as known, for they were not sent. What waited for an answer when a stream ended is refused
as not known, and never sent again (socket_broker.py). Listeners hear of both after those refusals, so that whoever
opened something there can let it go: what was open ended with the stream.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from pathlib import Path

from hubweir.broker.commands.command import Answer, Command, Push
from hubweir.broker.socket_broker import SocketBroker
from hubweir.drivers.broker_driver import connect_stream
from hubweir.drivers.tasks import Tasks
from hubweir.drivers.unix_socket import connect_unix
from hubweir.env import Env, Timer

logger = logging.getLogger(__name__)

END_S = 1.0  # for the other end to take what waits to be sent

# A try costs 30 us. A broker that was ended is back within a second or two, and its readers wait for it.
FIRST_RETRY_MS, LAST_RETRY_MS = 50, 250


class RemoteBroker:
    """See the module's text. Made on a running loop; begins with `start`, ends with `stop`."""

    def __init__(self, path: Path, env: Env) -> None:
        self._path = path
        self._env = env
        self._tasks = Tasks(f"connection to {path.name}")
        self._stream = SocketBroker()  # has no stream yet: it refuses everything as known
        self._listener: Callable[[Push], None] | None = None
        self._on_change: list[Callable[[RemoteBroker], None]] = []
        self._retry: Timer | None = None
        self._retry_ms = FIRST_RETRY_MS
        self._is_stopped = False
        self._ended = asyncio.Event()  # the stream
        self._ended.set()
        self.is_up = False

    def start(self) -> None:
        """Connect, and whenever the stream ends connect again."""
        self._try()

    async def stop(self) -> None:
        """End the stream and try no more. What was not answered is refused as not known, END_S later at the latest."""
        self._is_stopped = True
        if self._retry is not None:
            self._retry.cancel()
        await self._tasks.stop()
        self._stream.close()
        try:
            async with asyncio.timeout(END_S):
                await self._ended.wait()
        except TimeoutError:  # the other end takes nothing, and a stream that is closed sends first what waits
            self._stream.abort()
            await self._ended.wait()

    def submit(self, command: Command, on_answer: Callable[[Answer], None]) -> None:
        """Send a command; on_answer is called once, maybe before this returns when it cannot be sent."""
        self._stream.submit(command, on_answer)

    def listen(self, on_push: Callable[[Push], None]) -> None:
        """Give what is pushed over this stream and all later ones to on_push."""
        self._listener = on_push
        self._stream.listen(on_push)

    def on_change(self, listener: Callable[[RemoteBroker], None]) -> None:
        """Have it called whenever the broker came or went: `is_up` says which."""
        self._on_change.append(listener)

    # Inside

    def _try(self) -> None:
        self._retry = None
        if self._is_stopped:
            return
        try:
            connection = connect_unix(self._path)
        except OSError:
            self._try_later()
            return
        self._tasks.start(self._connected(connection), name="connect")

    def _try_later(self) -> None:
        if self._retry is None and not self._is_stopped:
            self._retry = self._env.machine.call_later(self._retry_ms, self._try)
            self._retry_ms = min(2 * self._retry_ms, LAST_RETRY_MS)

    async def _connected(self, connection: socket.socket) -> None:
        stream = SocketBroker(on_gone=self._gone)
        if self._listener is not None:
            stream.listen(self._listener)
        try:
            await connect_stream(connection, stream.driver)
        except OSError as error:
            logger.info("no stream to %s: %s", self._path.name, error)
            self._try_later()
            return
        if not stream.is_up:
            return  # it has ended already, and the next try is planned
        self._stream = stream
        self._retry_ms = FIRST_RETRY_MS
        self._ended.clear()
        self.is_up = True
        self._tell()

    def _gone(self) -> None:
        self._ended.set()
        if self.is_up:
            self.is_up = False
            self._tell()
        self._try_later()

    def _tell(self) -> None:
        for listener in tuple(self._on_change):
            listener(self)
