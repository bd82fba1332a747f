"""A real fragment on a log under a test's control, to which the walks of a model are played.

The player decides all that a model leaves open: when a sync ends, what a crash keeps, when a lock's time is over, and
when the owner's turn comes. Locks last for ever unless the player ends one. After each action the player compares what
the model says with what the fragment answers; the first difference is an AssertionError that tells the actions up to
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from hubweir.errors import ServiceError
from hubweir.kernels.queue_contract import LOCKED, M_STATE
from hubweir.messaging_store.log import Refused
from hubweir.queue.fragment import Fragment, ReceivedMessages, Times
from hubweir.queue.fragment_core import RETRY_MS
from hubweir.queue.fragment_settings import FragmentSettings
from hubweir.queue.sub_queue import SubQueue
from hubweir.queue.tests.conftest import LOG_ID, Got, message, opened, run_of
from hubweir.testing.manual_log import ManualLog
from tests.models.explorer import Action, Model, Taken, random_walk

FOR_EVER_MS = 10**12
NOW_MS = 1_700_000_000_000
TURNS_LIMIT = 10  # behind one request
STEPS = 60
CONTROL_WALKS = 300


class Player(Protocol):
    """Of one model."""

    def play(self, action: Action, before: Any, after: Any) -> None:
        """Do to the fragment what the model did between these states, and compare the answers."""

    def compare(self, state: Any) -> None:
        """AssertionError where the fragment shows something else than the model."""


def replay(player: Player, start: Any, walk: Iterable[Taken]) -> None:
    """Play a whole walk. AssertionError with the actions up to the first difference."""
    played: list[str] = []
    state = start
    for taken in walk:
        played.append(f"{len(played) + 1:3}  {taken.action}")
        try:
            player.play(taken.action, state, taken.state)
            player.compare(taken.state)
        except (AssertionError, ServiceError) as difference:
            raise AssertionError("\n".join([str(difference), *played, f"     {taken.state}"])) from difference
        state = taken.state


def play_walks(model: Model[Any], make_player: Callable[[], Player], seeds: Iterable[int]) -> set[str]:
    """Play a walk of each seed; the names of all actions that came up. AssertionError at the first difference."""
    actions = set()
    for seed in seeds:
        walk = random_walk(model, seed, STEPS)
        actions |= {" ".join(each for each in taken.action if isinstance(each, str)) for taken in walk}
        try:
            replay(make_player(), model.start(), walk)
        except AssertionError as error:
            error.add_note(f"seed {seed}: HUBWEIR_FIRST_SEED={seed} plays it again")
            raise
    return actions


def first_difference(model: Model[Any], make_player: Callable[[], Player]) -> str:
    """What the first walk tells that shows a planted defect; fails when none of them does.

    The walks have the same numbers every time.
    """
    try:
        play_walks(model, make_player, range(CONTROL_WALKS))
    except AssertionError as difference:
        return str(difference).splitlines()[0]
    raise AssertionError(f"{CONTROL_WALKS} walks do not see it")


class Answer:
    """One request's answer, which comes when it comes, and never twice."""

    def __init__(self) -> None:
        self._values: list[Any] = []

    def __call__(self, value: Any) -> None:
        assert not self._values, f"a request is answered again, with {value}"
        self._values.append(value)

    @property
    def is_there(self) -> bool:
        return bool(self._values)

    @property
    def is_refused(self) -> bool:
        return isinstance(self.value, Refused)

    @property
    def value(self) -> Any:
        assert self._values, "a request has no answer"
        return self._values[0]

    @property
    def got(self) -> list[Got]:
        assert isinstance(self.value, ReceivedMessages), f"a receive is answered with {self.value}"
        return opened(self.value)


class PlayedFragment:
    """The fragment, and its owner."""

    def __init__(self, settings: FragmentSettings) -> None:
        self.settings = settings
        self.monotonic_ms, self.stamp_ms = 1_000, NOW_MS
        self.log = ManualLog(LOG_ID)
        self._open()
        self.log.sync()  # the settings

    def _open(self) -> None:
        self._is_woken = False
        self.fragment = Fragment(
            self.log, self.settings, entity="orders", secret=self.log.lease.writer_epoch.to_bytes(16, "big"),
            wake=self._wake,
        )  # fmt: skip
        loaded = Answer()
        self.fragment.load(self.times(), loaded)
        self.turn()
        assert not loaded.is_there or loaded.value is None, f"the fragment does not open: {loaded.value}"

    def _wake(self) -> None:
        self._is_woken = True

    def times(self) -> Times:
        return Times(self.stamp_ms, self.monotonic_ms)

    def turn(self) -> None:
        self._is_woken = False
        self.fragment.turn(self.times())
        # A model has a count of deliveries on its way as soon as there is one: what nobody waits for waits no longer.
        due_ms = self.fragment.core.unawaited_ms
        if due_ms is not None:
            self.monotonic_ms = due_ms
            self.fragment.turn(self.times())

    def turns(self) -> None:
        """Those that the fragment asked for."""
        for _ in range(TURNS_LIMIT):
            if not self._is_woken:
                return
            self.turn()
        raise AssertionError(f"after {TURNS_LIMIT} turns the fragment asks for another one")

    # What befalls it

    def sync(self) -> None:
        self.log.sync()
        self.turns()

    def fail(self) -> None:
        """A sync fails; the next turn comes when the log may take an append again."""
        self.log.fail()
        self.monotonic_ms += RETRY_MS
        self.turn()
        self.turns()

    def crash(self, kept: int) -> None:
        """The next process opens what is left; nobody is answered by the last one any more."""
        self.log = self.log.restarted(kept)
        self._open()
        self.turns()

    def end_time_of(self, token: bytes) -> None:
        """The time of this lock is over now; there was no turn since.

        Past the fragment's calls: what is being settled cannot be renewed, and its time runs on all the same.
        """
        locks = self.fragment.core.locks
        ordinals, _ = locks.find(token, self.monotonic_ms)
        self.monotonic_ms += 1
        locks.renew(ordinals[0], self.monotonic_ms)

    # What clients ask

    def send(self, body: str, **named: Any) -> Answer:
        answer = Answer()
        self.fragment.enqueue(run_of(message(body, **named)), 1, self.times(), answer)
        self.turns()
        return answer

    def ask(self, request: Callable[[Answer], object]) -> Answer:
        """Any request; the turns that it wants follow."""
        answer = Answer()
        request(answer)
        self.turns()
        return answer

    def peek(self, sub_queue: SubQueue = SubQueue.MAIN) -> list[Got]:
        answer = Answer()
        self.fragment.peek(sub_queue, 0, max_count=1_000, max_bytes=1 << 20, on_done=answer)
        return answer.got

    def is_locked(self, number: int) -> bool:
        """A peek shows locked messages as if they were not."""
        found = self.fragment.core.state.messages.find(number)
        return found is not None and bool(found[0].rows[found[1] + M_STATE] & LOCKED)
