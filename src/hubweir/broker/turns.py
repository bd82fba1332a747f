"""Changes of one thing, one after the other: each begins when the one before has ended, in the order they came.

Settings come faster than a disk makes them durable, and a partition may be deleted while one is under way: without
turns, the end of an earlier change would undo a later one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial

# A change: it calls what it is given once, maybe at once, when it has ended.
Change = Callable[[Callable[[], None]], None]


def _nobody_waits() -> None:
    """Whoever asks for changes looks at is_busy."""


class ChangeQueue:
    """The changes of one thing. Used on the loop. The queue is bounded by the commands that ask for them."""

    def __init__(self, on_idle: Callable[[], None] = _nobody_waits) -> None:
        """on_idle: called each time that the last change has ended."""
        self._waiting: deque[Change] = deque()  # the first is under way
        self._on_idle = on_idle

    @property
    def is_busy(self) -> bool:
        """Whether a change is under way."""
        return bool(self._waiting)

    def submit(self, change: Change) -> None:
        """Do it, at once when nothing is under way."""
        self._waiting.append(change)
        if len(self._waiting) == 1:
            self._go_on()

    def _go_on(self) -> None:
        """Begin the changes that wait, one by one; those that end at once in a loop, so that many are no deep stack."""
        while self._waiting:
            state = _ChangeState()
            self._waiting[0](partial(self._ended, state))
            if not state.has_ended:
                state.is_left = True
                return
            self._waiting.popleft()
        self._on_idle()

    def _ended(self, state: _ChangeState) -> None:
        state.has_ended = True
        if state.is_left:
            self._waiting.popleft()
            self._go_on()


class Turns:
    """The changes of many things, each by its name. A thing costs nothing while nothing is under way."""

    def __init__(self) -> None:
        self._queues: dict[str, ChangeQueue] = {}

    def is_busy(self, name: str) -> bool:
        """Whether a change of that name is under way."""
        return name in self._queues

    def submit(self, name: str, change: Change) -> None:
        """Do it, at once when nothing of that name is under way."""
        queue = self._queues.get(name)
        if queue is None:
            queue = self._queues[name] = ChangeQueue(partial(self._queues.__delitem__, name))
        queue.submit(change)


class _ChangeState:
    """Of one change. is_left: the loop that began it went away, and its end goes on."""

    __slots__ = ("has_ended", "is_left")

    def __init__(self) -> None:
        self.has_ended = self.is_left = False
