"""What the gateways of one process share, and which of them a peer means: one gateway a namespace, the default first.

A peer names a host: in SASL, in `open`, in the Host header. A name that was given to a namespace (namespace/
host_names.py) leads there. Any other (an address, localhost) leaves it open, and the first token that is taken decides
then: a token belongs to the namespace of the host that it was made for; where that is nobody's, to the first namespace
that has a rule of its name there, else to the default one. No namespace takes a token that belongs to another.

Shared are the connections' numbers, since brokers know connections by them, the brokers' pushes, and budgets of bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hubweir.amqp.endpoint import Endpoint
from hubweir.amqp.transport.settings import EndpointSettings, Role
from hubweir.auth.refusal import AuthRefused
from hubweir.auth.resource_scope import Scope
from hubweir.auth.shared_access_signature import SharedAccessSignature, is_signature
from hubweir.broker.commands import ConfirmReaderClosed, Push, ReaderClosed
from hubweir.counters import Counters
from hubweir.env import Env
from hubweir.errors import CONNECTION_FORCED, ServiceError
from hubweir.gateway.amqp.connection_host import ConnectionHost
from hubweir.gateway.brokers import BrokerClient, Brokers
from hubweir.gateway.byte_budget import ProcessBudget
from hubweir.gateway.held_runs import HeldRuns
from hubweir.namespace.host_names import bare_host
from hubweir.namespace.resource_path import IllegalPath

if TYPE_CHECKING:  # a gateway is made with its process
    from hubweir.gateway.gateway import Gateway

# Of rules that hold for a whole namespace.
_EVERYWHERE = Scope("", ())


class GatewayProcess:
    """See the module's text. process_id tells this process's readers from those of others at a broker."""

    def __init__(
        self, env: Env, brokers: Brokers, *, budget_bytes: int, counters: Counters | None = None, process_id: int = 0
    ) -> None:
        self.env = env
        self.brokers = brokers
        self.counters = counters if counters is not None else Counters()
        self.process_id = process_id
        self.budget = ProcessBudget(budget_bytes)
        self.held_runs = HeldRuns()
        self.gateways: list[Gateway] = []
        self._connections: dict[int, ConnectionHost] = {}
        self._next_connection = 1
        self._on_all_closed: Callable[[], None] | None = None
        for broker in brokers:
            broker.listen(self._push_listener(broker))

    def add(self, gateway: Gateway) -> None:
        """One namespace more; the first is the default. Its names lead to no other (host_names.divide)."""
        self.gateways.append(gateway)

    # Whom a peer means

    @property
    def default(self) -> Gateway:
        """The namespace of who names none."""
        return self.gateways[0]

    def named(self, host: str) -> Gateway | None:
        """The namespace that a host, as a peer wrote it, leads to; None: it leads nowhere."""
        name = bare_host(host)
        return next((gateway for gateway in self.gateways if name in gateway.hosts.names), None)

    def of_rule(self, name: str, scope: Scope = _EVERYWHERE) -> Gateway:
        """The namespace that a rule belongs to where no host tells: the first that has it at the scope's path."""
        having = (gateway for gateway in self.gateways if gateway.authorization.has_rule(name, scope))
        return next(having, self.default)

    def of_signature(self, name: str, scope: Scope) -> Gateway:
        """The namespace that a token belongs to, good or not. name: of its rule; scope: what it was made for."""
        return self.named(scope.host) or self.of_rule(name, scope)

    def of_token(self, token: str, audience: str = "") -> Gateway:
        """The same for a token's text. audience: a URI that decides for tokens without a host (JSON Web Tokens)."""
        if is_signature(token):
            try:
                signature = SharedAccessSignature.parse(token, bare_hosts=self._hosts())
            except AuthRefused:
                return self.default  # which will say why
            return self.of_signature(signature.rule_name, signature.scope)
        try:
            return self.named(Scope.parse(audience).host) or self.default
        except IllegalPath:
            return self.default

    def _hosts(self) -> frozenset[str]:
        return frozenset(host for gateway in self.gateways for host in gateway.hosts.all)

    # Connections

    @property
    def connection_count(self) -> int:
        """How many connections there are, of all namespaces."""
        return len(self._connections)

    def new_connection(self, peer: str, host: str = "") -> tuple[Endpoint, ConnectionHost]:
        """An endpoint and a host for a connection that was accepted from peer (for logs). Give both to a driver.

        host: what the peer named before AMQP began (WebSockets); in AMQP it may name another.
        """
        known = self.default.settings
        settings = EndpointSettings(
            container_id=known.container_id,
            max_frame_size=known.max_frame_size_bytes,
            idle_timeout_ms=known.idle_timeout_ms,
            first_link_deadline_ms=known.unauthorized_connection_ms,
            linkless_timeout_ms=known.linkless_connection_ms,
            describe_error=lambda text: connection.gateway.describe(text),
            # Rights come by tokens on $cbs whatever SASL said; Azure's JavaScript client skips it when its connection
            # string holds a ready signature.
            sasl_may_be_left_out=True,
        )
        endpoint = Endpoint(Role.SERVER, settings, now_ms=self.env.monotonic_ms())
        connection_id = self._next_connection
        self._next_connection += 1
        connection = ConnectionHost(self, endpoint, connection_id, peer)
        self._connections[connection_id] = connection
        self.counters.add("gateway.connections_accepted")
        self.counters.set("gateway.connections", len(self._connections))
        connection.choice.named(host)
        return endpoint, connection

    def connection_ended(self, host: ConnectionHost) -> None:
        """A host says that its connection is over."""
        self._connections.pop(host.owner.connection, None)
        self.counters.set("gateway.connections", len(self._connections))
        if not self._connections and self._on_all_closed is not None:
            on_all_closed, self._on_all_closed = self._on_all_closed, None
            on_all_closed()

    def close_all(self, on_done: Callable[[], None]) -> None:
        """Tell every peer that the service stops; on_done when the last connection is over. Clients connect again."""
        if not self._connections:
            on_done()
            return
        self._on_all_closed = on_done
        text = "The service is stopping. Connect again."
        for host in list(self._connections.values()):
            host.close(ServiceError(CONNECTION_FORCED, text))

    def _push_listener(self, broker: BrokerClient) -> Callable[[Push], None]:
        def pushed(push: Push) -> None:
            if isinstance(push, ReaderClosed) and push.owner.process == self.process_id:
                host = self._connections.get(push.owner.connection)
                if host is not None:
                    host.reader_closed(broker, push)
                # Asked now, it runs behind the flush that the detach asked for: the detach goes out first.
                self.env.call_soon(lambda: broker.submit(ConfirmReaderClosed(push.reader_id), _nothing))

        return pushed


def _nothing(answer: object) -> None:
    """The answer of a command that nobody waits for."""
