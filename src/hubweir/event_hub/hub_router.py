"""Routes events to the partitions of a hub: by key, or to the next in turn."""

from __future__ import annotations

from array import array

from hubweir.event_hub.partition_key import partition_of_key


class HubRouter:
    """The routing half of one event hub, as one gateway process holds it.

    A transfer goes whole to one partition: the one its address names; else the one of its key or publisher (promise
    P5); else the next in turn. A partition whose store is down keeps its turn: its sender gets a retriable error and
    sends again, to the next one.
    """

    def __init__(self, partition_count: int) -> None:
        self.partition_count = partition_count
        self._next = 0

    def next_partition(self) -> int:
        """The partition for a transfer without a key."""
        partition = self._next
        self._next = (partition + 1) % self.partition_count
        return partition

    def next_partitions(self, count: int) -> array[int]:
        """The partitions for so many transfers without a key, one after the other."""
        order = array("q", [(self._next + step) % self.partition_count for step in range(self.partition_count)])
        self._next = (self._next + count) % self.partition_count
        return (order * (count // self.partition_count + 1))[:count]

    def partition_of_key(self, key: bytes) -> int:
        """The partition of a key (UTF-8 bytes)."""
        return partition_of_key(key, self.partition_count)
