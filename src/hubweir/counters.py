"""Named counters and gauges of one process. No exporter here: whoever reports takes a snapshot.

Counters only grow; gauges are set. Names are dotted, in the house's words: `log.appended_bytes`,
`gateway.connections`. Not shared between threads: each loop counts its own.
"""

from __future__ import annotations


class Counters:
    """A bag of integers by name; an unknown name starts at zero."""

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: dict[str, int] = {}

    def add(self, name: str, amount: int = 1) -> None:
        """Let a counter grow."""
        self._values[name] = self._values.get(name, 0) + amount

    def set(self, name: str, value: int) -> None:
        """Set a gauge."""
        self._values[name] = value

    def get(self, name: str) -> int:
        """The value now; zero for a name that was never counted."""
        return self._values.get(name, 0)

    def snapshot(self) -> dict[str, int]:
        """All values now, by name, in the order of the names."""
        return dict(sorted(self._values.items()))
