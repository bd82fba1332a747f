"""Which partition of a hub an event goes to: by its key, or the next in turn."""

from __future__ import annotations

from array import array

from hubweir.event_hub.partition_key import partition_of_key


class HubRouter:
    """The routing half of one event hub, as one gateway process holds it.

    A transfer goes whole to one partition: the one its address names; else the one of its key or publisher; else the
    next in turn. Partitions that cannot take events now (their store is down) are passed over in turn, never for a
    key: a keyed event waits for its own partition (promise P5).
    """

    def __init__(self, partition_count: int) -> None:
        self.partition_count = partition_count
        self._next = 0
        self._closed: set[int] = set()

    def next_partition(self) -> int:
        """The partition for a transfer without a key. When none is open, the turn goes on over all of them."""
        for _ in range(self.partition_count):
            partition = self._advance()
            if partition not in self._closed:
                return partition
        return self._advance()

    def next_partitions(self, count: int) -> array[int]:
        """The partitions for so many transfers without a key, one after the other."""
        order = [(self._next + step) % self.partition_count for step in range(self.partition_count)]
        rounds = array("q", [partition for partition in order if partition not in self._closed] or order)
        turns = (rounds * (count // len(rounds) + 1))[:count]
        if turns:
            self._next = (turns[-1] + 1) % self.partition_count
        return turns

    def partition_of_key(self, key: bytes) -> int:
        """The partition of a key (UTF-8 bytes), open or not."""
        return partition_of_key(key, self.partition_count)

    def close_partition(self, partition: int) -> None:
        """Pass this partition over until it is opened again."""
        self._closed.add(partition)

    def open_partition(self, partition: int) -> None:
        """Send to it in its turn again."""
        self._closed.discard(partition)

    def _advance(self) -> int:
        partition = self._next
        self._next = (partition + 1) % self.partition_count
        return partition
