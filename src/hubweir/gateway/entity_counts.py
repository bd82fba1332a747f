"""Counts the messages that an entity holds now, by asking the brokers of its fragments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from hubweir.broker.commands.command import Answer
from hubweir.broker.commands.fragment import AskFragmentInfo, FragmentInfo
from hubweir.env import Env
from hubweir.errors import TIMED_OUT, ServiceError
from hubweir.gateway.brokers import error_of
from hubweir.gateway.fragments import Fragments


@dataclass(frozen=True, slots=True)
class EntityCounts:
    """Messages by where they are; size_bytes: of all. A deferred or locked message counts as active.

    accessed_at_ms: of the newest use; None: there was none. is_limited: a broker did not answer, so that its part is
    missing.
    """

    active: int = 0
    dead_lettered: int = 0
    scheduled: int = 0
    transfer_dead_lettered: int = 0
    size_bytes: int = 0
    accessed_at_ms: int | None = None
    is_limited: bool = False

    @property
    def all(self) -> int:
        """The messages of a queue or a subscription as descriptions count them."""
        return self.active + self.dead_lettered + self.scheduled

    def plus(self, info: FragmentInfo) -> EntityCounts:
        """With those of one fragment more."""
        return replace(
            self,
            active=self.active + info.active + info.deferred,
            dead_lettered=self.dead_lettered + info.dead_lettered,
            scheduled=self.scheduled + info.scheduled,
            transfer_dead_lettered=self.transfer_dead_lettered + info.transfer_dead_lettered,
            size_bytes=self.size_bytes + info.size_bytes,
            accessed_at_ms=max(filter(None, (self.accessed_at_ms, info.accessed_at_ms)), default=None),
        )


# Of a fragment that answers; one that does not is left out, so that whoever asks hears of the others.
ANSWER_MS = 3_000

FragmentAnswer = FragmentInfo | ServiceError


def ask_fragments(env: Env, fragments: Fragments, on_done: Callable[[list[FragmentAnswer]], None]) -> None:
    """Ask all fragments what they hold; on_done once, with an answer a fragment, by number, or why there is none."""
    waits_for = set(range(len(fragments.places)))
    late = ServiceError(TIMED_OUT, f"it did not answer within {ANSWER_MS} ms")
    found: list[FragmentAnswer] = [late for _ in fragments.places]

    def answered(number: int, answer: Answer) -> None:
        if number in waits_for:
            waits_for.discard(number)
            found[number] = answer if isinstance(answer, FragmentInfo) else error_of(answer)
            if not waits_for:
                timer.cancel()
                on_done(found)

    def over() -> None:
        waits_for.clear()
        on_done(found)

    timer = env.machine.call_later(ANSWER_MS, over)
    for place in fragments.places:
        place.broker.submit(AskFragmentInfo(place.log_id), partial(answered, place.number))


def ask_counts(env: Env, fragments: Fragments, on_done: Callable[[EntityCounts], None]) -> None:
    """Ask all fragments, and sum up what they say; on_done once."""

    def answered(answers: list[FragmentAnswer]) -> None:
        counts = EntityCounts()
        for answer in answers:
            counts = counts.plus(answer) if isinstance(answer, FragmentInfo) else replace(counts, is_limited=True)
        on_done(counts)

    ask_fragments(env, fragments, answered)
