"""What was seen of the flights, so that two sides can be compared: the CSV, and what a reader got.

Count, one digest a key over the bodies in the order they came, one digest over the unkeyed bodies in any order, and
the delays by carrier. Two equal tallies mean: nothing lost, nothing twice, nothing changed, order kept per key.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import msgspec


class _Delay(msgspec.Struct):
    carrier: str
    dep_delay: int | None


_DECODER = msgspec.json.Decoder(_Delay)
_WIDE = 1 << 128


@dataclass(slots=True)
class Tally:
    """A running account of events. keyed: digest by key; unkeyed: sum of digests; delays: (minutes, flights)."""

    count: int = 0
    unkeyed: int = 0
    unkeyed_count: int = 0
    keyed: dict[str, hashlib.blake2b] = field(default_factory=dict)
    delays: dict[str, tuple[int, int]] = field(default_factory=dict)

    def add(self, key: str | None, body: bytes) -> None:
        """Take one event."""
        self.count += 1
        if key is None:
            self.unkeyed_count += 1
            one = hashlib.blake2b(body, digest_size=16).digest()
            self.unkeyed = (self.unkeyed + int.from_bytes(one, "big")) % _WIDE
        else:
            digest = self.keyed.get(key)
            if digest is None:
                digest = self.keyed[key] = hashlib.blake2b(digest_size=16)
            digest.update(body)
        flight = _DECODER.decode(body)
        if flight.dep_delay is not None:
            minutes, flights = self.delays.get(flight.carrier, (0, 0))
            self.delays[flight.carrier] = (minutes + flight.dep_delay, flights + 1)

    def mean_delays(self) -> dict[str, float]:
        """Minutes of mean departure delay by carrier, over the flights that left."""
        return {carrier: minutes / flights for carrier, (minutes, flights) in sorted(self.delays.items())}


def differences(expected: Tally, seen: Tally) -> list[str]:
    """What is wrong with `seen`, one sentence a finding; empty when both say the same."""
    found = []
    if seen.count != expected.count:
        found.append(f"{expected.count} events were published, {seen.count} were read")
    if seen.keyed.keys() != expected.keyed.keys():
        found.append(f"{len(expected.keyed)} keys were published, {len(seen.keyed)} were read")
    wrong = [key for key, want in expected.keyed.items() if key in seen.keyed and not _same(want, seen.keyed[key])]
    if wrong:
        found.append(f"order or content differs for {len(wrong)} keys, first {min(wrong)}")
    if (seen.unkeyed_count, seen.unkeyed) != (expected.unkeyed_count, expected.unkeyed):
        found.append(f"events without a key differ: {expected.unkeyed_count} against {seen.unkeyed_count}")
    if seen.mean_delays() != expected.mean_delays():
        found.append("the mean delay per carrier differs")
    return found


def _same(one: hashlib.blake2b, other: hashlib.blake2b) -> bool:
    return one.digest() == other.digest()
