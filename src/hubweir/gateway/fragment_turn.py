"""The fragments of an entity in turn, for what has no key: each run goes to the next fragment that is up.

A fragment is *away* when its broker is, and for AWAY_MS behind a refusal that another fragment need not give: its log
is offline, or not open yet. It is passed over then. A run that is refused so was certainly not stored; the next
fragment that is up gets it, each once, before anybody hears of it. So whoever sends without a key is answered as long
as one fragment takes messages.

A broker that has answered nothing of this turn for SLOW_MS is *slow*: its process stalls, or its disk does. What was
sent there has no outcome yet, and goes nowhere else; what comes now goes to fragments of other brokers, where there are
any.

Nothing is kept: after a crash the turn begins anew. What was not answered is stored in one fragment, or in none.
Where it begins is drawn by lot, so that several processes with few messages each do not all fill the first fragments.
"""

from __future__ import annotations

from functools import partial

from hubweir.broker.commands.command import Answer, Command, OnAnswer
from hubweir.broker.commands.fragment import EnqueueMessages
from hubweir.broker.commands.process import Refusal
from hubweir.env import Clock, Env
from hubweir.errors import SERVER_BUSY
from hubweir.gateway.fragments import FragmentPlace, Fragments

# A log that is offline may be repaired at any time; to ask it costs a refusal.
AWAY_MS = 1_000
# A broker that is well answers within some milliseconds, and under much load within a part of a second.
SLOW_MS = 1_000


class FragmentTurn:
    """Of one entity, in one process. It stands for a place (append_queue.LogPlace), and for its broker."""

    def __init__(self, env: Env, fragments: Fragments) -> None:
        self._clock: Clock = env
        self._places = fragments.places
        self._by_log = {place.log_id: place for place in fragments.places}
        self._next = int.from_bytes(env.random_bytes(2), "big") % len(fragments.places)
        self._away_until_ms = [0] * len(fragments.places)  # on the monotonic clock
        self._waits = {id(place.broker): _Waits() for place in fragments.places}
        self.entity = fragments.entity
        self.log_id = f"{fragments.places[0].log_id}/turn"  # no log's

    @property
    def broker(self) -> FragmentTurn:
        """Who takes what is stored here."""
        return self

    def next_place(self) -> FragmentPlace:
        """The next in turn that is up; the next of all when none is."""
        place = self._find_up(frozenset())
        if place is None:
            place = self._places[self._next]
        self._next = (place.number + 1) % len(self._places)
        return place

    def store(self, run: bytearray, messages: int, size_bytes: int) -> EnqueueMessages:
        """The command that stores a run in the next fragment."""
        return self.next_place().store(run, messages, size_bytes)

    def submit(self, command: Command, on_answer: OnAnswer) -> None:
        """Have a run stored in the fragment that its command names, or else in the next ones. See BrokerClient."""
        assert isinstance(command, EnqueueMessages), f"{type(command).__name__} is about one fragment"
        self._try(self._by_log[command.log_id], frozenset(), command, on_answer)

    def _try(
        self, place: FragmentPlace, refused_by: frozenset[int], command: EnqueueMessages, on_answer: OnAnswer
    ) -> None:
        self._waits[id(place.broker)].begin(self._clock.monotonic_ms())
        answered = partial(self._answered, place, refused_by | {place.number}, command, on_answer)
        place.broker.submit(command, answered)

    def _answered(
        self,
        place: FragmentPlace,
        refused_by: frozenset[int],
        command: EnqueueMessages,
        on_answer: OnAnswer,
        answer: Answer,
    ) -> None:
        self._waits[id(place.broker)].end(self._clock.monotonic_ms())
        if not isinstance(answer, Refusal) or not answer.known or not answer.condition.retriable:
            on_answer(answer)
            return
        self._away_until_ms[place.number] = self._clock.monotonic_ms() + AWAY_MS
        other = self._find_up(refused_by)
        if other is None:
            text = (
                f"No fragment of '{self.entity}' takes messages now: {answer.text.rstrip('.')}. Wait, then send again."
            )
            on_answer(Refusal(SERVER_BUSY, text))
            return
        self._next = (other.number + 1) % len(self._places)
        self._try(other, refused_by, other.store(command.run, command.messages, command.size_bytes), on_answer)

    def _find_up(self, others_than: frozenset[int]) -> FragmentPlace | None:
        """The next in turn that is up, and none of these; one of a slow broker only where there is no other."""
        now_ms, many, slow = self._clock.monotonic_ms(), len(self._places), None
        for step in range(many):
            place = self._places[(self._next + step) % many]
            if place.number in others_than or not place.broker.is_up or self._away_until_ms[place.number] > now_ms:
                continue
            if not self._waits[id(place.broker)].is_slow(now_ms):
                return place
            slow = slow or place
        return slow


class _Waits:
    """Whether a broker answers: for how many runs an answer is to come, and since when none has come."""

    __slots__ = ("_count", "_since_ms")

    def __init__(self) -> None:
        self._count = 0
        self._since_ms = 0

    def begin(self, now_ms: int) -> None:
        """One more is asked for."""
        if not self._count:
            self._since_ms = now_ms
        self._count += 1

    def end(self, now_ms: int) -> None:
        """One came."""
        self._count -= 1
        self._since_ms = now_ms

    def is_slow(self, now_ms: int) -> bool:
        """Whether some are to come, and none has for SLOW_MS."""
        return self._count > 0 and now_ms - self._since_ms >= SLOW_MS
