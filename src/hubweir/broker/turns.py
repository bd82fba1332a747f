"""Changes of one partition, one after the other: each begins when the one before has ended, in the order they came.

Settings come faster than a disk makes them durable, and a partition may be deleted while one is under way: without
turns, the end of an earlier change would undo a later one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial

# A change: it calls what it is given once, maybe at once, when it has ended.
Change = Callable[[Callable[[], None]], None]


class Turns:
    """Used on the loop. The queues are bounded by the commands that the broker holds."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[Change]] = {}

    @property
    def busy(self) -> list[str]:
        """What has a change under way."""
        return list(self._waiting)

    def take(self, name: str, change: Change) -> None:
        """Do it, at once when nothing of that name is under way."""
        if name in self._waiting:
            self._waiting[name].append(change)
        else:
            self._waiting[name] = deque([change])
            self._go_on(name)

    def _go_on(self, name: str) -> None:
        """Begin the changes that wait, one by one; those that end at once in a loop, so that many are no deep stack."""
        waiting = self._waiting[name]
        while waiting:
            state = _ChangeState()
            waiting[0](partial(self._ended, name, state))
            if not state.has_ended:
                state.is_left = True
                return
            waiting.popleft()
        del self._waiting[name]

    def _ended(self, name: str, state: _ChangeState) -> None:
        state.has_ended = True
        if state.is_left:
            self._waiting[name].popleft()
            self._go_on(name)


class _ChangeState:
    """Of one change. is_left: the loop that began it went away, and its end goes on."""

    __slots__ = ("has_ended", "is_left")

    def __init__(self) -> None:
        self.has_ended = self.is_left = False
