"""Ends a connection that holds no authorised link in time, and detaches links for events on which nothing happens.

What the engine limits (header, open, first link, close) is amqp/deadlines.py; the numbers are limits.py. All of them
go by the machine's time.
"""

from __future__ import annotations

from typing import Protocol

from hubweir.env import Env, Timer
from hubweir.errors import CONNECTION_FORCED, DETACH_FORCED, ServiceError
from hubweir.gateway.amqp.node import Node
from hubweir.limits import GatewayLimits

# Idle links are looked for this often in the time that a link may be idle.
LOOKS = 4


class TimedConnection(Protocol):
    """The connection that is limited; see NodeHost."""

    env: Env
    limits: GatewayLimits

    @property
    def nodes(self) -> tuple[Node, ...]: ...

    def detach(self, node: Node, error: ServiceError) -> None: ...

    def close(self, error: ServiceError) -> None: ...


class ConnectionDeadlines:
    """Of one connection, from its open on."""

    def __init__(self, connection: TimedConnection) -> None:
        self._connection = connection
        self._until_authorized: Timer | None = None
        self._until_look: Timer | None = None

    def begin(self) -> None:
        """The connection was opened."""
        connection = self._connection
        delay_ms = connection.limits.unauthorized_connection_ms
        self._until_authorized = connection.env.machine.call_later(delay_ms, self._end_unauthorized)
        self._look_later()

    def authorized(self) -> None:
        """The connection has shown a right, and keeps its socket."""
        if self._until_authorized is not None:
            self._until_authorized.cancel()
            self._until_authorized = None

    def end(self) -> None:
        """The connection is over."""
        self.authorized()
        if self._until_look is not None:
            self._until_look.cancel()
            self._until_look = None

    def _end_unauthorized(self) -> None:
        seconds = self._connection.limits.unauthorized_connection_ms // 1000
        text = (
            f"The connection held no authorised link for {seconds} s after it was opened. Put a token on $cbs and "
            "attach a link, then keep it."
        )
        self._connection.close(ServiceError(CONNECTION_FORCED, text))

    def _look_later(self) -> None:
        connection = self._connection
        self._until_look = connection.env.machine.call_later(connection.limits.idle_link_ms // LOOKS, self._look)

    def _look(self) -> None:
        """Detach links for events on which nothing happened for too long, and that wait for nothing."""
        connection = self._connection
        idle_ms = connection.limits.idle_link_ms
        before_ms = connection.env.machine.monotonic_ms() - idle_ms
        for node in connection.nodes:
            if node.last_used_ms <= before_ms and node.is_idle():
                text = f"The link was idle for {idle_ms // 1_000} s; attach again to go on."
                connection.detach(node, ServiceError(DETACH_FORCED, text))
        self._look_later()
