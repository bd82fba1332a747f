"""Answers of `$cbs` and `$management`: which link each goes to, and those that wait for its credit.

A request names by reply-to, or leaves to be found, the link its answer goes to; the answer carries the request's
message id, in the same AMQP type, as correlation id. Some clients grant credit one at a time and only when they ask,
so an answer waits here until its link has some.
"""

from __future__ import annotations

from collections import deque

from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.amqp.messaging.message import Message, MessageId
from hubweir.amqp.messaging.terminus import Target
from hubweir.amqp.transport.link import Link
from hubweir.amqp.transport.receiver_link import ReceiverLink
from hubweir.amqp.transport.sender_link import SenderLink
from hubweir.errors import RESOURCE_LIMIT

# A client that asks and never grants credit for the answers; real ones have a handful of requests under way.
HELD_RESPONSES_LIMIT = 256


def node_of(address: str | None) -> str:
    """The node part of an address, to compare: without scheme, host and outer slashes, in lower case."""
    text = address or ""
    if "://" in text:
        text = text.partition("://")[2].partition("/")[2]
    return text.strip("/").lower()


def correlation_of(request: Message) -> MessageId | None:
    """The correlation id that an answer to this request carries: its message id, type and all."""
    return None if request.properties is None else request.properties.message_id


class ResponseRoutes:
    """Server: where the answers of one connection go, and those that wait for credit."""

    def __init__(self) -> None:
        self._held: dict[SenderLink, deque[bytes]] = {}

    def reply_link(self, request: Message, request_link: ReceiverLink) -> SenderLink | None:
        """The link to answer on; None when the peer has none that could be meant.

        In this order: the one whose target address is the reply-to; whose name is the reply-to; the only one on the
        request's node in its session; the only one in its connection. A link that reads another node is never chosen.
        """
        node = node_of(_target_address(request_link))
        session = request_link.session
        everywhere = [link for other in session.connection.sessions for link in other.links if _answers_for(link, node)]
        candidates = [link for link in everywhere if isinstance(link, SenderLink)]
        reply_to = None if request.properties is None else request.properties.reply_to
        if reply_to is not None:
            for link in candidates:
                if _target_address(link) == reply_to:
                    return link
            for link in candidates:
                if link.name == reply_to:
                    return link
        in_session = [link for link in candidates if link.session is session]
        for group in (in_session, candidates):
            if len(group) == 1:
                return group[0]
        return None

    def respond(self, link: SenderLink, payload: bytes) -> None:
        """Send an encoded answer on link, behind those that wait; without credit it waits too.

        A link on which more than HELD_RESPONSES_LIMIT wait is detached: its client does not read.
        """
        held = self._held.setdefault(link, deque())
        held.append(payload)
        self.on_credit(link)
        if len(held) > HELD_RESPONSES_LIMIT:
            text = f"{HELD_RESPONSES_LIMIT} answers wait on this link; grant credit before asking more"
            self.forget(link)
            link.detach(AmqpError(condition=RESOURCE_LIMIT.symbol, description=text))

    def on_credit(self, link: SenderLink) -> None:
        """Send what waits as far as the credit goes; call it on CreditGranted, and after accept."""
        held = self._held.get(link)
        while held and link.sendable:
            link.send(held.popleft(), settled=link.presettled)
        if not held:
            self._held.pop(link, None)
            if link.drain:
                link.drained()

    def forget(self, link: Link) -> None:
        """Drop what waits for a link that is over."""
        if isinstance(link, SenderLink):
            self._held.pop(link, None)


def _answers_for(link: Link, node: str) -> bool:
    return link.is_attached and link.source is not None and node_of(link.source.address) == node


def _target_address(link: Link) -> str | None:
    return link.target.address if isinstance(link.target, Target) else None
