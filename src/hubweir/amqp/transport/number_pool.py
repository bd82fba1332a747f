"""Numbers that name something while it lives: channels of a connection, handles of a session."""

from __future__ import annotations


class NumberPool:
    """Gives out the lowest free number, so that numbers stay small and one byte wide."""

    __slots__ = ("_lowest", "_taken")

    def __init__(self) -> None:
        self._taken: set[int] = set()
        self._lowest = 0  # every number below it is taken

    def take(self, highest: int, *, wanted: int | None = None) -> int | None:
        """A number up to highest, wanted itself where it is free; None when all are in use."""
        if wanted is None or wanted > highest or wanted in self._taken:
            while self._lowest in self._taken:
                self._lowest += 1
            wanted = self._lowest
        if wanted > highest:
            return None
        self._taken.add(wanted)
        return wanted

    def give_back(self, number: int) -> None:
        """Free a number that was taken."""
        self._taken.discard(number)
        self._lowest = min(self._lowest, number)
