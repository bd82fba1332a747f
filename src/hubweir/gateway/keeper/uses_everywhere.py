"""Asks all processes, when it matters, which uses of an entity each of them saw by itself (gateway/entity_uses.py).

The keeper's process asks before it deletes what nobody used for long. A process that is lost takes what it saw with it:
everything counts as used at that moment. One that does not answer keeps the entity alive, until it is asked again.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from hubweir.env import Clock
from hubweir.gateway.entity_uses import EntityUses

Ask = Callable[[int, str], None]
OnSeen = Callable[[int | None], None]


@dataclass(slots=True)
class _Question:
    """waits_for: the processes that have not answered. seen_ms: the newest use of those that have."""

    log_id: str
    on_seen: OnSeen
    waits_for: set[int]
    seen_ms: int | None


class UsesEverywhere:
    """Of one namespace. own: of this process. Processes that follow the catalog come and go."""

    def __init__(self, clock: Clock, own: EntityUses) -> None:
        self._clock = clock
        self._own = own
        self._asked: dict[int, Ask] = {}  # how each process is asked, by its id
        self._questions: dict[int, _Question] = {}
        self._last_question = 0
        self._lost_ms: int | None = None  # when a process was lost last

    def came(self, process: int, ask: Ask) -> None:
        """A process serves clients. ask: called with the number of a question, and what it is about."""
        self.left(process)
        self._asked[process] = ask

    def left(self, process: int) -> None:
        """What it saw is lost, with its answers."""
        if self._asked.pop(process, None) is None:
            return
        self._lost_ms = self._clock.monotonic_ms()
        for number, question in list(self._questions.items()):
            if process in question.waits_for:
                self._answer(number, process, 0)

    def told(self, process: int, question: int, unused_ms: int | None) -> None:
        """A process answers a question; nothing when nobody asks it any more."""
        if question in self._questions and process in self._questions[question].waits_for:
            self._answer(question, process, unused_ms)

    def ask(self, log_id: str, on_seen: OnSeen) -> None:
        """Ask all for how long nobody used what lives there; on_seen once, None: nobody saw a use. It is asked about
        one after the other: a question about the same is forgotten, and its on_seen is never called.
        """
        self._questions = {number: each for number, each in self._questions.items() if each.log_id != log_id}
        seen_ms = _newest(self._own.unused_ms(log_id), self._since_lost_ms())
        if not self._asked:
            on_seen(seen_ms)
            return
        self._last_question += 1
        number = self._last_question
        self._questions[number] = _Question(log_id, on_seen, set(self._asked), seen_ms)
        for ask in list(self._asked.values()):
            ask(number, log_id)

    def keep(self, log_ids: AbstractSet[str]) -> None:
        """Forget when others than these were used here."""
        self._own.keep(log_ids)

    def _answer(self, number: int, process: int, unused_ms: int | None) -> None:
        question = self._questions[number]
        question.waits_for.discard(process)
        question.seen_ms = _newest(question.seen_ms, unused_ms)
        if not question.waits_for:
            del self._questions[number]
            question.on_seen(question.seen_ms)

    def _since_lost_ms(self) -> int | None:
        return None if self._lost_ms is None else self._clock.monotonic_ms() - self._lost_ms


def _newest(*unused_ms: int | None) -> int | None:
    return min((each for each in unused_ms if each is not None), default=None)
