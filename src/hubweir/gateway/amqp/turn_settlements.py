"""Gathers what the receivers of one connection settle in a turn: one command for each fragment and settlement.

A connection may have hundreds of links, each of which settles a message or two in a turn; their tokens go together, so
that the fragment looks them up, marks and logs them at once. When all of it is done, the links of a session hear it
together: ids of deliveries go on from link to link, so that few dispositions say it of many. Where a lock was lost, or
the broker refused, the answer is told apart by link again. What a receiver says beside its outcome (properties to set,
why a message is a dead letter) goes alone: a refusal of it is of its link.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from hubweir.amqp.transport.sender_link import SenderLink
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


@dataclass(slots=True)
class _Together:
    """Settlements that one command says, by whose they are. size: of their tokens."""

    connection: WritingConnection
    place: FragmentPlace
    spoken: Spoken
    by_user: dict[SettlingUser, Settling] = field(default_factory=dict)
    size: int = 0

    def submit(self, faults: Faults | None) -> None:
        tokens = b"".join([settling.tokens for settling in self.by_user.values()])
        command = SettleMessages(self.place.log_id, tokens, self.spoken.outcome, self.spoken.details)
        on_answer = self._answered if faults is None else faults.late(self._answered)
        self.place.broker.submit(command, on_answer)

    def _answered(self, answer: Answer) -> None:
        if not isinstance(answer, MessagesSettled):
            for user, settling in self.by_user.items():
                user.settlements_answered(settling, answer)
        elif any(answer.codes):
            self._tell_apart(answer.codes)
        else:
            self._tell_together()

    def _tell_together(self) -> None:
        """All is done: whoever waits hears the same. Links mostly spoke in the order of their ids."""
        by_session: defaultdict[Session, list[DeliveryRange]] = defaultdict(list)
        for user, settling in self.by_user.items():
            link = user.link
            if link.is_attached:
                settling.add_waiting(by_session[link.session])
        for session, ranges in by_session.items():
            session.answer([(span.first_id, span.last_id) for span in merge_ranges(ranges)], self.spoken.answer)
        self.connection.wake()

    def _tell_apart(self, codes: bytes) -> None:
        """Some locks were lost. codes: of all tokens."""
        at = 0
        for user, settling in self.by_user.items():
            end = at + len(settling.tokens) // TOKEN_BYTES
            user.settlements_answered(settling, MessagesSettled(codes[at:end]))
            at = end


class TurnSettlements:
    """Those of one connection. waiting: what no broker was told yet; most turns have nothing to hand over."""

    def __init__(self, connection: WritingConnection) -> None:
        self._connection = connection
        self.waiting: dict[tuple[object, ...], _Together] = {}

    def add(self, user: SettlingUser, place: FragmentPlace, spoken: Spoken, sent: SentRange, *, waits: bool) -> None:
        """A receiver settled deliveries of messages of this fragment; waits: it wants to hear of it."""
        key: tuple[object, ...] = (place.log_id, spoken)
        if spoken.details is not None:
            key = (place.log_id, spoken.outcome, spoken.details, user)
        together = self.waiting.get(key)
        if together is None:
            together = self.waiting[key] = _Together(self._connection, place, spoken)
        settling = together.by_user.get(user)
        if settling is None:
            settling = together.by_user[user] = Settling(spoken)
        settling.tokens += sent.tokens
        settling.spans.append((sent.first_id, sent.last_id, waits))
        together.size += len(sent.tokens)
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
