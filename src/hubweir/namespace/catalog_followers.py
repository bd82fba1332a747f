"""The followers of a catalog: processes that hold a copy of it and apply each operation behind the one that writes it.

A change is answered when every follower has applied it, so that no process goes by an old key or a description that is
gone (promise P17). A follower that has not applied an operation APPLY_LIMIT_MS after it was told it is dead: nobody
waits for it any more, and it has to follow anew. One whose stream ended is waited for as long, since its process may
serve clients and come back; one whose process is known to have ended is not waited for at all. Where the writer's own
process was stopped, what they said meanwhile waits to be read: each has its time anew.

Nothing here is kept: after a crash of the writer's process the followers come to the next one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from hubweir.env import Env, Timer

APPLY_LIMIT_MS = 2_000
# So late rings no timer of a process that runs, on a busy machine either.
STOPPED_MS = 1_000
# While somebody is waited for the timer rings this often: by the last ring alone, a process that was stopped for all of
# that time and woke just behind it could not be told from one that ran.
LOOK_MS = 250

OnOperation = Callable[[int, bytes], None]


@dataclass(slots=True)
class _Follower:
    """tell: None while its stream is away. applied: the newest version that it said it has; -1: none yet.

    told: the versions that it did not apply yet, each with the time at which it is dead for it, oldest first.
    """

    tell: OnOperation | None
    on_dead: Callable[[], None]
    applied: int = -1
    told: deque[tuple[int, int]] = field(default_factory=deque)
    away_until_ms: int | None = None

    @property
    def dead_at_ms(self) -> int | None:
        """When it is dead if nothing comes of it; None: nothing is to come."""
        if self.away_until_ms is not None:
            return self.away_until_ms
        return self.told[0][1] if self.told else None


@dataclass(frozen=True, slots=True)
class _Unanswered:
    version: int
    callback: Callable[[], None]


class CatalogFollowers:
    """Of one catalog, by the id of their process. Every callback comes on the loop."""

    def __init__(self, env: Env) -> None:
        self._time = env.machine  # a test may set the clock forward while a process is waited for
        self._followers: dict[int, _Follower] = {}
        self._waiting: deque[_Unanswered] = deque()
        self._timer: Timer | None = None
        self._timer_at_ms = 0

    # Followers

    def came(self, process: int, version: int, tell: OnOperation, on_dead: Callable[[], None]) -> None:
        """A process was given the whole catalog as of a version, which it has not applied yet: tell it every operation
        from now on.

        tell: called with each operation's version and bytes (catalog_operation.py). on_dead: called once, when it has
        to follow anew. A process that comes again is in the place of what it was.
        """
        told = deque([(version, self._time.monotonic_ms() + APPLY_LIMIT_MS)])
        self._followers[process] = _Follower(tell, on_dead, told=told)
        self._ring()

    def applied(self, process: int, version: int) -> None:
        """A process has applied all up to a version; nothing for one that does not follow."""
        follower = self._followers.get(process)
        if follower is None or follower.tell is None:
            return
        follower.applied = max(follower.applied, version)
        while follower.told and follower.told[0][0] <= version:
            follower.told.popleft()
        self._answer()

    def left(self, process: int) -> None:
        """Its stream ended: it is waited for until it comes again or is dead."""
        follower = self._followers.get(process)
        if follower is not None and follower.tell is not None:
            follower.tell = None
            follower.away_until_ms = self._time.monotonic_ms() + APPLY_LIMIT_MS
            self._ring()

    def gone(self, process: int) -> None:
        """Its process ended."""
        if self._followers.pop(process, None) is not None:
            self._answer()

    def all_gone(self) -> None:
        """Nobody follows the catalog any more: its namespace is served no more."""
        self._followers.clear()
        self._answer()

    def expect(self, processes: Iterable[int]) -> None:
        """These serve clients, followed whoever wrote the catalog before, and are about to come."""
        until_ms = self._time.monotonic_ms() + APPLY_LIMIT_MS
        for process in processes:
            if process not in self._followers:
                self._followers[process] = _Follower(None, _nothing, away_until_ms=until_ms)
        self._ring()

    @property
    def processes(self) -> tuple[int, ...]:
        """Those that follow now."""
        return tuple(process for process, follower in self._followers.items() if follower.tell is not None)

    # Operations

    @property
    def is_empty(self) -> bool:
        """Whether nobody is told of operations."""
        return not self._followers

    def tell(self, version: int, operation: bytes) -> None:
        """The catalog has one operation more, which made this version of it."""
        dead_at_ms = self._time.monotonic_ms() + APPLY_LIMIT_MS
        for follower in self._followers.values():
            if follower.tell is not None:
                follower.told.append((version, dead_at_ms))
                follower.tell(version, operation)
        self._ring()

    def when_applied(self, version: int, callback: Callable[[], None]) -> None:
        """Call back when every follower has applied this version or is dead; at once where there is none.

        Versions come in rising order, and callbacks go in the order in which they came.
        """
        self._waiting.append(_Unanswered(version, callback))
        self._answer()

    # Inside

    def _answer(self) -> None:
        """Call back whoever waits for what all have now. A callback may bring the next change."""
        while self._waiting and self._waiting[0].version <= self._applied_by_all():
            self._waiting.popleft().callback()

    def _applied_by_all(self) -> float:
        return min((follower.applied for follower in self._followers.values()), default=float("inf"))

    def _ring(self) -> None:
        """Have the timer ring when the first of them would be dead, or LOOK_MS from now, whichever is sooner."""
        times = [each.dead_at_ms for each in self._followers.values() if each.dead_at_ms is not None]
        # A timer that runs already is soon enough for whoever came since: each has longer than LOOK_MS.
        if not times or self._timer is not None:
            return
        now_ms = self._time.monotonic_ms()
        self._timer_at_ms = min([*times, now_ms + LOOK_MS])
        self._timer = self._time.call_later(max(0, self._timer_at_ms - now_ms), self._look)

    def _look(self) -> None:
        """Whoever is late is dead, unless this process did not run meanwhile."""
        self._timer = None
        now_ms = self._time.monotonic_ms()
        if now_ms - self._timer_at_ms >= STOPPED_MS:
            self._wait_anew(now_ms + APPLY_LIMIT_MS)
        dead = {
            process: follower
            for process, follower in self._followers.items()
            if follower.dead_at_ms is not None and follower.dead_at_ms <= now_ms
        }
        for process, follower in dead.items():
            del self._followers[process]
            follower.on_dead()
        self._ring()
        self._answer()

    def _wait_anew(self, until_ms: int) -> None:
        for follower in self._followers.values():
            follower.told = deque((version, until_ms) for version, _ in follower.told)
            if follower.away_until_ms is not None:
                follower.away_until_ms = until_ms


def _nothing() -> None:
    """Of a process that never came, nobody has to hear that it is dead."""
