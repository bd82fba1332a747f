"""The partitions that a broker hosts: each an open log, its readers, and how long it keeps events.

What a store holds says nothing of hubs: whoever keeps the catalog names every partition once after each start, by
CreatePartition, which makes the log or opens the one that is there. So all logs of the catalog are open before the
first connection comes: damage is found and reported at the start, no first send waits for a recovery, and a log that
no catalog names stays closed and untouched.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from hubweir.broker.commands import ChangePartition, CreatePartition
from hubweir.broker.hosted_capture import HostedCapture
from hubweir.env import Result
from hubweir.errors import ENTITY_MOVED, CorruptStore, ServiceError
from hubweir.event_hub.consumer_group import ReaderTable
from hubweir.event_hub.partition import Partition
from hubweir.event_hub.producer_log import replay, restore_snapshot
from hubweir.event_hub.producer_sequence import ProducerSequences
from hubweir.messaging_store.log import Durability, Log
from hubweir.throughput_unit.partition_cap import PartitionCap

logger = logging.getLogger(__name__)

# Retention removes whole segments, so an event may stay longer than it must by the age of one: an eighth of retention.
SEGMENTS_OF_RETENTION = 8


class LogStore(Protocol):
    """What a broker needs of its messaging store."""

    def create_log(self, log_id: str, *, durability: Durability) -> Log:
        """Make the log, or open the one that is there. Blocks; StoreError or OSError when it cannot be."""

    def log_folder(self, log_id: str) -> str:
        """The folder of a log, as a path of the Env's files."""

    def close_log(self, log_id: str, on_done: Callable[[], None]) -> None:
        """Close the log as Log.close does; does nothing but call back when it is not open."""

    def delete_log(self, log_id: str, on_done: Callable[[Result[None]], None]) -> None:
        """Remove the files of a closed log, away from the loop; only calls back when it is gone. Result: OSError."""

    def close(self, on_done: Callable[[], None]) -> None:
        """Close every log, with its idle mark, and give the folder free."""


@dataclass(slots=True)
class HostedPartition:
    """One partition at its owner. retention_ms may change; the log keeps the durability.

    producers_saved_at: the index that the newest snapshot of its producers covers; None: it never had a producer.
    snapshots_due: how many snapshots are wanted until both hold every fence of a producer, so that the log may trim up
    to the last record before it.
    """

    partition: Partition
    retention_ms: int
    namespace: str
    readers: ReaderTable = field(default_factory=ReaderTable)
    producers: ProducerSequences = field(default_factory=ProducerSequences)
    producers_saved_at: int | None = None
    snapshots_due: int = 0
    cap: PartitionCap | None = None
    capture: HostedCapture | None = None

    @property
    def log(self) -> Log:
        return self.partition.log


class HostedPartitions:
    """The open partitions of one store, by log id."""

    def __init__(self, store: LogStore, on_swept: Callable[[HostedPartition, int], None]) -> None:
        """on_swept: called with every partition that a sweep visits, and the time."""
        self._store = store
        self._on_swept = on_swept
        self._hosted: dict[str, HostedPartition] = {}
        self._sweeping: list[str] = []
        self._capped_at_ms: dict[str, int] = {}  # by namespace

    def __len__(self) -> int:
        return len(self._hosted)

    def __iter__(self) -> Iterator[HostedPartition]:
        """All of them, in the order they were hosted."""
        return iter(tuple(self._hosted.values()))

    def get(self, log_id: str) -> HostedPartition:
        """The partition; ServiceError ENTITY_MOVED, which makes clients look again, when it is not hosted here."""
        hosted = self._hosted.get(log_id)
        if hosted is None:
            raise ServiceError(
                ENTITY_MOVED, "the partition is not here any more: it was deleted or moved; attach again"
            )
        return hosted

    def host(self, command: CreatePartition) -> HostedPartition:
        """Make or open the log and host it; the partition as it is when it was hosted before. Blocks while it opens.

        After a crash in between: the log is there or not, and the same command makes it good.
        """
        hosted = self._hosted.get(command.log_id)
        if hosted is None:
            log = self._store.create_log(command.log_id, durability=command.durability)
            log.set_roll_age(command.retention_ms // SEGMENTS_OF_RETENTION)
            hosted = HostedPartition(
                Partition(log, command.hub, command.partition_id), command.retention_ms, command.namespace
            )
            _load_producers(hosted)
            hosted.cap = self._new_cap(command.namespace)
            self._hosted[command.log_id] = hosted
        return hosted

    def change(self, command: ChangePartition) -> None:
        """Set retention and durability."""
        hosted = self.get(command.log_id)
        hosted.retention_ms = command.retention_ms
        hosted.log.set_roll_age(command.retention_ms // SEGMENTS_OF_RETENTION)
        if hosted.log.durability != command.durability:
            hosted.log.set_durability(command.durability)

    def set_caps(self, namespace: str, is_on: bool, now_ms: int) -> None:
        """Cap every partition of a namespace, those to come too, or none. Caps that are there go on.

        now_ms: monotonic.
        """
        if is_on == (namespace in self._capped_at_ms):
            return
        if is_on:
            self._capped_at_ms[namespace] = now_ms
        else:
            del self._capped_at_ms[namespace]
        for hosted in self._hosted.values():
            if hosted.namespace == namespace:
                hosted.cap = self._new_cap(namespace)

    def _new_cap(self, namespace: str) -> PartitionCap | None:
        capped_at_ms = self._capped_at_ms.get(namespace)
        return None if capped_at_ms is None else PartitionCap(now_ms=capped_at_ms)

    def drop(self, log_id: str) -> HostedPartition | None:
        """Host it no longer; its log stays open. None when it was not hosted."""
        return self._hosted.pop(log_id, None)

    def expire_next(self, now_ms: int) -> bool:
        """Trim the next partition of this sweep; False when the sweep is through."""
        if not self._sweeping:
            self._sweeping = list(self._hosted)
        if self._sweeping:
            hosted = self._hosted.get(self._sweeping.pop())
            if hosted is not None:
                try:
                    self._on_swept(hosted, now_ms)
                    _expire(hosted, now_ms)
                except Exception as fault:  # of ours: it stops this partition, and the sweep goes on (rule R4)
                    hosted.log.stop(fault)
        return bool(self._sweeping)


def _expire(hosted: HostedPartition, now_ms: int) -> None:
    """Trim a partition; what is not captured yet stays longer, as far as the quota of capture goes."""
    keep_from = None if hosted.capture is None else hosted.capture.keep_from
    if hosted.capture is None or keep_from is None:
        hosted.log.expire(now_ms=now_ms, retention_ms=hosted.retention_ms)
    else:
        longer_ms = hosted.capture.kept_longer_ms
        hosted.log.expire(
            now_ms=now_ms, retention_ms=hosted.retention_ms, keep_from=keep_from, kept_longer_ms=longer_ms
        )


def _load_producers(hosted: HostedPartition) -> None:
    """The producers of a partition from its newest snapshot and the log behind it. Blocks; only where there were any.

    Behind damage in the log nothing is known: then a producer's repeated send may be stored twice, and the log says so.
    """
    found = hosted.log.load_snapshot()
    if found is None:
        return
    saved_at, state = found
    hosted.producers_saved_at, hosted.snapshots_due = saved_at, 2
    try:
        restore_snapshot(hosted.producers, state)
        # From the record before on: fences behind it have its segment, and may be newer than the snapshot.
        replay(hosted.producers, hosted.log.replay(max(0, saved_at - 1)), saved_at)
    except CorruptStore as error:
        hosted.snapshots_due = 0  # no hurry to put less in the place of snapshots that hold more
        logger.error("idempotent producers of %s cannot all be told from the log: %s", hosted.log.log_id, error)
