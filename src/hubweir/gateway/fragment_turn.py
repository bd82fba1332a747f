"""The fragments of an entity in turn, for what has no key: each run goes to the next fragment that is up.

A fragment is *away* when its broker is, and for AWAY_MS behind a refusal that another fragment need not give: its log
is offline, or not open yet. It is passed over then. A run that is refused so was certainly not stored; the next
fragment that is up gets it, each once, before anybody hears of it. So whoever sends without a key is answered as long
as one fragment takes messages. (contract "Service Bus", 9A, P10)

Nothing is kept: after a crash the turn begins anew. What was not answered is stored in one fragment, or in none.
Where it begins is drawn by lot, so that several processes with few messages each do not all fill the first fragments.
"""

from __future__ import annotations

from functools import partial

from hubweir.broker.commands.command import Answer, Command
from hubweir.broker.commands.fragment import EnqueueMessages
from hubweir.broker.commands.process import Refusal
from hubweir.env import Clock, Env
from hubweir.errors import SERVER_BUSY
from hubweir.gateway.brokers import OnAnswer
from hubweir.gateway.fragments import FragmentPlace, Fragments

# A log that is offline may be repaired at any time; to ask it costs a refusal.
AWAY_MS = 1_000


class FragmentTurn:
    """Of one entity, in one process. It stands for a place (append_queue.LogPlace), and for its broker."""

    def __init__(self, env: Env, fragments: Fragments) -> None:
        self._clock: Clock = env
        self._places = fragments.places
        self._by_log = {place.log_id: place for place in fragments.places}
        self._next = int.from_bytes(env.random_bytes(2), "big") % len(fragments.places)
        self._away_until_ms = [0] * len(fragments.places)  # on the monotonic clock
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
        """The next in turn that is up, and none of these."""
        now_ms, many = self._clock.monotonic_ms(), len(self._places)
        for step in range(many):
            place = self._places[(self._next + step) % many]
            if place.number not in others_than and place.broker.is_up and self._away_until_ms[place.number] <= now_ms:
                return place
        return None
