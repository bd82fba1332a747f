"""Routes events to the partitions of a hub: by key, or to the next in turn."""

from __future__ import annotations

from array import array
from collections.abc import Collection

from hubweir.event_hub.partition_key import partition_of_key


class HubRouter:
    """The routing half of one event hub, as one gateway process holds it.

    A transfer goes whole to one partition: the one its address names; else the one of its key or publisher (promise
    P5); else the next in turn. Those whose broker is away are passed over, unless all are.
    """

    def __init__(self, partition_count: int) -> None:
        self.partition_count = partition_count
        self._next = 0

    def next_partition(self, away: Collection[int] = ()) -> int:
        """The partition for a transfer without a key. away: the partitions that are."""
        [partition] = self.next_partitions(1, away)
        return partition

    def next_partitions(self, count: int, away: Collection[int] = ()) -> array[int]:
        """The partitions for so many transfers without a key, one after the other."""
        turns = [(self._next + step) % self.partition_count for step in range(self.partition_count)]
        up = [each for each in turns if each not in away] if away else turns
        order = array("q", up or turns)
        self._next = (order[(count - 1) % len(order)] + 1) % self.partition_count if count else self._next
        return (order * (count // len(order) + 1))[:count]

    def partition_of_key(self, key: bytes) -> int:
        """The partition of a key (UTF-8 bytes)."""
        return partition_of_key(key, self.partition_count)
