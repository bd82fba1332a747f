"""Limits the lines of one kind that the log takes in a minute. The rest is counted, and its number is told at the end.

So whoever is refused all the time, or a disk that is slow at every sync, hides no other line and fills no disk. A kind
here is whatever the caller takes for one: a key with few values.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

WINDOW_S = 60.0

K = TypeVar("K", bound=Hashable)


@dataclass(slots=True)
class _Window:
    since_s: float
    lines: int = 0


class LineLimit(Generic[K]):
    """See the module's text. Time is passed in, in seconds of a clock that never runs back."""

    def __init__(self) -> None:
        self._windows: dict[K, _Window] = {}  # in the order in which they began; all are of one length
        self._limits: dict[K, int] = {}

    def takes(self, key: K, limit: int, now_s: float) -> bool:
        """Count a line, and say whether it is to be written. Ask `ended` first."""
        window = self._windows.get(key)
        if window is None:
            window = self._windows[key] = _Window(now_s)
            self._limits[key] = limit
        window.lines += 1
        return window.lines <= limit

    def ended(self, now_s: float, *, is_all: bool = False) -> list[tuple[K, int]]:
        """Of each kind whose minute is over, and of which lines were left out: how many. is_all: take all for over."""
        told = []
        for key, window in tuple(self._windows.items()):
            if now_s - window.since_s < WINDOW_S and not is_all:
                break
            del self._windows[key]
            left_out = window.lines - self._limits.pop(key)
            if left_out > 0:
                told.append((key, left_out))
        return told
