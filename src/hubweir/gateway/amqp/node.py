"""What every node promises the connection host.

A node is one attached link as the gateway sees it; the host calls it for everything that happens on that link. Which
node stands behind an address is open_node.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hubweir.amqp.transport.events import DeliveriesReceived, OversizeReceived
from hubweir.amqp.transport.link import Link
from hubweir.amqp.types.values import Symbol
from hubweir.auth.resource_scope import Scope
from hubweir.namespace.rights import Rights

if TYPE_CHECKING:  # hosts make nodes, nodes call their host
    from hubweir.gateway.amqp.connection_host import ConnectionHost


class Node:
    """One link's node. Every method may be called in any order after the attach, and none after `closed`.

    right, scope: what the connection must hold a claim for as long as the link stands; None where each request is
    checked by itself.
    """

    def __init__(self, host: ConnectionHost, link: Link, *, right: Rights | None = None, scope: Scope | None = None):
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

    def closed(self) -> None:
        """The link is over, whoever ended it. Nothing may be sent on it any more."""


def attach_properties(link: Link) -> dict[Symbol, object]:
    """The properties of the peer's attach; empty when it sent none."""
    return {} if link.attach is None else link.attach.properties or {}
