"""Hands over in one piece what receivers say of messages that one call sent to several links.

The ids of such deliveries follow each other, and receivers mostly settle them in their order, so that one disposition,
or a stretch of them that the engine joined, is about messages of hundreds of links. Where what is said can be refused
to none of them alone, nothing is done for each but to note that it was used. Otherwise each link is told what its own
receiver said.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Protocol

from msgspec import Struct

from hubweir.amqp.endpoint import Endpoint
from hubweir.amqp.messaging.outcome import Accepted, DeliveryState, Modified, Released
from hubweir.amqp.transport.events import Settled, SettledTogether
from hubweir.amqp.transport.link import Link
from hubweir.amqp.transport.serial_number import add_serial
from hubweir.amqp.transport.session import Session
from hubweir.gateway.amqp.sent_tokens import SentRange
from hubweir.gateway.amqp.settlements import Spoken, spoken_of
from hubweir.gateway.amqp.turn_settlements import SaidOnLink, SettlingUser, TurnSettlements
from hubweir.gateway.fragments import FragmentPlace
from hubweir.gateway.gateway import Gateway
from hubweir.queue.settle_outcome import TOKEN_BYTES


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


class _SentMessages(Struct, eq=False):
    """Messages of one fragment that one call sent: the node and the token of each."""

    place: FragmentPlace
    users: list[JointUser]
    tokens: bytes


class _SaidTogether(Struct, frozen=True, eq=False):
    """What receivers said of a range of deliveries that were sent by one call. See SaidPart.

    over_before: JointSettlements.over_count, when they said so.
    """

    joint: JointSettlements
    users: list[JointUser]
    sent: SentRange
    waits: bool
    over_before: int

    @property
    def session(self) -> Session | None:
        """See SaidPart."""
        if not self.waits or self.over_before != self.joint.over_count:
            return None
        session = self.users[0].link.session
        return session if session.is_writable else None

    def apart(self) -> Iterator[SaidOnLink]:
        """See SaidPart."""
        for user, its in _by_user(self.users, self.sent):
            yield SaidOnLink(user, its, self.waits)


class JointSettlements:
    """Those of one connection. over_count: how many of its receivers are over: those of others stand as they did.

    What is said of a link that is over is not told here: nothing that it sent is unsettled.
    """

    def __init__(self, connection: SettlingConnection) -> None:
        self._connection = connection
        self.over_count = 0

    def sent(self, place: FragmentPlace, users: list[JointUser], tokens: bytes) -> object:
        """The context of messages that one call sends, for `settled`: the node and the token of each."""
        return _SentMessages(place, users, tokens)

    def settled(self, event: SettledTogether) -> None:
        """Receivers settled messages that were sent by one call."""
        sent, connection = event.sent.context, self._connection
        assert isinstance(sent, _SentMessages)
        begin, end = event.sent.place_of(event.first_id), event.sent.place_of(event.last_id) + 1
        users = sent.users[begin:end]
        its = SentRange(event.first_id, event.last_id, sent.tokens[begin * TOKEN_BYTES : end * TOKEN_BYTES])
        spoken = _plainly_spoken(event.outcome)
        if spoken is None or connection.gateway.faults is not None:
            self._settled_apart(event, users, its)
            return
        said = _SaidTogether(self, users, its, not event.settled, self.over_count)
        connection.settlements.add(said, sent.place, spoken)
        now_ms = connection.endpoint.now_ms
        for user in users:
            user.last_used_ms = now_ms
            if user.lacks_room:
                user.go_on_later()

    def _settled_apart(self, event: SettledTogether, users: list[JointUser], sent: SentRange) -> None:
        """Tell each link what its receiver said: it may be refused, or end the link."""
        for user, its in _by_user(users, sent):
            if self._connection.node_of(user.link) is user:
                settled = Settled(user.link, its.first_id, its.last_id, event.outcome, event.settled)
                user.settled_ranges(settled, [its])


def _plainly_spoken(outcome: DeliveryState | None) -> Spoken | None:
    """What receivers said, where it is the same for all of their links, and nothing in it can be refused."""
    if outcome is not None and not isinstance(outcome, (Accepted, Released, Modified)):
        return None
    spoken = spoken_of(outcome)
    return spoken if spoken.details is None else None


def _by_user(users: list[JointUser], sent: SentRange) -> Iterator[tuple[JointUser, SentRange]]:
    """Deliveries that were sent together by the link that they were sent on: a range for each stretch of one link."""
    at = 0
    for user, its in groupby(users):
        begin, at = at, at + sum(1 for _ in its)
        ids = add_serial(sent.first_id, begin), add_serial(sent.first_id, at - 1)
        yield user, SentRange(*ids, sent.tokens[begin * TOKEN_BYTES : at * TOKEN_BYTES])
