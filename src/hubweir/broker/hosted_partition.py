"""A partition of an event hub at its owner: the resident of its log, with readers, producers, cap and capture.

Appends and questions are answered here; the rest goes to readers.py, producers.py and capture/switch.py.
After a crash a partition is its log, and its readers and the openings of its producers are gone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from hubweir.broker.capping import Capping
from hubweir.broker.capture.switch import CaptureSwitch
from hubweir.broker.commands.capture import AskCaptureState
from hubweir.broker.commands.command import LogCommand, OnAnswer, Owner
from hubweir.broker.commands.partition import (
    AppendEvents,
    AskPartitionInfo,
    ChangePartition,
    CreatePartition,
    PartitionInfo,
    PurgePartition,
)
from hubweir.broker.commands.process import Done
from hubweir.broker.commands.producer import AppendNumbered, CloseProducer, OpenProducer
from hubweir.broker.commands.reader import CancelRead, CloseReader, ConfirmReaderClosed, OpenReader, ReadEvents
from hubweir.broker.partition_tools import PartitionTools
from hubweir.broker.pending_store import PendingStore
from hubweir.broker.producers import Producers
from hubweir.broker.purge import Purge
from hubweir.broker.readers import Readers
from hubweir.broker.refusals import refusal_of
from hubweir.broker.residents import Handler
from hubweir.errors import NOT_ALLOWED, NOT_FOUND, HubweirError, ServiceError
from hubweir.event_hub.partition import Partition
from hubweir.messaging_store.log import Log, Refused
from hubweir.messaging_store.retention import expire
from hubweir.metrics import INCOMING_BYTES, INCOMING_MESSAGES, SIZE, Samples

# Retention removes whole segments, so an event may stay longer than it must by the age of one: an eighth of retention.
SEGMENTS_OF_RETENTION = 8


class HostedPartition:
    """One partition at its owner. namespace: whose hub it is. retention_ms may change; the log keeps the durability."""

    def __init__(self, tools: PartitionTools, command: CreatePartition, log: Log) -> None:
        """On its log, which was just opened.

        Raises NewerFormat; ServiceError when it is to be captured and this broker has no capture.
        """
        self.partition = Partition(log, command.hub, command.partition_id)
        self.namespace = command.namespace
        self.retention_ms = command.retention_ms
        self.capping = Capping(tools.env, self.partition, command.namespace)
        self.readers = Readers(tools, self.partition, self.capping)
        self.producers = Producers(tools, log, self.capping)
        self.capture = CaptureSwitch(tools.captures, self.partition, namespace=command.namespace, name=command.name)
        self._labels = command.namespace, command.hub
        self._tools = tools
        self._prepared = self.capture.prepare(command.capture)

    @property
    def log(self) -> Log:
        return self.partition.log

    @property
    def resident_id(self) -> str:
        return self.log.log_id

    def set_cap(self) -> None:
        """Cap it or not, as its namespace says now."""
        self.capping.cap = self._tools.capped.new_cap(self.namespace)

    # As a resident (residents.py)

    def settle(self, on_done: Callable[[Refused | None], None]) -> None:
        def loaded(refused: Refused | None) -> None:
            if refused is not None:
                on_done(refused)
            else:
                self.capture.settle(self._prepared, on_done)

        self.producers.snapshots.load(loaded)

    def begin(self) -> None:
        self._set_retention(self.retention_ms)
        self.set_cap()
        self.capture.begin(self._prepared)

    def measure(self, samples: Samples) -> None:
        bounds, labels = self.log.bounds, self._labels
        samples[INCOMING_MESSAGES][labels] += bounds.next_index
        samples[INCOMING_BYTES][labels] += bounds.next_offset
        samples[SIZE][labels] += bounds.next_offset - bounds.first_offset
        if self.readers:
            self.readers.measure(samples, labels)
        if self.capture.runner is not None:
            self.capture.measure(samples, labels)

    def owner_gone(self, owner: Owner) -> None:
        self.producers.owner_gone(owner)
        self.readers.owner_gone(owner)

    def sweep(self, now_ms: int) -> None:
        self.producers.sweep(now_ms)
        self._expire(now_ms)

    def end(self, on_idle: Callable[[], None]) -> None:
        partition = self.partition
        # Clients match the phrase: with it they take the entity for absent, without it the service for broken.
        text = (
            f"The messaging entity '{partition.hub}' could not be found: "
            f"its partition {partition.partition_id} was deleted"
        )
        gone = ServiceError(NOT_FOUND, text)
        self.producers.end(gone)
        self.readers.end(gone)
        self.capping.end()
        self.capture.end(on_idle)

    def stop(self, on_idle: Callable[[], None]) -> None:
        self.readers.stop()
        self.capping.end()
        self.capture.stop(on_idle)

    def _set_retention(self, retention_ms: int) -> None:
        self.retention_ms = retention_ms
        self.log.set_roll_age(retention_ms // SEGMENTS_OF_RETENTION)

    def _expire(self, now_ms: int) -> None:
        """Trim the log; what is not captured yet stays longer, as far as the quota of capture goes."""
        runner = self.capture.runner
        expire(
            self.log,
            now_ms=now_ms,
            retention_ms=self.retention_ms,
            keep_from=None if runner is None else runner.keep_from,
            kept_longer_ms=0 if runner is None else runner.kept_longer_ms,
        )

    # One method a command; a HubweirError that is raised is the refusal

    def _append(self, command: AppendEvents, on_answer: OnAnswer) -> None:
        tools = self._tools
        pending = PendingStore(tools, command, self.capping.charge(command.size_bytes, command.events), on_answer)
        try:
            self.partition.log.append(command.run, now_ms=tools.clock.stamp_ms(), on_done=pending.ended)
        except HubweirError:
            pending.give_back()
            raise

    def _read(self, command: ReadEvents, on_answer: OnAnswer) -> None:
        self.readers.get(command.reader_id).read(command, on_answer)

    def _cancel_read(self, command: CancelRead, on_answer: OnAnswer) -> None:
        self.readers.get(command.reader_id).give_up()
        on_answer(Done())

    def _open_reader(self, command: OpenReader, on_answer: OnAnswer) -> None:
        self.readers.open(command, on_answer)

    def _close_reader(self, command: CloseReader, on_answer: OnAnswer) -> None:
        self.readers.close(command.reader_id)
        on_answer(Done())

    def _confirm_reader_closed(self, command: ConfirmReaderClosed, on_answer: OnAnswer) -> None:
        self.readers.confirm_closed(command.reader_id)
        on_answer(Done())

    def _open_producer(self, command: OpenProducer, on_answer: OnAnswer) -> None:
        self.producers.open(command, on_answer)

    def _close_producer(self, command: CloseProducer, on_answer: OnAnswer) -> None:
        self.producers.close(command.opening_id)
        on_answer(Done())

    def _append_numbered(self, command: AppendNumbered, on_answer: OnAnswer) -> None:
        self.producers.append(command, on_answer)

    def _change(self, command: ChangePartition, on_answer: OnAnswer) -> None:
        self._set_retention(command.retention_ms)
        if self.log.durability != command.durability:
            self.log.set_durability(command.durability)

        def changed(refused: ServiceError | None) -> None:
            on_answer(Done() if refused is None else refusal_of(refused))

        self.capture.change(command.capture, changed)

    def _info(self, command: AskPartitionInfo, on_answer: OnAnswer) -> None:
        found = self.partition.info()
        on_answer(
            PartitionInfo(
                log_id=command.log_id,
                begin_sequence_number=found.begin_sequence_number,
                last_sequence_number=found.last_sequence_number,
                last_offset=found.last_offset,
                last_enqueued_time_ms=found.last_enqueued_time_ms,
                is_empty=found.is_empty,
                size_bytes=found.size_bytes,
            )
        )

    def _purge(self, command: PurgePartition, on_answer: OnAnswer) -> None:
        if self.capture.runner is not None:
            text = f"Event hub '{self.partition.hub}' is captured: switch capture off, then purge it."
            raise ServiceError(NOT_ALLOWED, text)
        Purge(self._tools.deadlines, self.partition, self.readers, self.producers.snapshots, on_answer)

    def _capture_state(self, command: AskCaptureState, on_answer: OnAnswer) -> None:
        on_answer(self.capture.state())

    handlers: ClassVar[Mapping[type[LogCommand], Handler]] = {
        AppendEvents: _append,
        AppendNumbered: _append_numbered,
        AskCaptureState: _capture_state,
        AskPartitionInfo: _info,
        CancelRead: _cancel_read,
        ChangePartition: _change,
        CloseProducer: _close_producer,
        CloseReader: _close_reader,
        ConfirmReaderClosed: _confirm_reader_closed,
        OpenProducer: _open_producer,
        OpenReader: _open_reader,
        PurgePartition: _purge,
        ReadEvents: _read,
    }
