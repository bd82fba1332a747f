"""At most one throughput unit a partition, at its owner: what is charged for a send, and given back when it fails.

Whether partitions are capped is the gateway's to say (CapPartitions), since only it knows that units are on. A send
carries what it counts for: the bytes of its deliveries as they came, and its events. A read is answered when what it
found is due (opened_reader.py). After a crash the caps are full again.
"""

from __future__ import annotations

from dataclasses import dataclass

from hubweir.broker.hosted_partitions import HostedPartition
from hubweir.env import Clock
from hubweir.throughput_unit.partition_cap import PartitionCap, partition_busy_error


@dataclass(frozen=True, slots=True)
class Charge:
    """The charge of one send on its partition's cap, if there was one."""

    cap: PartitionCap | None
    size_bytes: int
    events: int

    def give_back(self, now_ms: int) -> None:
        """It is certainly not stored."""
        if self.cap is not None:
            self.cap.give_back(self.size_bytes, self.events, now_ms)


FREE = Charge(None, 0, 0)  # of every send to a partition that has no cap


def charge(hosted: HostedPartition, size_bytes: int, events: int, clock: Clock) -> Charge:
    """Take a send from the partition's cap; ServiceError SERVER_BUSY, and nothing is taken, when it is over it."""
    if hosted.cap is None:
        return FREE
    busy = hosted.cap.admit(size_bytes, events, clock.monotonic_ms())
    if busy is not None:
        raise partition_busy_error(hosted.partition.hub, hosted.partition.partition_id, busy)
    return Charge(hosted.cap, size_bytes, events)
