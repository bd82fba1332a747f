"""An offloaded call that stops before some of its file calls: others go on meanwhile, or the process ends there.

The call runs on a thread of its own, but strictly one thread at a time has its turn: `advance` hands the turn to the
call and waits until the call stops or ends. So a history stays the same every time. Whoever makes the call decides
where it stops, by calling `pause` from within.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock, Thread
from typing import Generic, TypeVar

T = TypeVar("T")
# A turn takes milliseconds. One that takes so long waits for a lock that a stopped call holds.
TURN_LIMIT_S = 60.0


class Outcome(Generic[T]):
    """How an offloaded call ended. The call runs when this is made."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._value: T | None = None
        self._error: Exception | None = None
        self._is_over = False
        try:
            self._value = call()
        except Exception as error:  # whatever it was: value() raises it where the result is wanted
            self._error = error

    def value(self) -> T:
        assert not self._is_over, "an error was raised already, and forgotten"
        error, self._error = self._error, None
        if error is not None:
            self._is_over = True
            try:
                raise error
            finally:
                del error  # see Result
        return self._value  # type: ignore[return-value]


class _Turns:
    """A thread that runs one job after the other, each when it is given the turn."""

    idle: list[_Turns] = []  # threads are dear, and used again by all worlds of this process

    def __init__(self) -> None:
        self._go, self._stopped = Lock(), Lock()
        self._go.acquire()
        self._stopped.acquire()
        self.job: Callable[[], None] | None = None
        Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            self._go.acquire()
            job, self.job = self.job, None
            assert job is not None
            job()
            del job  # or it would keep its world until the thread has another one
            self._stopped.release()

    def give(self) -> None:
        """Give the thread its turn, and wait for the end of it."""
        self._go.release()
        assert self._stopped.acquire(timeout=TURN_LIMIT_S), "an offloaded call waits for something that has stopped"

    def give_back(self) -> None:
        """From the thread: end the turn, and wait for the next."""
        self._stopped.release()
        self._go.acquire()


class SteppedCall(Generic[T]):
    """See the module's text. outcome: set when the call has ended by itself."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self._turns = _Turns.idle.pop() if _Turns.idle else _Turns()
        self._turns.job = self._run
        self._end: BaseException | None = None
        self._has_ended = False
        self.outcome: Outcome[T] | None = None

    def _run(self) -> None:
        try:
            self.outcome = Outcome(self._call)
        except BaseException as end:  # the end of the world: advance() raises it
            self._end = end
        self._has_ended = True

    def advance(self) -> bool:
        """Let the call run on to where it stops; True when it has ended. Raises what is no Exception, but ended it."""
        self._turns.give()
        if not self._has_ended:
            return False
        _Turns.idle.append(self._turns)
        if self._end is not None:
            raise self._end
        return True

    def pause(self) -> None:
        """From within the call: stop here. It never goes on when the process that made it is gone by then."""
        self._turns.give_back()
