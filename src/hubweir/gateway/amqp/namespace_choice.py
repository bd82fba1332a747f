"""Chooses the namespace of a connection: by the host that the peer named, else by its first good token.

Until one of the two decides, it counts as the default one's. A host that the peer names later counts more (`open` more
than SASL, SASL more than the Host header of a WebSocket), until something was proved: from then on a connection stays
with its namespace. (gateway/gateway_process.py has the rule.)
"""

from __future__ import annotations

import weakref
from functools import partial
from typing import Protocol

from hubweir.env import Env
from hubweir.errors import NOT_ALLOWED, RESOURCE_LIMIT, ServiceError
from hubweir.gateway.gateway import Gateway, GatewayConnection
from hubweir.gateway.gateway_process import GatewayProcess
from hubweir.namespace.host_names import bare_host
from hubweir.namespace.secret import Secret


class ChoosingConnection(GatewayConnection, Protocol):
    """The connection that the choice is for."""

    env: Env
    gateway: Gateway

    def moved_to(self, gateway: Gateway) -> None:
        """The connection belongs to this namespace from now on."""

    def close(self, error: ServiceError) -> None:
        """End the connection with an error, as a stopping service does."""


class NamespaceChoice:
    """Of one connection. Keeps its gateway to what was decided."""

    def __init__(self, connection: ChoosingConnection, process: GatewayProcess) -> None:
        self._known = weakref.ref(connection)
        self._process = process
        self._is_decided = False
        self._is_proved = False

    @property
    def _connection(self) -> ChoosingConnection:
        connection = self._known()
        assert connection is not None, "whoever asks holds the connection"
        return connection

    @property
    def gateway(self) -> Gateway:
        """The namespace that the connection counts as by now."""
        return self._connection.gateway

    def named(self, hostname: str | None) -> None:
        """The peer says what it wants to reach, before anything was proved; None or "": it does not say."""
        gateway = self._process.named(hostname or "")
        if gateway is not None:
            self._is_decided = True
            self._take(gateway)

    def opened(self, hostname: str | None) -> ServiceError | None:
        """The peer's `open` says it again. An error: why the connection must end."""
        if not self._is_proved:
            self.named(hostname)
        elif hostname and bare_host(hostname) not in self.gateway.hosts:
            return _not_here(hostname)
        return self._over_quota()

    def of_rule(self, name: str, hostname: str | None) -> Gateway:
        """The namespace in which SASL may prove a rule's rights; ServiceError NOT_ALLOWED when none has the host."""
        return self._checked(self.gateway if self._is_decided else self._process.of_rule(name), hostname)

    def of_key(self, name: str, key: Secret, hostname: str | None) -> Gateway:
        """As of_rule, of a rule whose key the peer shows."""
        return self._checked(self.gateway if self._is_decided else self._process.of_key(name, key), hostname)

    def _checked(self, gateway: Gateway, hostname: str | None) -> Gateway:
        if hostname and bare_host(hostname) not in gateway.hosts:
            raise _not_here(hostname)
        return gateway

    def of_token(self, token: str, audience: str = "") -> Gateway:
        """The namespace that is to judge a token."""
        return self.gateway if self._is_decided else self._process.of_token(token, audience)

    def proved(self, gateway: Gateway) -> None:
        """This namespace took a token, or SASL's proof: the connection is its own from now on.

        Where that is news to its quota, the connection may end for it, behind the answer.
        """
        self._is_decided = self._is_proved = True
        if gateway is not self.gateway:
            self._take(gateway)
            excess = self._over_quota()
            if excess is not None:
                self._connection.env.call_soon(partial(self._connection.close, excess))

    def _over_quota(self) -> ServiceError | None:
        """Why the connection must end, when its namespace has more than its quota."""
        gateway = self.gateway
        most = gateway.settings.profile.connections
        if most is None or gateway.connection_count <= most:
            return None
        text = f"The namespace has {most} connections, which is its quota; close one, then connect again."
        return ServiceError(RESOURCE_LIMIT, text)

    def _take(self, gateway: Gateway) -> None:
        connection = self._connection
        if gateway is not connection.gateway:
            connection.moved_to(gateway)


def _not_here(hostname: str) -> ServiceError:
    text = (
        f"The host '{bare_host(hostname)[:128]}' does not lead to the namespace for which this connection has proved "
        "rights. Use a connection of its own for each namespace."
    )
    return ServiceError(NOT_ALLOWED, text)
