"""Two threads that use one thing without a lock, in every order that one switch between them can give.

Under the interpreter's lock a thread is interrupted between two instructions of Python, never inside a call into C. So
whatever one switch can do is seen by stopping the first call before its first instruction, its second one and so on,
and each time running the second call as a whole in the gap. That takes no luck, and no second thread.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import count
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")
U = TypeVar("U")

# A call of more instructions than this was not meant to be tried out at each of them.
STEPS_LIMIT = 10_000


def interleaved(make: Callable[[], tuple[Callable[[], T], Callable[[], U]]]) -> list[tuple[T, U]]:
    """What both calls returned, for every instruction of the first before which the second may run.

    make: fresh things, and the two calls that share them. What one of the calls raises comes out.
    """
    ended: list[tuple[T, U]] = []
    for step in count(1):
        assert step <= STEPS_LIMIT, "the first call takes too many instructions"
        first, second = make()
        gap = _Gap(step, second)
        returned = gap.run(first)
        if not gap.returned:
            return ended
        ended.append((returned, gap.returned[0]))
    raise AssertionError("count() does not end")


class _Gap:
    """Calls `inside` once, before the instruction of that number."""

    def __init__(self, step: int, inside: Callable[[], Any]) -> None:
        self._left = step
        self._inside = inside
        self.returned: list[Any] = []

    def run(self, call: Callable[[], T]) -> T:
        before = sys.gettrace()
        sys.settrace(self._trace)
        try:
            return call()
        finally:
            sys.settrace(before)

    def _trace(self, frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code is _Gap.run.__code__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            self._left -= 1
            if not self._left:
                self.returned.append(self._inside())
        return self._trace
