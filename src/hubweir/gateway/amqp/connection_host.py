"""One connection: engine events in, node calls out.

The host holds what belongs to the connection and to nothing smaller: its claims, its byte budget, its nodes, its right
to a socket. A node is made for each link that the peer attaches (open_node.py) and hears of everything on that link.
A connection that holds no authorised link a minute after open is ended, a link whose token lapsed is detached, and a
link for events that carried nothing for ten minutes too. What a peer does wrong ends no more than the protocol says.

Long because each event of a connection, and each request of its nodes, has its step here.
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
)
from hubweir.amqp.types.values import Symbol
from hubweir.broker.commands.command import Owner
from hubweir.broker.commands.process import CloseOwner
from hubweir.broker.commands.reader import ReaderClosed
from hubweir.drivers.amqp_driver import AmqpDriver
from hubweir.env import Timer
from hubweir.errors import CONNECTION_FORCED, DETACH_FORCED, ServiceError
from hubweir.gateway.amqp.connection_claims import ConnectionClaims, Lapse
from hubweir.gateway.amqp.consumer_node import ConsumerNode
from hubweir.gateway.amqp.namespace_choice import NamespaceChoice
from hubweir.gateway.amqp.node import Node
from hubweir.gateway.amqp.open_node import asked_entity, open_node
from hubweir.gateway.amqp.publisher_node import PublisherNode
from hubweir.gateway.amqp.turn_share import TurnShare
from hubweir.gateway.brokers import BrokerClient
from hubweir.gateway.byte_budget import ConnectionBudget
from hubweir.gateway.gateway import Gateway
from hubweir.gateway.gateway_process import GatewayProcess
from hubweir.gateway.refusals import What

SASL_OK, SASL_REFUSED = 0, 1


class ConnectionHost:
    """See the module's text. Implements the driver's DriverHost; all calls come on the loop."""

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
        # Its parts know it weakly: so it is freed when its driver and the last answer have let it go.
        itself = weakref.proxy(self)
        self.choice = NamespaceChoice(self, process)
        self.claims = ConnectionClaims(self.choice, self.env, lambda why: itself.hold_nodes(why))
        self.replies = ResponseRoutes()
        self.budget = ConnectionBudget(self.limits.connection_budget_bytes, process.budget, itself)
        self.share = TurnShare(itself)
        self.writing_paused = False
        self.is_over = False
        self._driver: AmqpDriver | None = None
        self._nodes: dict[Node, None] = {}  # a dict keeps the order of attaching
        self._finishing: dict[Node, None] = {}
        self._was_authorized = False
        self._uses_readers = False
        self._timers: dict[str, Timer] = {}
        self.gateway.connection_came(self)

    # What the driver calls

    def on_connected(self, driver: AmqpDriver) -> None:
        self._driver = driver

    def on_event(self, event: Event) -> None:
        step = _STEPS.get(type(event))
        if step is not None:
            step(self, event)

    def on_turn_end(self) -> None:
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
        self._driver = None

    # What nodes call: NodeHost says what each means

    @property
    def nodes(self) -> tuple[Node, ...]:
        return tuple(self._nodes)

    def wake(self) -> None:
        if self._driver is not None:
            self._driver.wake()

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
        self._was_authorized = True
        self._cancel("authorize")

    def uses_readers(self) -> None:
        self._uses_readers = True

    def detach(self, node: Node, error: ServiceError) -> None:
        self.detach_symbol(node, error.condition.symbol, error.text)

    def detach_symbol(self, node: Node, symbol: str, text: str) -> None:
        if node in self._nodes:
            self._forget(node)
            node.link.detach(self.describe_symbol(What.LINK, symbol, text, entity=node.entity))
            self.wake()

    def refuse(self, node: Node, error: AmqpError) -> None:
        if node in self._nodes:
            self._forget(node)
            node.link.refuse(error)
            self.gateway.counters.add("gateway.attaches_refused")
            self.wake()

    def describe(self, what: What, error: ServiceError, *, entity: str = "") -> AmqpError:
        return self.describe_symbol(what, error.condition.symbol, error.text, entity=entity)

    def describe_symbol(self, what: What, symbol: str, text: str, *, entity: str = "") -> AmqpError:
        described = self.gateway.refusals.describe(what, symbol, text, entity=entity, peer=self.peer)
        return AmqpError(condition=Symbol(symbol), description=described)

    def describe_fault(self, symbol: str, text: str) -> str:
        """What the peer sees of a fault of its own, which the engine found."""
        return self.gateway.refusals.describe(What.CONNECTION, symbol, text, peer=self.peer)

    def close(self, error: ServiceError) -> None:
        """End the connection with an error, as a stopping service does."""
        if not self.is_over:
            self.endpoint.close(self.describe(What.CONNECTION, error))
            self.wake()

    # What the gateway calls

    def reader_closed(self, broker: BrokerClient, push: ReaderClosed) -> None:
        """A broker ended a reader of this connection."""
        for node in self.nodes:
            if isinstance(node, ConsumerNode) and node.place.broker is broker and node.reader_id == push.reader_id:
                node.reader_closed(push)

    def senders_to(self, hub: str) -> list[Callable[[ServiceError], None]]:
        """What ends each link that sends to a hub."""
        publishers = (node for node in self.nodes if isinstance(node, PublisherNode))
        return [partial(self.detach, node) for node in publishers if node.hub == hub]

    def catalog_changed(self) -> None:
        """Rules, keys or descriptions changed: links that may not stand any more end now."""
        self.claims.recheck()
        for node in self.nodes:
            node.catalog_changed()

    # Engine events

    def _sasl(self, event: SaslInitiated) -> None:
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
        self._later("authorize", self.limits.unauthorized_connection_ms, self._end_unauthorized)
        self._later("idle", self.limits.idle_link_ms // 4, self._sweep_idle)

    def _attach(self, event: LinkAttached) -> None:
        link = event.link
        try:
            node = open_node(self, link)
        except ServiceError as refusal:
            self.gateway.counters.add("gateway.attaches_refused")
            link.refuse(self.describe(What.ATTACH, refusal, entity=asked_entity(self, link)))
            return
        link.context = node
        self._nodes[node] = None
        node.start()

    def _deliveries(self, event: DeliveriesReceived) -> None:
        node = event.link.context
        if isinstance(node, Node):
            node.last_used_ms = self.endpoint.now_ms
            node.deliveries(event)

    def _oversize(self, event: OversizeReceived) -> None:
        node = event.link.context
        if isinstance(node, Node):
            node.last_used_ms = self.endpoint.now_ms
            node.oversize(event)

    def _credit(self, event: CreditGranted) -> None:
        node = event.link.context
        if isinstance(node, Node):
            node.last_used_ms = self.endpoint.now_ms
            node.credit()

    def _settled(self, event: Settled) -> None:
        node = event.link.context
        if isinstance(node, Node):
            node.last_used_ms = self.endpoint.now_ms
            node.settled(event)

    def _detached(self, event: LinkDetached) -> None:
        node = event.link.context
        if isinstance(node, Node):
            self._forget(node)

    def _session_ended(self, event: SessionEnded) -> None:
        for node in self.nodes:
            if node.link.session is event.session:
                self._forget(node)

    def _closed(self, event: Closed) -> None:
        self._end()

    # Deadlines

    def _end_unauthorized(self) -> None:
        if not self._was_authorized:
            seconds = self.limits.unauthorized_connection_ms // 1000
            text = (
                f"The connection held no authorised link for {seconds} s after it was opened. Put a token on $cbs and "
                "attach a link, then keep it."
            )
            self.close(ServiceError(CONNECTION_FORCED, text))

    def _sweep_idle(self) -> None:
        """Detach links for events on which nothing happened for too long, and that wait for nothing."""
        before_ms = self.env.monotonic_ms() - self.limits.idle_link_ms
        for node in self.nodes:
            if node.last_used_ms <= before_ms and node.is_idle():
                seconds = self.limits.idle_link_ms // 1_000
                text = f"The link was idle for {seconds} s; attach again to go on."
                self.detach(node, ServiceError(DETACH_FORCED, text))
        self._later("idle", self.limits.idle_link_ms // 4, self._sweep_idle)

    # Inside

    def hold_nodes(self, why: Lapse) -> None:
        """Detach the links that no claim covers any more."""
        for node in self.nodes:
            node.hold(why)

    def _forget(self, node: Node) -> None:
        if self._nodes.pop(node, self) is not self:
            node.link.context = None
            node.closed()

    def _end(self) -> None:
        """The connection is over: every node ends, and brokers free its readers at once."""
        if self.is_over:
            return
        self.is_over = True
        for name in list(self._timers):
            self._cancel(name)
        self.claims.close()
        self.share.close()
        for node in self.nodes:
            self._forget(node)
        if self._uses_readers:
            for broker in self.gateway.brokers:
                broker.submit(CloseOwner(self.owner), _nothing)
        self.budget.close()
        self.gateway.connection_left(self)
        self._on_over(self)

    def _later(self, name: str, delay_ms: int, call: Callable[[], None]) -> None:
        self._cancel(name)
        self._timers[name] = self.env.call_later(delay_ms, call)

    def _cancel(self, name: str) -> None:
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()


def _nothing(answer: object) -> None:
    """The answer of a command that nobody waits for."""


_STEPS: dict[type, Callable[[ConnectionHost, object], None]] = {
    SaslInitiated: ConnectionHost._sasl,  # type: ignore[dict-item]  # each step takes the event of its row
    Opened: ConnectionHost._opened,  # type: ignore[dict-item]
    LinkAttached: ConnectionHost._attach,  # type: ignore[dict-item]
    LinkDetached: ConnectionHost._detached,  # type: ignore[dict-item]
    DeliveriesReceived: ConnectionHost._deliveries,  # type: ignore[dict-item]
    OversizeReceived: ConnectionHost._oversize,  # type: ignore[dict-item]
    CreditGranted: ConnectionHost._credit,  # type: ignore[dict-item]
    Settled: ConnectionHost._settled,  # type: ignore[dict-item]
    SessionEnded: ConnectionHost._session_ended,  # type: ignore[dict-item]
    Closed: ConnectionHost._closed,  # type: ignore[dict-item]
}
