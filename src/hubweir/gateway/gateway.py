"""The gateway of one process: what its connections share, and how a connection comes to be.

The launcher builds it from a namespace, brokers and settings, and asks it for an endpoint and a host for each
connection that a listener accepts. Stopping is in three steps: no new connections (the launcher's), `close_all`, and
the brokers' own stop once every connection is gone.
"""

from __future__ import annotations

from collections.abc import Callable

from hubweir.amqp.endpoint import Endpoint
from hubweir.amqp.transport.settings import EndpointSettings, Role
from hubweir.broker.commands import ConfirmReaderClosed, Push, ReaderClosed
from hubweir.counters import Counters
from hubweir.env import Env
from hubweir.errors import CONNECTION_FORCED, NOT_FOUND, ServiceError
from hubweir.event_hub.event_hub import HubRouter
from hubweir.gateway.amqp.connection_host import ConnectionHost
from hubweir.gateway.append_queue import AppendQueue
from hubweir.gateway.authorization import Authorization
from hubweir.gateway.brokers import BrokerClient, Brokers
from hubweir.gateway.byte_budget import ProcessBudget
from hubweir.gateway.catalog_keeper import CatalogKeeper
from hubweir.gateway.directory import Directory
from hubweir.gateway.management import Management
from hubweir.gateway.namespace_units import NamespaceUnits
from hubweir.gateway.rule_management import RuleManagement
from hubweir.gateway.settings import GatewaySettings
from hubweir.namespace.error_text import Reference, entity_not_found, entity_uri, with_reference
from hubweir.namespace.event_hub_entry import EventHubEntry
from hubweir.namespace.namespace import Namespace


class Gateway:
    """See the module's text. process_id tells this process's readers from those of others at a broker."""

    def __init__(
        self,
        env: Env,
        namespace: Namespace,
        brokers: Brokers,
        settings: GatewaySettings,
        *,
        counters: Counters | None = None,
        process_id: int = 0,
    ) -> None:
        self.env = env
        self.namespace = namespace
        self.brokers = brokers
        self.settings = settings
        self.counters = counters if counters is not None else Counters()
        self.process_id = process_id
        self.directory = Directory(namespace, brokers, host_name=settings.host_name)
        hosts = None if settings.accept_any_host else frozenset((settings.host_name.lower(),))
        self.authorization = Authorization(
            namespace, self.directory, env, host_name=settings.host_name, hosts=hosts, issuer=settings.issuer
        )
        self.units = NamespaceUnits(
            env, namespace, brokers, cap_partitions=settings.partition_cap, units_max=settings.max_throughput_units
        )
        self.append_queue = AppendQueue(env.call_soon, self.units.append, run_limit_bytes=settings.run_limit_bytes)
        self.keeper = CatalogKeeper(namespace, brokers)
        self.keeper.on_removed = self._forget_hub
        self.management = Management(
            namespace, self.directory, self.keeper, self.units, capture_account=settings.capture_account
        )
        self.rules = RuleManagement(namespace, env, settings_rule=settings.settings_rule)
        self.process_budget = ProcessBudget(settings.process_budget_bytes)
        self._routers: dict[str, HubRouter] = {}
        self._connections: dict[int, ConnectionHost] = {}
        self._next_connection = 1
        self._on_all_closed: Callable[[], None] | None = None
        namespace.on_change(self._catalog_changed)
        for broker in brokers:
            broker.listen(self._push_listener(broker))

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    def new_connection(self, peer: str) -> tuple[Endpoint, ConnectionHost]:
        """An endpoint and a host for a connection that was accepted from peer (for logs). Give both to a driver."""
        settings = EndpointSettings(
            container_id=self.settings.container_id,
            max_frame_size=self.settings.max_frame_size_bytes,
            idle_timeout_ms=self.settings.idle_timeout_ms,
            first_link_deadline_ms=self.settings.unauthorized_connection_ms,
            linkless_timeout_ms=self.settings.linkless_connection_ms,
            describe_error=self._describe,
            # Rights come by tokens on $cbs whatever SASL said; Azure's JavaScript client skips it when its connection
            # string holds a ready signature.
            sasl_may_be_left_out=True,
        )
        endpoint = Endpoint(Role.SERVER, settings, now_ms=self.env.monotonic_ms())
        connection_id = self._next_connection
        self._next_connection += 1
        host = ConnectionHost(self, endpoint, connection_id, peer)
        self._connections[connection_id] = host
        self.counters.add("gateway.connections_accepted")
        self.counters.set("gateway.connections", len(self._connections))
        return endpoint, host

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

    def router(self, hub: str) -> HubRouter:
        """The routing half of a hub, one for all links of this process, so that turns are shared."""
        description = self.directory.hub(hub).description
        router = self._routers.get(description.name)
        if router is None or router.partition_count != description.partition_count:
            router = self._routers[description.name] = HubRouter(description.partition_count)
        return router

    def _catalog_changed(self) -> None:
        """Rules, keys or publishers may have changed: links that may not stand any more end now. Units too."""
        self.units.catalog_changed()
        for host in list(self._connections.values()):
            host.catalog_changed()

    def _forget_hub(self, entry: EventHubEntry) -> None:
        """A hub was removed: what is held of its partitions goes too."""
        self._routers.pop(entry.name, None)
        for placement in entry.placements:
            self.append_queue.forget(placement.log_id)
        gone = ServiceError(NOT_FOUND, entity_not_found(entity_uri(self.settings.host_name, entry.name)))
        for host in list(self._connections.values()):
            host.hub_removed(entry.name, gone)

    def _describe(self, text: str) -> str:
        """The text of an error that the engine makes, with the reference that people quote."""
        tracker = f"{self.settings.namespace}:gateway{self.process_id}"
        return with_reference(text, Reference(self.env.new_id(), tracker, self.env.now_ms()))

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
