"""Lines of the log about one connection: one when it opens, one when it ends, with what happened on it meanwhile.

It counts by turns and links, never by events: what came, once a turn; what went out, when its link ends.
"""

from __future__ import annotations

import logging

from hubweir.amqp.endpoint import Endpoint
from hubweir.amqp.transport.events import Closed
from hubweir.amqp.transport.sender_link import SenderLink
from hubweir.env import Env
from hubweir.gateway.amqp.node import Node
from hubweir.service_log import CONNECTION_CLOSED, CONNECTION_OPENED

logger = logging.getLogger(__name__)

NAMED = 5  # entities that the last line names


class ConnectionLines:
    """See the module's text. began_ms: as the machine's clock counts. received: deliveries that came; the host adds."""

    __slots__ = ("_connection", "_entities", "_env", "_links", "_peer", "_sent", "_why", "began_ms", "received")

    def __init__(self, env: Env, connection: int, peer: str) -> None:
        self.received = 0
        self._env = env
        self._connection = connection
        self._peer = peer
        self.began_ms = env.machine.monotonic_ms()
        self._links = self._sent = 0
        self._entities: dict[str, None] = {}  # a dict keeps the order of attaching; one more than are named at most
        self._why = "it was lost"

    def opened(self, endpoint: Endpoint, namespace: str) -> None:
        """The peer's open came, and was taken."""
        opened = endpoint.remote_open
        CONNECTION_OPENED.say(
            logger,
            connection=self._connection,
            peer=self._peer,
            namespace=namespace,
            container="" if opened is None else opened.container_id,
            client=endpoint.remote_product,
        )

    def attached(self, node: Node) -> None:
        """A link stands."""
        self._links += 1
        if node.entity and len(self._entities) <= NAMED:
            self._entities[node.entity] = None

    def link_over(self, node: Node) -> None:
        """A link that stood is over."""
        if isinstance(node.link, SenderLink):
            self._sent += node.link.deliveries

    def closing(self, event: Closed) -> None:
        """The engine says how the connection ended."""
        who = "the peer" if event.by_peer else "this service"
        if event.error is not None:
            self._why = f"{who} ended it with {event.error.condition}"
        elif event.by_peer:
            self._why = "the peer closed it" if event.clean else "the peer is gone without a close"
        else:
            self._why = "this service closed it"

    def closed(self) -> None:
        """The last line, behind the end of all links."""
        names = list(self._entities)
        CONNECTION_CLOSED.say(
            logger,
            connection=self._connection,
            peer=self._peer,
            seconds=(self._env.machine.monotonic_ms() - self.began_ms) / 1000,
            why=self._why,
            links=self._links,
            received=self.received,
            sent=self._sent,
            entities=", ".join(names[:NAMED]) + (" and others" if len(names) > NAMED else ""),
        )
