"""One connection: engine events in, node calls out.

The host holds what belongs to the connection and to nothing smaller: its claims, its byte budget, its nodes, its right
to a socket. A node is made for each link that the peer attaches and hears of everything on that link. Times that limit
it are in connection_deadlines.py. A link whose token lapsed is detached. A peer's fault ends no more than it must.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial

from hubweir.amqp.endpoint import Endpoint
from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.amqp.response_routes import ResponseRoutes
from hubweir.amqp.transport.events import (
    Closed,
    CreditGranted,
    DeliveriesReceived,
    Event,
    LinkAttached,
    LinkDetached,
    Opened,
    OversizeReceived,
    SaslInitiated,
    SessionEnded,
    Settled,
    SettledTogether,
    TransactionalReceived,
)
from hubweir.amqp.transport.link import Link
from hubweir.amqp.types.values import Symbol
from hubweir.broker.commands.broker_process import ConnectionTold
from hubweir.broker.commands.command import Owner, nobody_waits
from hubweir.broker.commands.fragment import SessionLost
from hubweir.broker.commands.process import CloseOwner
from hubweir.broker.commands.reader import ReaderClosed
from hubweir.drivers.amqp_driver import AmqpDriver, DriverHost
from hubweir.errors import DETACH_FORCED, SERVER_BUSY, STORE_OFFLINE, TIMED_OUT, ServiceError
from hubweir.gateway.amqp.connection_claims import ConnectionClaims, Lapse
from hubweir.gateway.amqp.connection_deadlines import ConnectionDeadlines
from hubweir.gateway.amqp.connection_lines import ConnectionLines
from hubweir.gateway.amqp.joint_deliveries import JointDeliveries
from hubweir.gateway.amqp.namespace_choice import ChoosingConnection, NamespaceChoice
from hubweir.gateway.amqp.node import Node, NodeHost
from hubweir.gateway.amqp.open_node import asked_entity, open_node
from hubweir.gateway.amqp.told_connection import told_connection
from hubweir.gateway.amqp.transactions import Transactions
from hubweir.gateway.amqp.turn_settlements import TurnSettlements
from hubweir.gateway.amqp.turn_share import TurnShare
from hubweir.gateway.brokers import BrokerClient
from hubweir.gateway.byte_budget import ConnectionBudget
from hubweir.gateway.faults import FORCED, FaultKind, Faults
from hubweir.gateway.gateway import Gateway
from hubweir.gateway.gateway_process import GatewayProcess
from hubweir.gateway.refusals import What

SASL_OK, SASL_REFUSED = 0, 1


class ConnectionHost(DriverHost, NodeHost, ChoosingConnection):
    """See the module's text. What driver, nodes and namespace call is told by their protocols; all on the loop."""

    def __init__(
        self,
        process: GatewayProcess,
        endpoint: Endpoint,
        connection_id: int,
        peer: str,
        *,
        on_over: Callable[[ConnectionHost], None],
    ) -> None:
        """on_over: told once, when the connection is over."""
        self._on_over = on_over
        self.gateway: Gateway = process.default  # until the choice is another
        self.limits, self.link_settings = process.limits, process.link_settings
        self.env = process.env
        self.endpoint = endpoint
        self.peer = peer
        self.owner = Owner(process.process_id, connection_id)
        self._lines = ConnectionLines(process.env, connection_id, peer)
        # Its parts know it weakly: so it is freed when its driver and the last answer have let it go.
        itself = weakref.proxy(self)
        self.choice = NamespaceChoice(self, process)
        self.claims = ConnectionClaims(self.choice, self.env, lambda why: itself.recheck_claims(why))
        self.replies = ResponseRoutes()
        self.budget = ConnectionBudget(self.limits.connection_budget_bytes, process.budget, itself)
        self.share = TurnShare(itself)
        self.transactions = Transactions(
            itself,
            limit_bytes=self.limits.connection_budget_bytes // 2,
            process=process.transactions_budget,
            endings=process.transaction_endings,
            tracer=process.tracer,
        )
        self.settlements = TurnSettlements(itself)
        self.joint = JointDeliveries(itself)
        self.writing_paused = False
        self.is_over = False
        self._deadlines = ConnectionDeadlines(itself)
        self._driver: AmqpDriver | None = None
        self.wake: Callable[[], None] = _nobody_writes  # its driver's, as long as it has one
        self._nodes: dict[Node, None] = {}  # a dict keeps the order of attaching
        self._finishing: dict[Node, None] = {}
        self._uses_readers = False
        self.gateway.connection_came(self)

    # What the driver calls

    def on_connected(self, driver: AmqpDriver) -> None:
        self._driver, self.wake = driver, driver.wake

    def on_event(self, event: Event) -> None:
        match event:
            case DeliveriesReceived():
                self._lines.received += event.count
                if (node := self.node_of(event.link)) is not None:
                    node.deliveries(event)
            case TransactionalReceived():
                self._lines.received += 1
                if (node := self.node_of(event.link)) is not None:
                    node.transactional(event)
            case CreditGranted():
                if (node := self.node_of(event.link)) is not None:
                    node.credit()
            case Settled():
                if (node := self.node_of(event.link)) is not None:
                    node.settled(event)
            case SettledTogether():
                self.joint.settlements.settled(event)
            case OversizeReceived():
                if (node := self.node_of(event.link)) is not None:
                    node.oversize(event)
            case LinkAttached():
                self._attached(event)
            case LinkDetached():
                if isinstance(event.link.context, Node):
                    self._forget(event.link.context)
            case SessionEnded():
                for node in self.nodes:
                    if node.link.session is event.session:
                        self._forget(node)
            case SaslInitiated():
                self._sasl_initiated(event)
            case Opened():
                self._opened(event)
            case Closed():
                self._lines.closing(event)
                self._end()

    def on_turn_end(self) -> None:
        if self.settlements.waiting:
            self.settlements.hand_over(self.gateway.faults)
        while self._finishing:
            nodes, self._finishing = list(self._finishing), {}
            for node in nodes:
                if node in self._nodes:
                    node.finish()

    def on_writing_paused(self) -> None:
        self.writing_paused = True
        self.share.paused(0 if self._driver is None else self._driver.unwritten_bytes)

    def on_writable(self) -> None:
        self.writing_paused = False
        self.share.writable()

    def on_closed(self) -> None:
        self._end()
        self._driver, self.wake = None, _nobody_writes

    # What nodes call

    @property
    def nodes(self) -> tuple[Node, ...]:
        return tuple(self._nodes)

    def node_of(self, link: Link) -> Node | None:
        node = link.context
        if not isinstance(node, Node):
            return None
        node.last_used_ms = self.endpoint.now_ms
        return node if self.gateway.faults is None else self._unless_struck(node, self.gateway.faults)

    def finish_later(self, node: Node) -> None:
        self._finishing[node] = None
        self.wake()

    def pause_reading(self) -> None:
        if self._driver is not None:
            self._driver.pause_reading()

    def resume_reading(self) -> None:
        if self._driver is not None:
            self._driver.resume_reading()

    def authorized(self) -> None:
        self._deadlines.authorized()

    def uses_readers(self) -> None:
        self._uses_readers = True

    def detach(self, node: Node, error: ServiceError) -> None:
        if node in self._nodes:
            self._forget(node)
            node.link.detach(self.describe(What.LINK, error, entity=node.entity))
            self.wake()

    def refuse(self, node: Node, error: AmqpError) -> None:
        if node in self._nodes:
            self._forget(node)
            node.link.refuse(error)
            self.gateway.counters["gateway.attaches_refused"] += 1
            self.wake()

    def describe(self, what: What, error: ServiceError, *, entity: str = "") -> AmqpError:
        # Official clients wait and try again when they are told of a server that is busy; of a store they know nothing.
        condition = SERVER_BUSY if error.condition is STORE_OFFLINE else error.condition
        # A link that stood and ends so, azure-servicebus for Python keeps: all that it sends there afterwards fails.
        if what is What.LINK and condition in (SERVER_BUSY, TIMED_OUT):
            condition = DETACH_FORCED
        symbol = condition.symbol
        described = self.gateway.refusals.describe(what, symbol, error.text, entity=entity, peer=self.peer)
        return AmqpError(condition=Symbol(symbol), description=described)

    def describe_fault(self, symbol: str, text: str) -> str:
        """What the peer sees of a fault of its own, which the engine found."""
        return self.gateway.refusals.describe(What.CONNECTION, symbol, text, peer=self.peer)

    def close(self, error: ServiceError) -> None:
        if not self.is_over:
            self.endpoint.close(self.describe(What.CONNECTION, error))
            self.wake()

    # What the gateway calls

    def reader_closed(self, broker: BrokerClient, push: ReaderClosed) -> None:
        """A broker ended a reader of this connection."""
        for node in self.nodes:
            node.reader_closed(broker, push)

    def session_lost(self, broker: BrokerClient, push: SessionLost) -> None:
        """A broker ended the lock of a session that a link of this connection holds."""
        for node in self.nodes:
            node.session_lost(broker, push)

    def broker_gone(self, broker: BrokerClient) -> None:
        """A broker went away, with all that this connection had open there."""
        for node in self.nodes:
            node.broker_gone(broker)

    def links_on(self, entity: str) -> list[Callable[[ServiceError], None]]:
        return [partial(self.detach, node) for node in self.nodes if node.stands_on(entity)]

    def moved_to(self, gateway: Gateway) -> None:
        self.gateway.connection_left(self)
        self.gateway = gateway
        gateway.connection_came(self)

    def catalog_changed(self) -> None:
        self.claims.recheck()
        for node in self.nodes:
            node.catalog_changed()

    def told(self) -> ConnectionTold:
        machine, is_tls = self.env.machine, self._driver is not None and self._driver.is_tls
        since_ms = machine.now_ms() - (machine.monotonic_ms() - self._lines.began_ms)
        return told_connection(
            self.owner, self.endpoint, self.nodes, self.claims.rules, peer=self.peer, is_tls=is_tls, since_ms=since_ms
        )

    # Engine events

    def _sasl_initiated(self, event: SaslInitiated) -> None:
        self.choice.named(event.hostname)
        try:
            self.claims.prove(event, self._driver)
            self.endpoint.answer_sasl(SASL_OK)
        except ServiceError as refusal:
            self.describe(What.SASL, refusal)  # for the log: the outcome of SASL has no text
            self.endpoint.answer_sasl(SASL_REFUSED)

    def _opened(self, event: Opened) -> None:
        refusal = self.choice.opened(event.open.hostname)
        if refusal is not None:
            self.close(refusal)
            return
        self._deadlines.begin()
        self._lines.opened(self.endpoint, self.gateway.settings.namespace)

    def _attached(self, event: LinkAttached) -> None:
        link = event.link
        try:
            node = open_node(self, link)
        except ServiceError as refusal:
            self.gateway.counters["gateway.attaches_refused"] += 1
            link.refuse(self.describe(What.ATTACH, refusal, entity=asked_entity(self, link)))
            return
        link.context = node
        self._nodes[node] = None
        self._lines.attached(node)
        node.start()

    # Inside

    def _unless_struck(self, node: Node, faults: Faults) -> Node | None:
        """The node, or None: a fault that a test ordered ended its link or its connection now."""
        if not node.entity:
            return node
        if faults.strikes(FaultKind.DROP) and self._driver is not None:
            self._driver.abort()
            return None
        if faults.strikes(FaultKind.DETACH):
            self.detach(node, FORCED)
            return None
        return node

    def recheck_claims(self, why: Lapse) -> None:
        """Detach the links that no claim covers any more."""
        for node in self.nodes:
            node.recheck_claim(why)

    def _forget(self, node: Node) -> None:
        if self._nodes.pop(node, self) is not self:
            node.link.context = None
            self._lines.link_over(node)
            node.closed()

    def _end(self) -> None:
        """The connection is over: every node ends, and brokers free its readers at once."""
        if self.is_over:
            return
        self.is_over = True
        self._deadlines.end()
        self.claims.close()
        self.share.close()
        for node in self.nodes:
            self._forget(node)
        if self._uses_readers:
            for broker in self.gateway.brokers:
                broker.submit(CloseOwner(self.owner), nobody_waits)
        self.budget.close()
        self.gateway.connection_left(self)
        self._lines.closed()
        self._on_over(self)


def _nobody_writes() -> None:
    """There is no transport yet, or no longer."""
