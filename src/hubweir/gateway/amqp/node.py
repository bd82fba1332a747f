"""Protocols between a node and the host of its connection.

A node is one attached link as the gateway sees it; the host calls it for everything that happens on that link. Which
node stands behind an address is open_node.py; the host itself, which nodes do not know, is connection_host.py.
"""

from __future__ import annotations

from typing import Protocol

from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.amqp.response_routes import ResponseRoutes
from hubweir.amqp.transport.events import DeliveriesReceived, OversizeReceived, Settled, TransactionalReceived
from hubweir.amqp.transport.link import Link
from hubweir.amqp.types.values import Symbol
from hubweir.auth.resource_scope import Scope
from hubweir.broker.commands.command import Owner
from hubweir.broker.commands.fragment import SessionLost
from hubweir.broker.commands.reader import ReaderClosed
from hubweir.errors import DETACH_FORCED, NOT_IMPLEMENTED, ServiceError
from hubweir.gateway.amqp.connection_claims import EXPIRED, ConnectionClaims, Lapse
from hubweir.gateway.amqp.joint_deliveries import JointDeliveries
from hubweir.gateway.amqp.transactions import Transactions
from hubweir.gateway.amqp.turn_settlements import TurnSettlements
from hubweir.gateway.amqp.turn_share import SharedConnection, TurnShare
from hubweir.gateway.brokers import BrokerClient
from hubweir.gateway.byte_budget import ConnectionBudget
from hubweir.gateway.refusals import What
from hubweir.namespace.rights import Rights


def gone(entity: str) -> ServiceError:
    """Why a link ends whose broker went away. Every official client attaches again."""
    return ServiceError(DETACH_FORCED, f"The broker of '{entity}' went away. Attach again.")


class NodeHost(SharedConnection, Protocol):
    """The host of a connection's nodes: what belongs to no single link."""

    owner: Owner
    peer: str
    claims: ConnectionClaims
    replies: ResponseRoutes
    budget: ConnectionBudget
    share: TurnShare
    transactions: Transactions
    settlements: TurnSettlements
    joint: JointDeliveries
    is_over: bool

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes of the links that stand, in the order of attaching."""

    def node_of(self, link: Link) -> Node | None:
        """The node of a link on which something happens; None when the link was refused, or is over."""

    def finish_later(self, node: Node) -> None:
        """Call node.finish once, when everything of this turn has happened."""

    def authorized(self) -> None:
        """A link stands or waits, or a request was answered, by right of a claim: the connection earned its socket."""

    def uses_readers(self) -> None:
        """A reader was opened for this connection; brokers are told when it ends."""

    def detach(self, node: Node, error: ServiceError) -> None:
        """End a link with an error; its node hears `closed`."""

    def refuse(self, node: Node, error: AmqpError) -> None:
        """Refuse an attach that a node took, and then found wrong."""

    def describe(self, what: What, error: ServiceError, *, entity: str = "") -> AmqpError:
        """The three-field error of a refusal, with the reference that people quote and that the log has.

        entity: the event hub's name.
        """


class Node:
    """One link's node. Every method may be called in any order after the attach, and none after `closed`.

    right, scope: what the connection must hold a claim for as long as the link stands; None where each request is
    checked by itself.
    """

    entity = ""  # the event hub that the link is for; requests name theirs
    further_scopes: tuple[Scope, ...] = ()  # for which the connection must hold a claim, too

    def __init__(self, host: NodeHost, link: Link, *, right: Rights | None = None, scope: Scope | None = None):
        self.host = host
        self.link = link
        self.right = right
        self.scope = scope
        self.last_used_ms = host.env.machine.monotonic_ms()
        self._covered_at = -1  # ConnectionClaims.changes when the claims were looked at
        self._covered_until_ms = 0

    def start(self) -> None:
        """The host knows the node: accept the attach now, or begin what leads to that."""
        self.link.accept()

    def deliveries(self, event: DeliveriesReceived) -> None:
        """Deliveries came on a link that brings them. event.data is valid only during the call."""

    def transactional(self, event: TransactionalReceived) -> None:
        """A delivery that is part of a transaction came. event.data is valid only during the call."""
        text = "Nothing can be sent here in a transaction: queues and topics know them."
        self.host.detach(self, ServiceError(NOT_IMPLEMENTED, text))

    def oversize(self, event: OversizeReceived) -> None:
        """A delivery over the limit came and was thrown away."""

    def credit(self) -> None:
        """The peer's credit, its wish to drain, or the session's window changed."""

    def settled(self, event: Settled) -> None:
        """The peer settled deliveries that we sent unsettled; the engine has answered where it waits for that."""

    def finish(self) -> None:
        """The turn ends, after `host.finish_later(self)`: say what was gathered."""

    def is_idle(self) -> bool:
        """True when the link is for events and nothing is under way on it: after a long silence it may be detached.

        Links of requests and of their answers stay as long as the peer wants them. Clients attach them once for a
        connection's life; several wait without end when $cbs is gone as they put their next token.
        """
        return False

    def stands_on(self, entity: str) -> bool:
        """Whether the link ends when this entity is removed. Readers do not say so: their broker ends them."""
        return False

    def reader_closed(self, broker: BrokerClient, push: ReaderClosed) -> None:
        """A broker ended a reader of this connection: when it is this link's, the link ends."""

    def session_lost(self, broker: BrokerClient, push: SessionLost) -> None:
        """A broker ended the lock of a session of this connection: when it is this link's, the link ends."""

    def broker_gone(self, broker: BrokerClient) -> None:
        """A broker went away: what this link had open there is over, and so is the link, when it was all that it had.

        What waited for an answer was refused before. The broker may be back by now, and knows nothing of it.
        """

    def catalog_changed(self) -> None:
        """Descriptions changed: end the link when it may not stand any more. Its claim is looked at by the host."""

    def recheck_claim(self, why: Lapse = EXPIRED) -> bool:
        """True while a claim covers the link, grace included; else the link is detached. why: what ended the claim."""
        if self.right is None or self.scope is None:
            return True
        claims = self.host.claims
        try:
            scopes = (self.scope, *self.further_scopes)
            self._covered_until_ms = min(claims.covered_until_ms(self.right, scope, why) for scope in scopes)
        except ServiceError as lapsed:
            self.host.detach(self, lapsed)
            return False
        self._covered_at = claims.changes
        return True

    def is_covered(self) -> bool:
        """As recheck_claim, for each read; claims are looked at only when they changed, or the link's own has ended."""
        host = self.host
        if self._covered_at == host.claims.changes and host.gateway.authorization.now_ms() < self._covered_until_ms:
            return True
        return self.recheck_claim()

    def closed(self) -> None:
        """The link is over, whoever ended it. Nothing may be sent on it any more."""


def attach_properties(link: Link) -> dict[Symbol, object]:
    """The properties of the peer's attach; empty when it sent none."""
    return {} if link.attach is None else link.attach.properties or {}
