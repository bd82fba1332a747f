"""What every node promises its connection's host, and what it asks of that host.

A node is one attached link as the gateway sees it; the host calls it for everything that happens on that link. Which
node stands behind an address is open_node.py; the host itself, which nodes do not know, is connection_host.py.
"""

from __future__ import annotations

from typing import Protocol

from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.amqp.request_response import ResponseRoutes
from hubweir.amqp.transport.events import DeliveriesReceived, OversizeReceived
from hubweir.amqp.transport.link import Link
from hubweir.amqp.types.values import Symbol
from hubweir.auth.resource_scope import Scope
from hubweir.broker.commands import Owner
from hubweir.env import Env
from hubweir.errors import ServiceError
from hubweir.gateway.amqp.connection_claims import EXPIRED, ConnectionClaims, Lapse
from hubweir.gateway.amqp.turn_share import TurnShare
from hubweir.gateway.byte_budget import ConnectionBudget
from hubweir.gateway.gateway import Gateway
from hubweir.gateway.settings import GatewaySettings
from hubweir.namespace.rights import Rights


class NodeHost(Protocol):
    """What belongs to a connection and to no single link. gateway, settings: of the namespace that it is for."""

    env: Env
    gateway: Gateway
    settings: GatewaySettings
    owner: Owner
    peer: str
    claims: ConnectionClaims
    replies: ResponseRoutes
    budget: ConnectionBudget
    share: TurnShare
    writing_paused: bool
    is_over: bool

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes of the links that stand, in the order of attaching."""

    def wake(self) -> None:
        """Something was given to the engine outside of the driver's turn: let it be written."""

    def finish_later(self, node: Node) -> None:
        """Call node.finish once, when everything of this turn has happened."""

    def authorized(self) -> None:
        """A link stands, or a request was answered, by right of a claim: the connection has earned its socket."""

    def uses_readers(self) -> None:
        """A reader was opened for this connection; brokers are told when it ends."""

    def detach(self, node: Node, error: ServiceError, *, entity: str = "") -> None:
        """End a link with an error; its node hears `closed`. entity: the tracker's, here and below."""

    def detach_symbol(self, node: Node, symbol: str, text: str, *, entity: str = "") -> None:
        """As detach, for a reason that came from a broker."""

    def refuse(self, node: Node, error: AmqpError) -> None:
        """Refuse an attach that a node took, and then found wrong."""

    def describe(self, error: ServiceError, *, entity: str = "") -> AmqpError:
        """The three-field error of a refusal, with the reference that people quote."""

    def describe_symbol(self, symbol: str, text: str, *, entity: str = "") -> AmqpError:
        """As describe, for a refusal that came from a broker."""


class Node:
    """One link's node. Every method may be called in any order after the attach, and none after `closed`.

    right, scope: what the connection must hold a claim for as long as the link stands; None where each request is
    checked by itself.
    """

    def __init__(self, host: NodeHost, link: Link, *, right: Rights | None = None, scope: Scope | None = None):
        self.host = host
        self.link = link
        self.right = right
        self.scope = scope
        self.last_used_ms = host.env.monotonic_ms()

    def start(self) -> None:
        """The host knows the node: accept the attach now, or begin what leads to that."""
        self.link.accept()

    def deliveries(self, event: DeliveriesReceived) -> None:
        """Deliveries came on a link that brings them. event.data is valid only during the call."""

    def oversize(self, event: OversizeReceived) -> None:
        """A delivery over the limit came and was thrown away."""

    def credit(self) -> None:
        """The peer's credit, its wish to drain, or the session's window changed."""

    def finish(self) -> None:
        """The turn ends, after `host.finish_later(self)`: say what was gathered."""

    def is_idle(self) -> bool:
        """True when nothing is under way on this link, so that it may be detached after a long silence."""
        return False

    def catalog_changed(self) -> None:
        """Descriptions changed: end the link when it may not stand any more. Its claim is looked at by the host."""

    def hold(self, why: Lapse = EXPIRED) -> bool:
        """True while a claim covers the link, grace included; else the link is detached. why: what ended the claim."""
        lapsed = None
        if self.right is not None and self.scope is not None:
            lapsed = self.host.claims.lapsed(self.right, self.scope, why)
        if lapsed is not None:
            self.host.detach(self, lapsed)
        return lapsed is None

    def closed(self) -> None:
        """The link is over, whoever ended it. Nothing may be sent on it any more."""


def attach_properties(link: Link) -> dict[Symbol, object]:
    """The properties of the peer's attach; empty when it sent none."""
    return {} if link.attach is None else link.attach.properties or {}
