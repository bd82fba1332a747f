"""Messages that a fragment gives to links of one connection in a turn, written by one call for all these links.

A connection may have hundreds of links, each in a message session, and each gets a message in a turn. A link that can
send at once all that it is given takes part. What another one is given its part keeps, and its node goes on as ever.
What receivers say of such messages is joint_settlements.py.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from itertools import groupby
from operator import attrgetter
from typing import Protocol

from msgspec import Struct

from hubweir.amqp.transport.joint_send import send_jointly
from hubweir.amqp.transport.session import Session
from hubweir.broker.commands.fragment import MessagesGiven
from hubweir.gateway.amqp.joint_settlements import JointSettlements, JointUser, SettlingConnection
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
    def user(self) -> JointUser:
        """The node of its link."""

    @property
    def passes_on(self) -> bool:
        """Whether what it is given may go out past it: it keeps nothing that goes first."""

    def passed_on(self, count: int) -> None:
        """So many messages that it was given were sent on its link."""

    def keep(self, run: bytes, rows: array[int]) -> None:
        """Send these as soon as they may go."""


class JointConnection(SettlingConnection, SharedConnection, Protocol):
    """The connection whose links they are."""

    share: TurnShare


class _Given(Struct, frozen=True):
    """What one part is given: rows from `first` on. part: None when its link is over."""

    part: GivenPart | None
    first: int
    count: int

    @property
    def session(self) -> Session | None:
        """Where all of it may go out now, as far as its link says."""
        part = self.part
        if part is None or not part.passes_on:
            return None
        link = part.user.link
        return link.session if link.takes(self.count) else None


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
        self.settlements.over_count += 1
        parts = self._parts[place.log_id]
        parts.pop(receiver_id, None)
        if not parts:
            del self._parts[place.log_id]

    def came(self, push: MessagesGiven) -> None:
        """Send what was given, or have it kept."""
        receivers, rows = array("q", push.receivers), array("q", push.rows)
        parts, many, first = self._parts.get(push.log_id, {}), len(receivers) // 2, 0
        given: list[_Given] = []
        for receiver_id, count in zip(receivers[:many], receivers[many:], strict=True):
            given.append(_Given(parts.get(receiver_id), first, count))
            first += count
        one = next(iter(parts.values()), None)
        if one is not None and one.names_partition:  # all are of one fragment
            name_partition(rows, one.place.number)
        for session, its in groupby(given, key=attrgetter("session")):
            if session is None:
                for each in its:
                    _keep(each, 0, push.run, rows)
            else:
                self._send(list(its), push.run, rows)
        self._connection.wake()

    def _send(self, given: list[_Given], run: bytes | memoryview, rows: array[int]) -> None:
        """Send what links of one session were given; what does not go out is kept."""
        parts = [each.part for each in given if each.part is not None]
        users = [part.user for part in parts]
        first, end = given[0].first, given[-1].first + given[-1].count
        its = rows[first * MESSAGE_WIDTH : end * MESSAGE_WIDTH]
        written = 0
        room = self._connection.share.left_bytes(len(run))
        if room > 0:
            of_each = [user for user, each in zip(users, given, strict=True) for _ in range(each.count)]
            progress = send_jointly(
                [user.link for user in users],
                array("q", [each.count for each in given]),
                run,
                its,
                id_prefix=parts[0].id_prefix,
                max_bytes=room,
                context=self.settlements.sent(parts[0].place, of_each, message_tokens(its, 0, len(of_each))),
            )
            written = progress.events
            self._count(parts[0], written, progress.bytes)
        left = written
        for part, each in zip(parts, given, strict=True):
            sent = min(left, each.count)
            if sent:
                part.passed_on(sent)
                left -= sent
            if sent < each.count:
                _keep(each, sent, run, rows)

    def _count(self, part: GivenPart, messages: int, size: int) -> None:
        gateway = self._connection.gateway
        gateway.counters["gateway.messages_delivered"] += messages
        traffic = gateway.traffic.of(part.place.entity)
        traffic.messages_out += messages
        traffic.bytes_out += size


def _keep(given: _Given, sent: int, run: bytes | memoryview, rows: array[int]) -> None:
    """Have a part keep what of its messages was not sent: their own records, and not those of all others."""
    if given.part is None:
        return
    own = rows[(given.first + sent) * MESSAGE_WIDTH : (given.first + given.count) * MESSAGE_WIDTH]
    records = own[Q_RECORD::MESSAGE_WIDTH]  # nobody else's lie between them; one that was changed lies behind others
    begin, last = min(records), max(records)
    end = last + int.from_bytes(run[last : last + 4], "big")
    own[Q_RECORD::MESSAGE_WIDTH] = array("q", [at - begin for at in records])
    given.part.keep(bytes(run[begin:end]), own)
