"""At most one throughput unit a partition, at its owner: what is charged for a send, and given back when it fails.

Whether partitions are capped is the gateway's to say (CapPartitions), since only it knows that units are on. A send
carries what it counts for: the bytes of its deliveries as they came, and its events. A read is answered when what it
found is due (reading.py). After a crash the caps are full again.
"""

from __future__ import annotations

from dataclasses import dataclass

from hubweir.broker.hosted_partitions import HostedPartition
from hubweir.throughput_unit.partition_cap import PartitionCap, partition_busy_error


@dataclass(frozen=True, slots=True)
class Charge:
    """What one send took from its partition's cap, if there was one."""

    cap: PartitionCap | None
    size_bytes: int
    events: int

    def give_back(self, now_ms: int) -> None:
        """It is certainly not stored."""
        if self.cap is not None:
            self.cap.give_back(self.size_bytes, self.events, now_ms)


def charge(hosted: HostedPartition, size_bytes: int, events: int, now_ms: int) -> Charge:
    """Take a send from the partition's cap; ServiceError SERVER_BUSY, and nothing is taken, when it is over it.

    now_ms: monotonic.
    """
    if hosted.cap is not None:
        busy = hosted.cap.admit(size_bytes, events, now_ms)
        if busy is not None:
            raise partition_busy_error(hosted.partition.hub, hosted.partition.partition_id, busy)
    return Charge(hosted.cap, size_bytes, events)
