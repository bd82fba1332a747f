"""Named counters and gauges of one process. No exporter here: whoever reports takes a snapshot.

Counters only grow; gauges are set, and one that several speak of is the sum of what they say. Names are dotted, in the
house's words: `log.appended_bytes`, `gateway.connections`. Not shared between threads: each loop counts its own.
"""

from __future__ import annotations


class Counters(dict[str, int]):
    """Integers by name: `counters["log.syncs"] += 1` counts, and `=` sets a gauge. An unknown name reads as zero.

    A dict, because a batch counts six times: a method each would cost more than all the sums.
    """

    __slots__ = ()

    def __missing__(self, name: str) -> int:
        return 0

    def snapshot(self) -> dict[str, int]:
        """All values now, by name, in the order of the names."""
        return dict(sorted(self.items()))


class GaugeShare:
    """What one of several, such as each broker of a process, says of a gauge."""

    __slots__ = ("_counters", "_name", "_said")

    def __init__(self, counters: Counters, name: str) -> None:
        self._counters = counters
        self._name = name
        self._said = 0

    def set(self, value: int) -> None:
        """Say this from now on, in the place of what was said before."""
        self._counters[self._name] += value - self._said
        self._said = value
