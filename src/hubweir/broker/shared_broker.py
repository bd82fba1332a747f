"""A broker that its own process asks by calls, and other processes over a Unix socket.

What it pushes goes to its own process and to every stream; each takes what concerns it. One stream is one life of one
process: its end closes what that life had open (server.py).
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from pathlib import Path

from hubweir.broker.commands.command import Push
from hubweir.broker.server import BrokerServer, CommandTarget
from hubweir.drivers.broker_driver import connect_stream
from hubweir.drivers.tasks import Tasks
from hubweir.drivers.unix_socket import UnixListener

logger = logging.getLogger(__name__)

END_S = 1.0  # for a peer to take what waits to be sent


class SharedBroker:
    """See the module's text. Made on a running loop; sets the `on_push` of its target.

    is_up: whoever has a target that may be away sets it.
    """

    def __init__(self, target: CommandTarget) -> None:
        self.is_up = True
        self._target = target
        self._tasks = Tasks("streams of a broker")
        self._listener: UnixListener | None = None
        self._servers: dict[BrokerServer, None] = {}
        self._changed = asyncio.Event()  # of _servers
        self._on_push: Callable[[Push], None] | None = None
        self.submit = target.submit
        target.on_push = self._push

    def listen(self, on_push: Callable[[Push], None]) -> None:
        """Give what it pushes to on_push, of this process, from now on."""
        self._on_push = on_push

    def serve(self, path: Path) -> None:
        """Take streams of other processes on a path. AddressTaken when another process does."""
        self._listener = UnixListener(path, self._accepted, asyncio.get_running_loop())

    def leave(self) -> None:
        """Take no more streams, and end those that are there after what waits to be sent, until it serves again."""
        self._stop_listening()
        for server in tuple(self._servers):
            server.close()

    def end_streams_of(self, process_id: int) -> None:
        """End the streams over which a process spoke; it may connect again."""
        for server in tuple(self._servers):
            if server.speaks_for(process_id):
                server.close()

    async def close(self) -> None:
        """Take no more streams and end those that are there: after what waits to be sent, END_S later at the latest."""
        self.leave()
        try:
            async with asyncio.timeout(END_S):
                await self._all_gone()
        except TimeoutError:
            for server in tuple(self._servers):
                server.abort()
            await self._all_gone()
        await self._tasks.stop()

    # Inside

    def _stop_listening(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    def _push(self, push: Push) -> None:
        if self._on_push is not None:
            self._on_push(push)
        for server in tuple(self._servers):
            server.push(push)

    def _accepted(self, connection: socket.socket) -> None:
        server = BrokerServer(self._target, on_gone=lambda: self._gone(server))
        self._servers[server] = None
        self._tasks.start(self._serve(server, connection), name="stream")

    async def _serve(self, server: BrokerServer, connection: socket.socket) -> None:
        try:
            await connect_stream(connection, server.driver)
        except OSError as error:
            logger.info("a stream of another process was lost: %s", error)
            self._gone(server)
        else:
            if self._listener is None:
                server.close()  # it was accepted before this left, which could not end it yet

    async def _all_gone(self) -> None:
        while self._servers:
            self._changed.clear()
            await self._changed.wait()

    def _gone(self, server: BrokerServer) -> None:
        self._servers.pop(server, None)
        self._changed.set()
