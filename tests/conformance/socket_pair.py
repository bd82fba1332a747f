"""A broker client whose every command crosses a socket: for the run that shows that no object is shared by accident."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from hubweir.broker.broker import Broker
from hubweir.broker.commands import Answer, Command, Push
from hubweir.broker.server import BrokerServer
from hubweir.broker.socket_broker import SocketBroker


class SocketPairBroker:
    """Stands where InProcessBroker would: a BrokerServer and a SocketBroker around the two ends of a socket pair."""

    commands = 0  # of all pairs, so that a test can see that this was the way

    def __init__(self, broker: Broker) -> None:
        self._client = SocketBroker()
        self._server = BrokerServer(broker)
        broker.on_push = self._server.push
        self._waiting: list[Callable[[], None]] | None = []
        self._task = asyncio.get_running_loop().create_task(self._connect())

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        await loop.create_connection(self._server.driver, sock=theirs)
        await loop.create_connection(self._client.driver, sock=ours)
        waiting, self._waiting = self._waiting or [], None
        for submit in waiting:
            submit()

    def submit(self, command: Command, on_answer: Callable[[Answer], None]) -> None:
        SocketPairBroker.commands += 1
        if self._waiting is not None:
            self._waiting.append(lambda: self._client.submit(command, on_answer))
        else:
            self._client.submit(command, on_answer)

    def listen(self, on_push: Callable[[Push], None]) -> None:
        self._client.listen(on_push)
