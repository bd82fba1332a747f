"""Serves one namespace: catalog, authorization, throughput units and quotas, for the connections opened to it.

A start builds one for each namespace, on one process (gateway_process.py), which has what they share and says
which of them a peer means. Nodes and handlers of requests know their gateway alone, so nothing of one namespace reaches
another.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from itertools import islice
from typing import Protocol

from hubweir.alarms import Alarms
from hubweir.auth.shared_access_signature import SharedAccessSignature
from hubweir.broker.commands.broker_process import ConnectionTold, ProcessCommand
from hubweir.broker.commands.command import Answer, Owner
from hubweir.broker.commands.fragment import EnqueueMessages
from hubweir.broker.commands.partition import AppendEvents
from hubweir.counters import Counters
from hubweir.env import Env
from hubweir.errors import NOT_FOUND, ServiceError
from hubweir.event_hub.hub_router import HubRouter
from hubweir.gateway.append_queue import AppendQueue, PendingAppend, Taker
from hubweir.gateway.authorization import Authorization
from hubweir.gateway.brokers import BrokerClient, Brokers
from hubweir.gateway.byte_budget import ProcessBudget
from hubweir.gateway.catalog_keeper import CatalogKeeper
from hubweir.gateway.directory import Directory
from hubweir.gateway.entity_traffic import NamespaceTraffic
from hubweir.gateway.entity_uses import EntityUses
from hubweir.gateway.faults import Faults
from hubweir.gateway.forwarder import Forwarder
from hubweir.gateway.fragment_choice import FragmentChoice
from hubweir.gateway.held_runs import HeldRuns
from hubweir.gateway.idle_deletions import IdleDeletions
from hubweir.gateway.keeper.followed_namespace import FollowedNamespace
from hubweir.gateway.keeper.keeper import Keeper
from hubweir.gateway.keeper.lent_units import LentUnits
from hubweir.gateway.keeper.uses_everywhere import UsesEverywhere
from hubweir.gateway.management_rate import ManagementRate
from hubweir.gateway.management_view import ManagementView
from hubweir.gateway.namespace_management import NamespaceManagement
from hubweir.gateway.namespace_units import NamespaceUnits
from hubweir.gateway.receive_slots import ReceiveSlots
from hubweir.gateway.refusals import Refusals
from hubweir.gateway.rule_management import RuleManagement
from hubweir.gateway.service_orders import Orders
from hubweir.gateway.settings import GatewaySettings, LinkSettings
from hubweir.gateway.subscription_rule_management import SubscriptionRuleManagement
from hubweir.gateway.tracing import Tracer
from hubweir.limits import GatewayLimits
from hubweir.metrics import ACTIVE_CONNECTIONS, Samples
from hubweir.namespace.catalog_writer import CatalogWriter
from hubweir.namespace.entity import AnyEntity, Entity
from hubweir.namespace.error_text import entity_not_found, entity_uri
from hubweir.namespace.host_names import HostNames
from hubweir.namespace.messaging_description import MessagingDescription, storage_of

EndLink = Callable[[ServiceError], None]
# Asks another process of the service, by its index; None: it does not answer in time.
AskOther = Callable[[int, ProcessCommand], Awaitable[Answer | None]]
# To end a link takes 40 us, and a hub may have thousands.
ENDED_AT_ONCE = 64


class GatewayConnection(Protocol):
    """A connection, for the namespace whose own it is. owner: which connection of the process it is."""

    owner: Owner

    def catalog_changed(self) -> None:
        """Rules, keys or descriptions changed: links that may not stand any more end now."""

    def links_on(self, entity: str) -> list[EndLink]:
        """What ends each of its links that stand on an entity; it does nothing when the link has ended already."""

    def close(self, error: ServiceError) -> None:
        """End the connection with an error."""

    def told(self) -> ConnectionTold:
        """How it is, for people who ask."""


class SharedProcess(Protocol):
    """What a gateway shares with the others of its process, and how they tell whose a token is."""

    env: Env
    brokers: Brokers
    counters: Counters
    alarms: Alarms
    process_id: int
    limits: GatewayLimits
    link_settings: LinkSettings
    budget: ProcessBudget
    held_runs: HeldRuns
    large_turns: HeldRuns
    receive_slots: ReceiveSlots
    supervisor: BrokerClient | None
    orders: Orders | None
    tracer: Tracer | None
    processes: int
    index: int
    ask_other: AskOther
    gateways: list[Gateway]
    namespaces: NamespaceManagement | None

    @property
    def default(self) -> Gateway:
        """The namespace for connections that name none."""

    def add_gateway(self, gateway: Gateway) -> None:
        """One namespace more; the first is the default. Its names lead to no other (host_names.divide)."""

    def named(self, host: str) -> Gateway | None:
        """The namespace that a host, as a peer wrote it, leads to; None: it leads nowhere."""

    def of_signature(self, token: SharedAccessSignature) -> Gateway:
        """The namespace that a token belongs to, good or not."""


class Gateway:
    """See the module's text. Adds itself to its process."""

    def __init__(
        self, process: SharedProcess, source: CatalogWriter | FollowedNamespace, settings: GatewaySettings
    ) -> None:
        """source: of the namespace's catalog. A writer is from now on used by the gateway's keeper alone; a namespace
        that is followed has its keeper in another process.
        """
        env, brokers, namespace, limits = process.env, process.brokers, source.namespace, process.limits
        self.process = process
        self.env = env
        self.namespace = namespace
        self.brokers = brokers
        self.settings = settings
        self.max_message_size_bytes = settings.max_message_size_bytes(limits)
        self.counters = process.counters
        self.refusals = Refusals(
            env,
            namespace=settings.namespace,
            process_id=process.process_id,
            kind_of=namespace.kind_of,
        )
        self.hosts = settings.known_hosts
        self.directory = Directory(namespace, brokers, host_name=settings.host_name)
        self.authorization = Authorization(
            namespace, env, host_name=settings.host_name, hosts=self.hosts, issuer=settings.issuer,
            is_ours=lambda token: process.of_signature(token) is self,
        )  # fmt: skip
        self._routers: dict[str, HubRouter] = {}
        self._choices: dict[str, FragmentChoice] = {}  # by the ids of entities
        self._connections: dict[int, GatewayConnection] = {}
        self.traffic = NamespaceTraffic(namespace)
        self.uses = EntityUses(env)
        self.uses_everywhere = UsesEverywhere(env, self.uses)
        self.keeper: Keeper
        self.units: NamespaceUnits | LentUnits
        self.idle_deletions: IdleDeletions | None = None
        if isinstance(source, FollowedNamespace):
            self.keeper = source
            source.unused_ms = self.uses.unused_ms
            self.units = LentUnits(
                env,
                source,
                limits=limits,
                connections=lambda: len(self._connections),
                has_connection_quota=settings.profile.connections is not None,
                processes=process.processes,
            )
        else:
            self.keeper = keeper = CatalogKeeper(source, brokers, env)
            self.idle_deletions = IdleDeletions(env, namespace, self.directory, keeper, self.uses_everywhere)
            self.units = NamespaceUnits(env, namespace, keeper, brokers, limits=limits, alarms=process.alarms)
        self.keeper.on_removed = self._forget
        self.forwarder = Forwarder(env, namespace, self.directory, brokers, Owner(process.process_id, -1))
        self.forwarder.tracer = process.tracer
        run_limit_bytes = process.link_settings.run_limit_bytes
        self.append_queue: AppendQueue[AppendEvents] = AppendQueue(
            env, self.units.append, run_limit_bytes=run_limit_bytes, latency=self.counters.send, tracer=process.tracer
        )
        # Throughput units are of event hubs: what goes to queues is charged nowhere.
        self.enqueue_queue = AppendQueue(
            env,
            _enqueue,
            run_limit_bytes=run_limit_bytes,
            names_keys=False,
            latency=self.counters.send,
            tracer=process.tracer,
        )
        self.faults: Faults | None = None  # that a test ordered
        self.management = ManagementView(namespace, self.directory)
        self.management_rate = ManagementRate(settings.profile.management_reads_per_second, now_ms=env.monotonic_ms())
        self.subscription_rules = SubscriptionRuleManagement(self.keeper)
        self.rules = RuleManagement(namespace, self.keeper, env, settings_rule=settings.settings_rule)
        namespace.on_change(self._catalog_changed)
        if settings.issuer is not None:
            settings.issuer.on_change(self._catalog_changed)
        process.add_gateway(self)

    @property
    def name(self) -> str:
        """Of the namespace."""
        return self.settings.namespace

    @property
    def connection_count(self) -> int:
        """How many connections are this namespace's, those of other processes as of the newest lease of units."""
        return self.own_connection_count + self.units.other_connections

    @property
    def own_connection_count(self) -> int:
        """How many connections of this process are the namespace's."""
        return len(self._connections)

    def measure(self, samples: Samples) -> Iterator[None]:
        """Say what this process does for the namespace, a part of it a step, as Broker.measure."""
        name = self.settings.namespace
        samples[ACTIVE_CONNECTIONS][name,] += self.own_connection_count
        yield from self.traffic.measure(samples)

    def connection_came(self, connection: GatewayConnection) -> None:
        """A connection is this namespace's from now on."""
        self._connections[connection.owner.connection] = connection

    def connection_left(self, connection: GatewayConnection) -> None:
        """A connection is over, or another namespace's."""
        self._connections.pop(connection.owner.connection, None)

    def told_connections(self, skipped: int, count: int) -> tuple[ConnectionTold, ...]:
        """Some of this process's, the oldest first."""
        return tuple(each.told() for each in islice(self._connections.values(), skipped, skipped + count))

    def lead_here(self, hosts: HostNames) -> None:
        """Other hosts lead here from now on: namespaces came or went."""
        self.hosts = self.authorization.hosts = hosts

    def end(self) -> None:
        """The namespace is served no more: its connections end, and nothing begins by itself. Its keeper goes on."""
        gone = ServiceError(NOT_FOUND, f"The namespace '{self.settings.namespace}' was deleted.")
        for connection in list(self._connections.values()):
            connection.close(gone)
        if self.idle_deletions is not None:
            self.idle_deletions.stop()
        if self.settings.issuer is not None:
            self.settings.issuer.forget(self._catalog_changed)
        self.forwarder.stop()
        self.units.end()

    def router(self, hub: str) -> HubRouter:
        """The routing half of a hub, one for all links of this process, so that turns are shared."""
        description = self.directory.hub(hub).description
        router = self._routers.get(description.name)
        if router is None or router.partition_count != description.partition_count:
            router = self._routers[description.name] = HubRouter(description.partition_count)
        return router

    def fragment_choice(self, entity: Entity[MessagingDescription]) -> FragmentChoice | None:
        """Among the fragments of a queue or a topic, one for all that send to it; None: it has one fragment.

        ServiceError NOT_FOUND: the entity is gone.
        """
        fragments = self.directory.fragments(entity)
        if not fragments.is_partitioned:
            return None
        choice = self._choices.get(entity.entity_id)
        if choice is None:
            takes_ids = storage_of(entity.description).requires_duplicate_detection
            choice = FragmentChoice(self.env, fragments, self.enqueue_queue, takes_ids=takes_ids)
            self._choices[entity.entity_id] = choice
        return choice

    def order_faults(self, faults: Faults | None) -> None:
        """From now on these strike here; None: none do."""
        self.faults = faults
        append = self.units.append
        self.append_queue.append = append if faults is None else faults.around(append)
        self.enqueue_queue.append = _enqueue if faults is None else faults.around(_enqueue)

    def _catalog_changed(self) -> None:
        """Rules, keys or publishers may have changed: links that may not stand any more end now. Units too."""
        self.units.catalog_changed()
        if self.idle_deletions is not None:
            self.idle_deletions.catalog_changed()
        self.forwarder.catalog_changed()
        for connection in list(self._connections.values()):
            connection.catalog_changed()

    def _forget(self, entity: AnyEntity) -> None:
        """An entity was removed: what is held of its logs goes too.

        Links that send to it end, so that clients look for it again. (Readers have ended.)
        """
        self._routers.pop(entity.name, None)
        self.uses.forget(entity)
        self.traffic.forget(entity.description.name)
        for placement in entity.placements:
            self.append_queue.forget(placement.log_id)
            self.enqueue_queue.forget(placement.log_id)
        choice = self._choices.pop(entity.entity_id, None)
        if choice is not None:
            self.enqueue_queue.forget(choice.turn_id)
        gone = ServiceError(NOT_FOUND, entity_not_found(entity_uri(self.settings.host_name, entity.name)))
        # All that stand on it now; not those of an entity that gets its name before the last has ended.
        ends = deque(end for connection in self._connections.values() for end in connection.links_on(entity.name))
        self._end_links(ends, gone)

    def _end_links(self, ends: deque[EndLink], error: ServiceError) -> None:
        """Some of them now, those that are left in the next turn of the loop."""
        for _ in range(min(len(ends), ENDED_AT_ONCE)):
            ends.popleft()(error)
        if ends:
            self.env.call_soon(partial(self._end_links, ends, error))


def _enqueue(broker: Taker, command: EnqueueMessages, pending: PendingAppend) -> None:
    """Have a run of messages stored."""
    broker.submit(command, pending.answered)
