"""Messages that a fragment gives to links of one connection in a turn, written by one call for all these links.

A connection may have hundreds of links, each in a message session, and each gets a message in a turn. A link that can
send at once all that it is given takes part. What another one is given its part keeps, and its node goes on as ever.
What receivers say of messages that went out so is handed over by joint_settlements.py.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from typing import Protocol

from msgspec import Struct

from hubweir.amqp.transport.joint_send import send_jointly
from hubweir.amqp.transport.sender_link import SenderLink
from hubweir.amqp.transport.session import Session
from hubweir.broker.commands.fragment import MessagesGiven
from hubweir.gateway.amqp.joint_settlements import JointSettlements, SettlingConnection
from hubweir.gateway.amqp.kept_messages import name_partition
from hubweir.gateway.amqp.turn_share import SharedConnection, TurnShare
from hubweir.gateway.fragments import FragmentPlace
from hubweir.kernels import message_tokens
from hubweir.kernels.contract import MESSAGE_WIDTH, Q_RECORD


class GivenPart(Protocol):
    """The part of a link in a message session (receiver_part.py), while it has a receive outstanding.

    id_prefix, names_partition: as it sends messages itself.
    """

    place: FragmentPlace
    id_prefix: bytes
    names_partition: bool

    @property
    def link(self) -> SenderLink:
        """Its link."""

    def session_for(self, count: int) -> Session | None:
        """Where so many messages that it is given may go out now, past it: it keeps nothing that goes first.

        None: not all of them may.
        """

    def passed_on(self, count: int) -> None:
        """So many messages that it was given were sent on its link."""

    def keep(self, run: bytes, rows: array[int]) -> None:
        """Send these as soon as they may go."""


class JointConnection(SettlingConnection, SharedConnection, Protocol):
    """The connection whose links they are."""

    share: TurnShare


class _Given(Struct, frozen=True):
    """What parts are given that send on one session: rows from `first` on, of each part so many."""

    session: Session
    first: int
    parts: list[GivenPart]
    counts: array[int]


class JointDeliveries:
    """Those of one connection."""

    def __init__(self, connection: JointConnection) -> None:
        self._connection = connection
        self.settlements = JointSettlements(connection)
        self._parts: defaultdict[str, dict[int, GivenPart]] = defaultdict(dict)  # by log, and number of the receiver

    def expect(self, receiver_id: int, part: GivenPart) -> None:
        """This receiver may be given messages."""
        self._parts[part.place.log_id][receiver_id] = part

    def forget(self, receiver_id: int, place: FragmentPlace) -> None:
        """It is over, if there was one; what it was given is locked until its broker hears of that."""
        parts = self._parts[place.log_id]
        parts.pop(receiver_id, None)
        if not parts:
            del self._parts[place.log_id]

    def came(self, push: MessagesGiven) -> None:
        """Send what was given, or have it kept."""
        receivers, rows = array("q", push.receivers), array("q", push.rows)
        parts, many, first = self._parts.get(push.log_id, {}), len(receivers) // 2, 0
        one = next(iter(parts.values()), None)
        if one is not None and one.names_partition:  # all are of one fragment
            name_partition(rows, one.place.number)
        given: _Given | None = None  # what is to be sent next, by one call
        for receiver_id, count in zip(receivers[:many], receivers[many:], strict=True):
            part = parts.get(receiver_id)
            session = None if part is None else part.session_for(count)
            if given is not None and session is not given.session:
                self._send(given, push.run, rows)
                given = None
            if part is not None and session is None:
                _keep(part, push.run, rows, first, first + count)
            elif part is not None and session is not None:
                if given is None:
                    given = _Given(session, first, [], array("q"))
                given.parts.append(part)
                given.counts.append(count)
            first += count
        if given is not None:
            self._send(given, push.run, rows)
        self._connection.wake()

    def _send(self, given: _Given, run: bytes | memoryview, rows: array[int]) -> None:
        """Send what links of one session were given; what does not go out is kept."""
        parts, counts, at = given.parts, given.counts, given.first
        its = rows[at * MESSAGE_WIDTH : (at + sum(counts)) * MESSAGE_WIDTH]
        left, room = 0, self._connection.share.left_bytes(len(run))
        if room > 0:
            progress = send_jointly(
                [part.link for part in parts],
                counts,
                run,
                its,
                id_prefix=parts[0].id_prefix,
                tags=message_tokens(its, 0, len(its) // MESSAGE_WIDTH),
                max_bytes=room,
                context=parts[0].place,
            )
            left = progress.events
            self._count(parts[0], left, progress.bytes)
        for part, count in zip(parts, counts, strict=True):
            sent = min(left, count)
            if sent:
                part.passed_on(sent)
            if sent < count:
                _keep(part, run, rows, at + sent, at + count)
            at, left = at + count, left - sent

    def _count(self, part: GivenPart, messages: int, size: int) -> None:
        gateway = self._connection.gateway
        gateway.counters["gateway.messages_delivered"] += messages
        traffic = gateway.traffic.of(part.place.entity)
        traffic.messages_out += messages
        traffic.bytes_out += size


def _keep(part: GivenPart, run: bytes | memoryview, rows: array[int], first: int, last: int) -> None:
    """Have a part keep its messages rows[first:last]: their own records, and not those of all others."""
    own = rows[first * MESSAGE_WIDTH : last * MESSAGE_WIDTH]
    records = own[Q_RECORD::MESSAGE_WIDTH]  # nobody else's lie between them; one that was changed lies behind others
    begin, behind = min(records), max(records)
    end = behind + int.from_bytes(run[behind : behind + 4], "big")
    own[Q_RECORD::MESSAGE_WIDTH] = array("q", [at - begin for at in records])
    part.keep(bytes(run[begin:end]), own)
