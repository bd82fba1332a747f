"""What the receivers of one connection settled in a turn, for the brokers: one command a fragment and outcome.

A connection may have hundreds of links, each of which settles a message or two in a turn; their tokens go together, so
that the fragment looks them up, marks and logs them at once. The answer is told apart by link again. What a receiver
says beside its outcome (properties to set, why a message is a dead letter) goes alone: a refusal of it is of its link.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from hubweir.broker.commands.command import Answer
from hubweir.broker.commands.fragment import MessagesSettled, SettleMessages
from hubweir.gateway.amqp.sent_tokens import SentRange
from hubweir.gateway.amqp.settlements import Settling, Spoken
from hubweir.gateway.faults import Faults
from hubweir.gateway.fragments import FragmentPlace
from hubweir.queue.settle_outcome import TOKEN_BYTES, SettleDetails, SettleOutcome

# A command with as many tokens goes at once: of more, one link would hear late, and a broker would be kept for long.
TOGETHER_BYTES = 5_000 * TOKEN_BYTES


class SettlingUser(Protocol):
    """The node of the link that said so."""

    def settlements_answered(self, settling: Settling, answer: Answer) -> None:
        """The broker's answer to its settlements; may come within `hand_over`."""


@dataclass(slots=True)
class _Together:
    """Settlements that one command says, by whose they are. size: of their tokens."""

    place: FragmentPlace
    outcome: SettleOutcome
    details: SettleDetails | None
    by_user: dict[SettlingUser, Settling] = field(default_factory=dict)
    size: int = 0

    def submit(self, faults: Faults | None) -> None:
        tokens = b"".join([settling.tokens for settling in self.by_user.values()])
        command = SettleMessages(self.place.log_id, tokens, self.outcome, self.details)
        on_answer = self._answered if faults is None else faults.late(self._answered)
        self.place.broker.submit(command, on_answer)

    def _answered(self, answer: Answer) -> None:
        if not isinstance(answer, MessagesSettled) or not any(answer.codes):
            for user, settling in self.by_user.items():
                user.settlements_answered(settling, answer)
            return
        at = 0
        for user, settling in self.by_user.items():
            end = at + len(settling.tokens) // TOKEN_BYTES
            user.settlements_answered(settling, MessagesSettled(answer.codes[at:end]))
            at = end


class TurnSettlements:
    """Those of one connection. waiting: what no broker was told yet; most turns have nothing to hand over."""

    def __init__(self) -> None:
        self.waiting: dict[tuple[str, SettleOutcome, SettleDetails | None, SettlingUser | None], _Together] = {}

    def add(self, user: SettlingUser, place: FragmentPlace, spoken: Spoken, sent: SentRange, *, waits: bool) -> None:
        """A receiver settled deliveries of messages of this fragment; waits: it wants to hear of it."""
        key = (place.log_id, spoken.outcome, spoken.details, None if spoken.details is None else user)
        together = self.waiting.get(key)
        if together is None:
            together = self.waiting[key] = _Together(place, spoken.outcome, spoken.details)
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
        """Tell the brokers; `settlements_answered` follows for each link. faults: that a test ordered."""
        waiting, self.waiting = self.waiting, {}
        for together in waiting.values():
            together.submit(faults)
