"""Named counters, gauges and latencies of one process. No exporter here: whoever reports takes a snapshot.

Counters only grow; gauges are set, and one that several speak of is the sum of what they say. Names are dotted, in the
house's words: `log.appended_bytes`, `gateway.connections`. Not shared between threads: each loop counts its own.
metrics.py says how each is shown.
"""

from __future__ import annotations

from collections.abc import Mapping

# 2**63 us are 300,000 years: no time that can be measured is behind the last one.
_BUCKETS = 64


class Latency:
    """How often something took how long: buckets[b] counts what took less than 2**b us, and not less than 2**(b-1).

    Whoever measures counts by himself, with two statements and no Python call (0.3 us): `latency.sum_s += took_s` and
    `latency.buckets[int(took_s * 1e6).bit_length()] += 1`, where took_s is of Env.monotonic_s.
    """

    __slots__ = ("buckets", "sum_s")

    def __init__(self) -> None:
        self.buckets = [0] * _BUCKETS
        self.sum_s = 0.0


class Counters(dict[str, int]):
    """Integers by name: `counters["log.syncs"] += 1` counts, and `=` sets a gauge. An unknown name reads as zero.

    A dict, because a batch counts six times: a method each would cost more than all the sums.
    send, commit, sync, read: what metrics.py says of the latencies of these names.
    """

    __slots__ = ("commit", "read", "send", "sync")

    def __init__(self, values: Mapping[str, int] | None = None) -> None:
        super().__init__(values or {})
        self.send, self.commit, self.sync, self.read = Latency(), Latency(), Latency(), Latency()

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
