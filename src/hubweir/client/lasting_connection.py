"""Opens a connection on first use, reopens it after a failure, and retries operations on it.

An error that a retry can cure (`condition.retriable`) is met with a wait and another try, as often as the RetryPolicy
says; then it is raised.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from random import Random
from typing import TypeVar

from hubweir.client.connection import Connection
from hubweir.client.management import Management
from hubweir.client.retry import RetryPolicy
from hubweir.errors import ILLEGAL_STATE, ServiceError
from hubweir.namespace.connection_string import ConnectionString

T = TypeVar("T")


class LastingConnection:
    """What the senders and receivers of one client share. Everything on the loop that first uses it."""

    def __init__(
        self, target: ConnectionString, what: str, *, tls: ssl.SSLContext | None, retry: RetryPolicy, timeout_s: float
    ) -> None:
        """what: whose connection it is, for error texts. tls: None speaks plain AMQP. timeout_s: for each try."""
        self._target = target
        self._what = what
        self._tls = tls
        self._retry = retry
        self._timeout_s = timeout_s
        self._random = Random()
        self._connection: Connection | None = None
        self._management: Management | None = None
        self._mutex = asyncio.Lock()
        self._closed = False

    async def now(self) -> Connection:
        """The open connection; it is opened when there is none, or it ended. One try; ServiceError when it fails."""
        async with self._mutex:
            if self._closed:
                raise ServiceError(ILLEGAL_STATE, f"{self._what} is closed: make another one")
            if self._connection is not None and self._connection.error is None:
                return self._connection
            ended, self._connection, self._management = self._connection, None, None
            if ended is not None:
                await ended.close()
            self._connection = await Connection.open(self._target, tls=self._tls, timeout_s=self._timeout_s)
            return self._connection

    async def retried(
        self, step: Callable[[Connection], Awaitable[T]], *, final: tuple[type[ServiceError], ...] = ()
    ) -> T:
        """Do step on the connection of now, again while the RetryPolicy says so; not after one of `final`."""
        tried = 0
        while True:
            try:
                return await step(await self.now())
            except ServiceError as error:
                tried += 1
                if isinstance(error, final) or not self._retry.again(error, tried):
                    raise
            await asyncio.sleep(self._retry.wait_s(tried, self._random))

    def management(self, connection: Connection) -> Management:
        """The management of the namespace over this connection, which a step was given."""
        if self._management is None or self._management.connection is not connection:
            self._management = Management(connection)
        return self._management

    async def close(self) -> None:
        """Close the connection and with it every link. Safe to call twice."""
        self._closed = True
        async with self._mutex:
            if self._connection is not None:
                await self._connection.close()
