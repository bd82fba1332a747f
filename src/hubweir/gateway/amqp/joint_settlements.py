"""Hands over in one piece what receivers say of messages that one call sent to several links.

The ids of such deliveries follow each other, and receivers mostly settle them in their order: one disposition, or many
that the engine joined, is about messages of hundreds of links. Where it says the same plain outcome of all, they go to
the broker together, and nothing is done for each link but to note that it was used and to let it go on. Told apart
first is what may be refused to one link alone (a transaction, properties to set) or is of a link that is over; and so
is an answer that is not the same for all.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Protocol, TypeVar, cast

from msgspec import Struct

from hubweir.amqp.endpoint import Endpoint
from hubweir.amqp.messaging.outcome import Accepted, DeliveryState, Modified, Released
from hubweir.amqp.transport.events import Settled, SettledTogether
from hubweir.amqp.transport.link import Link
from hubweir.amqp.transport.sender_link import SenderLink
from hubweir.amqp.transport.serial_number import add_serial
from hubweir.amqp.transport.session import Session
from hubweir.gateway.amqp.sent_tokens import SentRange
from hubweir.gateway.amqp.settlements import Spoken, spoken_of
from hubweir.gateway.amqp.turn_settlements import SaidOnLink, SettlingUser, TurnSettlements
from hubweir.gateway.fragments import FragmentPlace
from hubweir.gateway.gateway import Gateway
from hubweir.queue.settle_outcome import TOKEN_BYTES

Of = TypeVar("Of")


class JointUser(SettlingUser, Protocol):
    """The node of a link. last_used_ms: when something happened there, on the monotonic clock.

    lacks_room: more might be sent or asked for when some are settled: there is credit.
    """

    last_used_ms: int
    lacks_room: bool

    def settled_ranges(self, event: Settled, ranges: list[SentRange]) -> None:
        """The receiver settled what was sent on this link, which had these tokens."""

    def go_on_later(self) -> None:
        """Send or ask for more, when everything of this turn has happened."""


class SettlingConnection(Protocol):
    """The connection whose links they are. gateway: of its namespace."""

    endpoint: Endpoint
    gateway: Gateway
    settlements: TurnSettlements

    def node_of(self, link: Link) -> object:
        """The node of a link on which something happens; None when the link is over."""


class SaidTogether(Struct, frozen=True, eq=False):
    """What receivers said of deliveries that were sent by one call; see SaidPart. users: the nodes of the links."""

    links: list[SenderLink]
    users: list[JointUser]
    sent: SentRange
    waits: bool

    @property
    def session(self) -> Session | None:
        """See SaidPart."""
        session = self.links[0].session
        # The node of a link that is over is not its context any more.
        return session if session.is_writable and [link.context for link in self.links] == self.users else None

    def apart(self) -> Iterator[SaidOnLink]:
        """See SaidPart."""
        for user, its in _apart(self.users, self.sent):
            yield SaidOnLink(user, its, self.waits)


class JointSettlements:
    """Those of one connection."""

    def __init__(self, connection: SettlingConnection) -> None:
        self._connection = connection

    def settled(self, event: SettledTogether) -> None:
        """Receivers settled messages that were sent by one call, whose tags are their tokens."""
        sent, connection = event.sent, self._connection
        place, nodes = sent.context, [link.context for link in sent.links]
        assert isinstance(place, FragmentPlace)
        its, spoken = SentRange(sent.first_id, sent.last_id, sent.tags), _plainly_spoken(event.outcome)
        if spoken is None or connection.gateway.faults is not None or None in nodes:
            self._settled_apart(event, its)
            return
        users = cast("list[JointUser]", nodes)
        connection.settlements.add(SaidTogether(sent.links, users, its, not event.settled), place, spoken)
        now_ms = connection.endpoint.now_ms
        for user in users:
            user.last_used_ms = now_ms
            if user.lacks_room:
                user.go_on_later()

    def _settled_apart(self, event: SettledTogether, sent: SentRange) -> None:
        """Tell each link that stands what its receiver said."""
        for link, its in _apart(event.sent.links, sent):
            node = self._connection.node_of(link)
            if node is not None:
                settled = Settled(link, its.first_id, its.last_id, event.outcome, event.settled)
                cast(JointUser, node).settled_ranges(settled, [its])


def _plainly_spoken(outcome: DeliveryState | None) -> Spoken | None:
    """What receivers said, where it is the same for all of their links, and nothing in it can be refused."""
    if outcome is not None and not isinstance(outcome, (Accepted, Released, Modified)):
        return None
    spoken = spoken_of(outcome)
    return spoken if spoken.details is None else None


def _apart(of_each: list[Of], sent: SentRange) -> Iterator[tuple[Of, SentRange]]:
    """Deliveries that were sent together by the link (or its node) of each: a range for each stretch of one."""
    at = 0
    for one, its in groupby(of_each):
        begin, at = at, at + sum(1 for _ in its)
        ids = add_serial(sent.first_id, begin), add_serial(sent.first_id, at - 1)
        yield one, SentRange(*ids, sent.tokens[begin * TOKEN_BYTES : at * TOKEN_BYTES])
