"""Named counters and gauges of one process. No exporter here: whoever reports takes a snapshot.

Counters only grow; gauges are set. Names are dotted, in the house's words: `log.appended_bytes`,
`gateway.connections`. Not shared between threads: each loop counts its own.
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
