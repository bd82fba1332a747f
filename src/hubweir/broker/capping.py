"""At most one throughput unit a partition, at its owner: what is charged for a send.

Whether partitions are capped is the gateway's to say (CapPartitions), since only it knows that units are on. A send
carries what it counts for: the bytes of its deliveries as they came, and its events; pending_store.py gives back what a
send was charged that is not stored. A read is answered when what it
found is due (opened_reader.py). When that begins and when it is over the log is told (throttle_lines.py). After a crash
the caps are full again.
"""

from __future__ import annotations

from hubweir.broker.throttle_lines import ThrottleLines
from hubweir.env import Env
from hubweir.event_hub.partition import Partition
from hubweir.service_log import PARTITION_THROTTLED, PARTITION_THROTTLED_OVER
from hubweir.throughput_unit.partition_cap import PartitionCap, partition_busy_error


class CappedNamespaces:
    """The namespaces of a broker whose partitions are capped, those to come too."""

    def __init__(self) -> None:
        self._since_ms: dict[str, int] = {}

    def set(self, namespace: str, *, is_on: bool, now_ms: int) -> bool:
        """Whether that is a change: if not, caps that are there go on. now_ms: monotonic."""
        if is_on == (namespace in self._since_ms):
            return False
        if is_on:
            self._since_ms[namespace] = now_ms
        else:
            del self._since_ms[namespace]
        return True

    def new_cap(self, namespace: str) -> PartitionCap | None:
        """For one of its partitions; None: it is not capped."""
        since_ms = self._since_ms.get(namespace)
        return None if since_ms is None else PartitionCap(now_ms=since_ms)


class Capping:
    """One partition with its cap. cap: None while it has none. namespace: whose hub it is."""

    __slots__ = ("_env", "_lines", "_namespace", "_partition", "cap")

    def __init__(self, env: Env, partition: Partition, namespace: str) -> None:
        self._env = env
        self._partition = partition
        self._namespace = namespace
        self._lines: ThrottleLines | None = None  # once it was over its unit: most partitions never are
        self.cap: PartitionCap | None = None

    def charge(self, size_bytes: int, events: int) -> PartitionCap | None:
        """Take a send from the cap, and return it; ServiceError SERVER_BUSY, and nothing is taken, when it is over."""
        cap = self.cap
        if cap is not None:
            busy = cap.admit(size_bytes, events, self._env.monotonic_ms())
            if busy is not None:
                error = partition_busy_error(self._partition.hub, self._partition.partition_id, busy)
                self._throttled().refused(error.text)
                raise error
        return cap

    def read_waits(self) -> None:
        """The cap lets what a read found out only later."""
        self._throttled().waits(1)

    def end(self) -> None:
        """The partition is served here no more: no line comes of it."""
        if self._lines is not None:
            self._lines.stop()

    def _throttled(self) -> ThrottleLines:
        if self._lines is None:
            partition = self._partition
            whose = {"namespace": self._namespace, "hub": partition.hub, "partition": partition.partition_id}
            self._lines = ThrottleLines(self._env, PARTITION_THROTTLED, PARTITION_THROTTLED_OVER, **whose)
        return self._lines
