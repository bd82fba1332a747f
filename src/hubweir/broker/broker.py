"""A broker: owns one messaging store, runs commands, answers when what they ask for is durable.

Every command is answered once, maybe before `submit` returns; a bad one gets a Refusal and harms nothing. All calls
come on the owner's loop. A command that is under way is never cancelled by the end of whoever asked.
After a crash: what was answered EventsAppended is there (as the hub's durability says), what was refused as known is
not, and what was not answered is there whole or not at all.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from hubweir.alarms import Alarms
from hubweir.broker.capping import Charge, charge
from hubweir.broker.capture.places import CapturePlaces
from hubweir.broker.capture.switch import CaptureSwitch
from hubweir.broker.commands.capture import AskCaptureState
from hubweir.broker.commands.command import Answer, Command, Push
from hubweir.broker.commands.partition import (
    AppendEvents,
    AskPartitionInfo,
    ChangePartition,
    CreatePartition,
    DeletePartition,
    EventsAppended,
    OpenPartition,
    PartitionInfo,
)
from hubweir.broker.commands.process import AskCounters, CapPartitions, CloseOwner, CountersTaken, Done
from hubweir.broker.commands.producer import AppendNumbered, CloseProducer, OpenProducer
from hubweir.broker.commands.reader import CancelRead, CloseReader, ConfirmReaderClosed, OpenReader, ReadEvents
from hubweir.broker.hosted_partitions import HostedPartitions, LogStore
from hubweir.broker.openings import STOPPING, Openings
from hubweir.broker.producers import Producers
from hubweir.broker.readers import Readers
from hubweir.broker.refusals import refusal_of
from hubweir.broker.timers import SWEEP_MS, RetentionSweep
from hubweir.counters import Counters
from hubweir.env import Env, Result
from hubweir.errors import NOT_FOUND, SERVER_BUSY, STORE_OFFLINE, HubweirError, ServiceError
from hubweir.messaging_store.log import Appended, Refused

logger = logging.getLogger(__name__)

OnAnswer = Callable[[Answer], None]


class Broker:
    """See the module's text. `on_push` gets what the broker says unasked; whoever listens sets it."""

    def __init__(
        self,
        env: Env,
        store: LogStore,
        counters: Counters,
        *,
        sweep_ms: int = SWEEP_MS,
        capture_places: CapturePlaces | None = None,
        alarms: Alarms | None = None,
    ) -> None:
        """capture_places: where captured files may go; None: it captures nothing. alarms: of the process."""
        self._env = env
        self._store = store
        self._counters = counters
        self._producers = Producers(env, store.clock, counters)
        self._partitions = HostedPartitions(store, self._producers.sweep)
        self._readers = Readers(env, self._push, counters)
        self._sweep = RetentionSweep(
            env, store.clock, self._partitions.expire_next, keep_clock=store.keep_clock, sweep_ms=sweep_ms
        )
        self.alarms = Alarms(env, counters) if alarms is None else alarms
        self._captures = CaptureSwitch(env, store, counters, capture_places, self.alarms)
        self._stopping = False
        # Who waits for the end of a deletion that is under way, by log id.
        self._deleting: dict[str, list[OnAnswer]] = {}
        self._deletions: deque[str] = deque()  # those of _deleting that have not begun
        self._openings = Openings(env, store, self._partitions, self._captures, self.alarms)
        self._partitions.why_not = self._openings.why_not
        self.on_push: Callable[[Push], None] | None = None
        self._handlers: dict[type, Callable[[Any, OnAnswer], None]] = {
            CreatePartition: self._create,
            OpenPartition: self._create,
            DeletePartition: self._delete,
            ChangePartition: self._change,
            CapPartitions: self._cap,
            AppendEvents: self._append,
            OpenProducer: self._open_producer,
            CloseProducer: self._close_producer,
            AppendNumbered: self._append_numbered,
            OpenReader: self._open_reader,
            CloseReader: self._close_reader,
            ConfirmReaderClosed: self._confirm_reader_closed,
            CloseOwner: self._close_owner,
            ReadEvents: self._read,
            CancelRead: self._cancel_read,
            AskPartitionInfo: self._info,
            AskCaptureState: self._capture_state,
            AskCounters: self._ask_counters,
        }

    def start(self) -> None:
        """Begin what happens by the clock. Partitions are hosted by commands, see hosted_partitions.py."""
        self._sweep.start()

    def stop(self, on_done: Callable[[], None]) -> None:
        """Answer what waits, write what is pending with its idle mark, close the store; then call on_done, once."""
        if self._stopping:
            return
        self._stopping = True
        self._sweep.stop()
        self._readers.close_all()
        self._openings.stop(lambda: self._captures.stop(lambda: self._store.close(on_done)))

    def submit(self, command: Command, on_answer: OnAnswer) -> None:
        """Run a command; on_answer is called exactly once."""
        if self._stopping:
            on_answer(refusal_of(ServiceError(STORE_OFFLINE, STOPPING)))
            return
        try:
            self._handlers[type(command)](command, on_answer)
        except (HubweirError, OSError) as error:
            on_answer(refusal_of(error))

    # One method a command; a HubweirError that is raised is the refusal

    def _create(self, command: CreatePartition, on_answer: OnAnswer) -> None:
        if command.log_id in self._deleting:
            raise ServiceError(SERVER_BUSY, f"partition {command.log_id} is being deleted; ask again later")

        def opened(answer: Answer) -> None:
            self._counters.set("broker.partitions", len(self._partitions))
            on_answer(answer)

        self._openings.open(command, opened)

    def _delete(self, command: DeletePartition, on_answer: OnAnswer) -> None:
        log_id = command.log_id
        if log_id in self._deleting:
            self._deleting[log_id].append(on_answer)  # one deletion, whoever asks: all are answered at its end
            return
        self._deleting[log_id] = [on_answer]
        self._deletions.append(log_id)
        if len(self._deletions) == 1:
            self._env.call_soon(self._delete_next)

    def _delete_next(self) -> None:
        """Ending readers, producers and capture takes a while: one partition a turn of the loop, as with openings."""
        log_id = self._deletions.popleft()
        if self._deletions:
            self._env.call_soon(self._delete_next)
        self._end_partition(log_id)

    def _end_partition(self, log_id: str) -> None:
        """End everything on a partition, then close its log and remove it."""

        def answer_all(answer: Answer) -> None:
            for waiting in self._deleting.pop(log_id):
                waiting(answer)

        if self._stopping:
            answer_all(refusal_of(ServiceError(STORE_OFFLINE, STOPPING)))
            return
        hosted = self._partitions.drop(log_id)
        self._counters.set("broker.partitions", len(self._partitions))
        if hosted is not None:
            partition = hosted.partition
            # Clients match the phrase: with it they take the entity for absent, without it the service for broken.
            text = (
                f"The messaging entity '{partition.hub}' could not be found: "
                f"its partition {partition.partition_id} was deleted"
            )
            self._producers.end_partition(hosted)
            self._readers.end_partition(hosted, ServiceError(NOT_FOUND, text))

        def closed() -> None:
            try:
                self._store.delete_log(log_id, deleted)
            except HubweirError as error:
                answer_all(refusal_of(error))

        def deleted(result: Result[None]) -> None:
            try:
                result.value()
            except (HubweirError, OSError) as error:
                answer_all(refusal_of(error))
            else:
                answer_all(Done())

        # An opening that is under way uses the files; who is hosted has none.
        self._openings.end(log_id, lambda: self._captures.end(hosted, lambda: self._store.close_log(log_id, closed)))

    def _change(self, command: ChangePartition, on_answer: OnAnswer) -> None:
        self._partitions.change(command)

        def changed(refused: ServiceError | None) -> None:
            on_answer(Done() if refused is None else refusal_of(refused))

        self._captures.change(self._partitions.get(command.log_id), command.capture, changed)

    def _cap(self, command: CapPartitions, on_answer: OnAnswer) -> None:
        self._partitions.set_caps(command.namespace, command.is_on, self._env.monotonic_ms())
        on_answer(Done())

    def _append(self, command: AppendEvents, on_answer: OnAnswer) -> None:
        hosted = self._partitions.get(command.log_id)
        size = len(command.run)
        charged = charge(hosted, command.size_bytes, command.events, self._env)
        stored = partial(self._stored, charged, size, on_answer)
        try:
            hosted.partition.log.append(command.run, now_ms=self._store.clock.stamp_ms(), on_done=stored)
        except HubweirError:
            charged.give_back(self._env.monotonic_ms())
            raise

    def _stored(self, charged: Charge, size: int, on_answer: OnAnswer, outcome: Appended | Refused) -> None:
        if isinstance(outcome, Refused):
            if outcome.known:
                charged.give_back(self._env.monotonic_ms())
            self._counters.add("broker.appends_refused")
            on_answer(refusal_of(outcome.error, known=outcome.known))
            return
        self._counters.add("broker.events_appended", outcome.next_index - outcome.first_index)
        self._counters.add("broker.bytes_appended", size)
        on_answer(EventsAppended(outcome.first_index, outcome.next_index))

    def _open_producer(self, command: OpenProducer, on_answer: OnAnswer) -> None:
        self._producers.open(command, self._partitions.get(command.log_id), on_answer)

    def _close_producer(self, command: CloseProducer, on_answer: OnAnswer) -> None:
        self._producers.close(command.opening_id)
        on_answer(Done())

    def _append_numbered(self, command: AppendNumbered, on_answer: OnAnswer) -> None:
        self._producers.append(command, on_answer)

    def _open_reader(self, command: OpenReader, on_answer: OnAnswer) -> None:
        self._readers.open(command, self._partitions.get(command.log_id), on_answer)

    def _close_reader(self, command: CloseReader, on_answer: OnAnswer) -> None:
        self._readers.close(command.reader_id)
        on_answer(Done())

    def _confirm_reader_closed(self, command: ConfirmReaderClosed, on_answer: OnAnswer) -> None:
        self._readers.confirm_closed(command.reader_id)
        on_answer(Done())

    def _close_owner(self, command: CloseOwner, on_answer: OnAnswer) -> None:
        self._producers.close_owner(command.owner)
        self._readers.close_owner(command.owner)
        on_answer(Done())

    def _read(self, command: ReadEvents, on_answer: OnAnswer) -> None:
        self._readers.get(command.reader_id).read(command, on_answer)

    def _cancel_read(self, command: CancelRead, on_answer: OnAnswer) -> None:
        self._readers.get(command.reader_id).give_up()
        on_answer(Done())

    def _info(self, command: AskPartitionInfo, on_answer: OnAnswer) -> None:
        found = self._partitions.get(command.log_id).partition.info()
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

    def _capture_state(self, command: AskCaptureState, on_answer: OnAnswer) -> None:
        on_answer(self._captures.state(self._partitions.get(command.log_id)))

    def _ask_counters(self, command: AskCounters, on_answer: OnAnswer) -> None:
        self._captures.count()
        self._counters.set("broker.readers", len(self._readers))
        on_answer(CountersTaken(self._counters.snapshot()))

    def _push(self, push: Push) -> None:
        if self.on_push is not None:
            self.on_push(push)
