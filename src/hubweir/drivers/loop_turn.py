"""The end of a turn: what many things of one turn ask for is done once, behind all of them.

A loop calls back for each thing that happens: bytes came, a call ended on a thread. Publishers' events become one run a
partition, and appends of a log one round: so both wait here for the end of the turn, and one callback does what waits.
Whoever handles many things in one callback, as the ends of calls are, ends the turn itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator

logger = logging.getLogger(__name__)

# Open runs are submitted, then logs begin their rounds, then connections write what came of it. What is added behind
# these waits for the next turn, so that nothing that goes on and on keeps the loop.
ROUNDS_A_TURN = 3


class LoopTurn:
    """Of one loop, on which it is used. What waits when the loop is closed is not called."""

    __slots__ = ("_ends", "_is_planned", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._ends: list[Callable[[], None]] = []
        self._is_planned = False  # somebody calls `end`, or is within it

    def at_end(self, callback: Callable[[], None]) -> None:
        """Call once, behind the code that runs now. The others are called whatever becomes of one."""
        self._ends.append(callback)
        if not self._is_planned:
            self._is_planned = True
            self.loop.call_soon(self.end)

    def begin(self) -> None:
        """The caller handles many things now, and calls `end` behind them, so the loop need not."""
        self._is_planned = True

    def end(self) -> None:
        """Call what waits. May be called in any turn, also with nothing that waits, and never from a callback."""
        self._is_planned = True
        left: Iterator[Callable[[], None]] = iter(())
        try:
            for _ in range(ROUNDS_A_TURN):
                ends, self._ends = self._ends, []
                left = iter(ends)
                for callback in left:
                    try:
                        callback()
                    except Exception:
                        logger.exception("a fault of the service at the end of a turn of the loop")
                if not self._ends:
                    break
        finally:  # also when one ended as a cancelled task does: a loop goes on behind that, and so do the others
            self._ends[:0] = left
            self._is_planned = bool(self._ends)
            if self._is_planned:
                self.loop.call_soon(self.end)
