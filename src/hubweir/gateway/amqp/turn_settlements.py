"""Gathers what the receivers of one connection settle in a turn: one command for each fragment and settlement.

A connection may have hundreds of links, each of which settles a message or two in a turn; their tokens go together, so
that the fragment looks them up, marks and logs them at once. When all of it is done, the links of a session hear it
together: ids of deliveries go on from link to link, so that few dispositions say it of many. Where a lock was lost, or
the broker refused, the answer is told apart by link again. What a receiver says beside its outcome (properties to set,
why a message is a dead letter) goes alone: a refusal of it is of its link.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from msgspec import Struct

from hubweir.amqp.transport.sender_link import SenderLink
from hubweir.amqp.transport.serial_number import MODULUS
from hubweir.amqp.transport.session import Session
from hubweir.broker.commands.command import Answer
from hubweir.broker.commands.fragment import MessagesSettled, SettleMessages
from hubweir.gateway.amqp.delivery_ranges import merge_ranges
from hubweir.gateway.amqp.sent_tokens import SentRange
from hubweir.gateway.amqp.settlements import Settling, Spoken
from hubweir.gateway.append_queue import DeliveryRange
from hubweir.gateway.faults import Faults
from hubweir.gateway.fragments import FragmentPlace
from hubweir.queue.settle_outcome import TOKEN_BYTES

# A command with as many tokens goes at once: of more, one link would hear late, and a broker would be kept for long.
TOGETHER_BYTES = 5_000 * TOKEN_BYTES


class SettlingUser(Protocol):
    """The node of the link that said so."""

    @property
    def link(self) -> SenderLink:
        """Its link, which hears of it as long as it stands."""

    def settlements_answered(self, settling: Settling, answer: Answer) -> None:
        """The broker's answer to its settlements, of which not all are done; may come within `hand_over`."""


class WritingConnection(Protocol):
    """The connection whose links they are."""

    wake: Callable[[], None]


class SaidPart(Protocol):
    """What was said of deliveries that were sent together, on one link or on several (joint_settlements.py)."""

    @property
    def sent(self) -> SentRange:
        """These deliveries."""

    @property
    def waits(self) -> bool:
        """Whether receivers want to hear what became of them."""

    @property
    def session(self) -> Session | None:
        """Where one answer is for all of them; None: some of their links are over."""

    def apart(self) -> Iterable[SaidOnLink]:
        """The same by link."""


class SaidOnLink(Struct, frozen=True):
    """What one link said of deliveries that it was sent together. waits: it wants to hear what became of them."""

    user: SettlingUser
    sent: SentRange
    waits: bool

    @property
    def session(self) -> Session | None:
        """See SaidPart."""
        link = self.user.link
        return link.session if link.is_attached else None

    def apart(self) -> tuple[SaidOnLink]:
        """See SaidPart."""
        return (self,)


@dataclass(slots=True)
class _Together:
    """Settlements that one command says, in the order of its tokens. size: of these."""

    connection: WritingConnection
    place: FragmentPlace
    spoken: Spoken
    said: list[SaidPart] = field(default_factory=list)
    size: int = 0

    def submit(self, faults: Faults | None) -> None:
        tokens = b"".join([each.sent.tokens for each in self.said])
        command = SettleMessages(self.place.log_id, tokens, self.spoken.outcome, self.spoken.details)
        on_answer = self._answered if faults is None else faults.late(self._answered)
        self.place.broker.submit(command, on_answer)

    def _answered(self, answer: Answer) -> None:
        if not isinstance(answer, MessagesSettled):
            for user, settling in self._by_user().items():
                user.settlements_answered(settling, answer)
        elif any(answer.codes):
            self._tell_apart(answer.codes)
        else:
            self._tell_together()

    def _tell_together(self) -> None:
        """All is done: whoever waits hears the same. Links mostly spoke in the order of their ids."""
        by_session: defaultdict[Session, list[DeliveryRange]] = defaultdict(list)
        for session, sent in self._hearing():
            ranges = by_session[session]
            if ranges and (sent.first_id - ranges[-1].last_id) % MODULUS == 1:
                ranges[-1] = DeliveryRange(ranges[-1].first_id, sent.last_id)
            else:
                ranges.append(DeliveryRange(sent.first_id, sent.last_id))
        for session, ranges in by_session.items():
            session.answer([(span.first_id, span.last_id) for span in merge_ranges(ranges)], self.spoken.answer)
        self.connection.wake()

    def _hearing(self) -> Iterable[tuple[Session, SentRange]]:
        """The deliveries whose receivers wait to hear, and are there."""
        for each in self.said:
            if not each.waits:
                continue
            session = each.session
            if session is not None:
                yield session, each.sent
                continue
            for one in each.apart():
                session = one.session
                if session is not None:
                    yield session, one.sent

    def _apart(self) -> list[SaidOnLink]:
        return [one for each in self.said for one in each.apart()]

    def _tell_apart(self, codes: bytes) -> None:
        """Some locks were lost. codes: of all tokens."""
        its_codes, at = defaultdict[SettlingUser, bytearray](bytearray), 0
        for each in self._apart():
            end = at + len(each.sent.tokens) // TOKEN_BYTES
            its_codes[each.user] += codes[at:end]
            at = end
        for user, settling in self._by_user().items():
            user.settlements_answered(settling, MessagesSettled(bytes(its_codes[user])))

    def _by_user(self) -> dict[SettlingUser, Settling]:
        """What each of them settled, in the order in which it said so."""
        found: dict[SettlingUser, Settling] = {}
        for each in self._apart():
            settling = found.get(each.user)
            if settling is None:
                settling = found[each.user] = Settling(self.spoken)
            settling.spans.append((each.sent.first_id, each.sent.last_id, each.waits))
        return found


class TurnSettlements:
    """Those of one connection. waiting: what no broker was told yet; most turns have nothing to hand over."""

    def __init__(self, connection: WritingConnection) -> None:
        self._connection = connection
        self.waiting: dict[tuple[object, ...], _Together] = {}

    def add(self, said: SaidPart, place: FragmentPlace, spoken: Spoken, user: SettlingUser | None = None) -> None:
        """Receivers settled messages of this fragment. user: of one link, where it may say details (settlements.py)."""
        key: tuple[object, ...] = (place.log_id, spoken)
        if spoken.details is not None:
            key = (place.log_id, spoken.outcome, spoken.details, user)
        together = self.waiting.get(key)
        if together is None:
            together = self.waiting[key] = _Together(self._connection, place, spoken)
        together.said.append(said)
        together.size += len(said.sent.tokens)
        if together.size >= TOGETHER_BYTES:
            del self.waiting[key]
            together.submit(None)

    def hand_over(self, faults: Faults | None = None) -> None:
        """Tell the brokers; the links hear what became of it, some by `settlements_answered`.

        faults: that a test ordered.
        """
        waiting, self.waiting = self.waiting, {}
        for together in waiting.values():
            together.submit(faults)
