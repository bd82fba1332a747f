"""The partitions that a broker hosts: each an open log, its readers, and how long it keeps events.

What a store holds says nothing of hubs: whoever keeps the catalog names every partition once after each start, by
OpenPartition, which never makes a log, or by CreatePartition when its making was interrupted (openings.py). So damage
and loss are found and reported at the start, no first send waits for a recovery that nobody began, and a log that no
catalog names stays closed and untouched.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from hubweir.broker.capture.runner import CaptureRunner
from hubweir.broker.commands.partition import ChangePartition, CreatePartition
from hubweir.env import Result
from hubweir.errors import ENTITY_MOVED, CorruptStore, ServiceError
from hubweir.event_hub.consumer_group import ReaderTable
from hubweir.event_hub.partition import Partition
from hubweir.event_hub.producer_log import producer_notes, replay, restore_snapshot
from hubweir.event_hub.producer_sequence import ProducerSequences
from hubweir.event_hub.told_losses import ToldLosses
from hubweir.messaging_store.log import Durability, Log
from hubweir.messaging_store.retention import expire
from hubweir.messaging_store.segment_engine.open_log import LogOpening, OpenedLog
from hubweir.messaging_store.trusted_clock import TrustedClock
from hubweir.throughput_unit.partition_cap import PartitionCap

logger = logging.getLogger(__name__)

# Retention removes whole segments, so an event may stay longer than it must by the age of one: an eighth of retention.
SEGMENTS_OF_RETENTION = 8


class LogStore(Protocol):
    """The part of a messaging store that a broker uses. clock: what stamps and removes its events."""

    @property
    def clock(self) -> TrustedClock: ...

    def keep_clock(self) -> None:
        """Tell what is wrong with the clock, and make what it knows durable, away from the loop. Cheap."""

    def begin_opening(self, log_id: str, *, durability: Durability, name: str, makes: bool) -> LogOpening:
        """Have a log opened by recover_log. name: what alarms call it. makes: it is made when it is not there."""

    def recover_log(self, opening: LogOpening) -> OpenedLog:
        """Open the log for add_log; in any thread. LogLost when it is not there, other StoreErrors or OSError.

        Raises EpochBehind when it is to be tried again behind take_epoch_above.
        """

    def add_log(self, opened: OpenedLog) -> Log:
        """The log is open from now on."""

    def take_epoch_above(self, newest: int, on_done: Callable[[Result[int]], None]) -> None:
        """Make a writer epoch durable that is above one found in a log."""

    def close_log(self, log_id: str, on_done: Callable[[], None]) -> None:
        """Close the log as Log.close does; does nothing but call back when it is not open."""

    def delete_log(self, log_id: str, on_done: Callable[[Result[None]], None]) -> None:
        """Remove the files of a closed log, away from the loop; only calls back when it is gone. Result: OSError."""

    def look_for_owner(self) -> None:
        """See, away from the loop, whether another process owns the folder; then every log is offline for good."""

    def close(self, on_done: Callable[[], None]) -> None:
        """Close every log, with its idle mark, and give the folder free."""


@dataclass(slots=True)
class HostedPartition:
    """One partition at its owner. retention_ms may change; the log keeps the durability.

    producers_saved_at: the index that the newest snapshot of its producers covers; None: it never had a producer.
    """

    partition: Partition
    retention_ms: int
    namespace: str
    readers: ReaderTable = field(default_factory=ReaderTable)
    producers: ProducerSequences = field(default_factory=ProducerSequences)
    producers_saved_at: int | None = None
    cap: PartitionCap | None = None
    capture: CaptureRunner | None = None
    losses: ToldLosses = field(default_factory=ToldLosses)

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
        # Of a partition that is to be open and is not.
        self.why_not: Callable[[str], ServiceError | None] = lambda log_id: None

    def __len__(self) -> int:
        return len(self._hosted)

    def __iter__(self) -> Iterator[HostedPartition]:
        """All of them, in the order they were hosted."""
        return iter(tuple(self._hosted.values()))

    def __contains__(self, log_id: str) -> bool:
        return log_id in self._hosted

    def get(self, log_id: str) -> HostedPartition:
        """The partition. ServiceError: why it is not open; ENTITY_MOVED, which makes clients look again, when it is not
        hosted here."""
        hosted = self._hosted.get(log_id)
        if hosted is None:
            problem = self.why_not(log_id)
            if problem is not None:
                raise problem
            raise ServiceError(
                ENTITY_MOVED, "the partition is not here any more: it was deleted or moved; attach again"
            )
        return hosted

    def make_ready(self, command: CreatePartition, log: Log) -> HostedPartition:
        """A partition on its log, which was just opened, for `add`. Blocking, in any thread: its producers are read."""
        hosted = HostedPartition(
            Partition(log, command.hub, command.partition_id), command.retention_ms, command.namespace
        )
        _load_producers(hosted)
        return hosted

    def add(self, hosted: HostedPartition) -> None:
        """Host a partition from now on."""
        hosted.log.set_roll_age(hosted.retention_ms // SEGMENTS_OF_RETENTION)
        hosted.cap = self._new_cap(hosted.namespace)
        self._hosted[hosted.log.log_id] = hosted

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
            self._store.look_for_owner()
        if self._sweeping:
            hosted = self._hosted.get(self._sweeping.pop())
            if hosted is not None:
                try:
                    self._on_swept(hosted, now_ms)
                    _expire(hosted, now_ms)
                except Exception as fault:  # of ours: it stops this partition, and the sweep goes on (rule R4)
                    hosted.log.stop(fault)
        return bool(self._sweeping)


def name_of(partition: CreatePartition | HostedPartition) -> str:
    """What people call a partition; its namespace too, where it is known."""
    where = f" in namespace {partition.namespace}" if partition.namespace else ""
    its = partition.partition if isinstance(partition, HostedPartition) else partition
    return f"partition {its.partition_id} of {its.hub}{where}"


def _expire(hosted: HostedPartition, now_ms: int) -> None:
    """Trim a partition; what is not captured yet stays longer, as far as the quota of capture goes."""
    keep_from = None if hosted.capture is None else hosted.capture.keep_from
    if hosted.capture is None or keep_from is None:
        expire(hosted.log, now_ms=now_ms, retention_ms=hosted.retention_ms)
    else:
        longer_ms = hosted.capture.kept_longer_ms
        expire(
            hosted.log, now_ms=now_ms, retention_ms=hosted.retention_ms, keep_from=keep_from, kept_longer_ms=longer_ms
        )


def _load_producers(hosted: HostedPartition) -> None:
    """The producers of a partition from its newest snapshot and the log behind it. Blocks; only where there were any.

    What damage took from the log is not known: a producer's repeated send may then be stored twice, or an older epoch
    be let in. The damage has its alarm, and what follows it counts.
    """
    log = hosted.log
    found = log.load_snapshot()
    if found is None and not producer_notes(log.notes.values()) and log.notes_damage is None:
        return
    saved_at, state = (log.bounds.first_index, None) if found is None else found
    hosted.producers_saved_at = None if found is None else saved_at

    def damaged(error: CorruptStore) -> None:
        logger.error("idempotent producers of %s cannot all be told from the log: %s", log.log_id, error)

    if log.notes_damage is not None:
        damaged(CorruptStore(log.notes_damage))
    try:
        if state is not None:
            restore_snapshot(hosted.producers, state)
        replay(hosted.producers, log.replay(saved_at, on_damage=damaged), log.notes.values(), saved_at)
    except CorruptStore as error:
        damaged(error)
