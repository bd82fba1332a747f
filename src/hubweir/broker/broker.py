"""A broker: owns one messaging store, runs commands, answers when what they ask for is durable.

Every command is answered once, maybe before `submit` returns; a bad one gets a Refusal and harms nothing. A command
about a log is handled by the log's resident (residents.py); the broker itself opens and removes logs and answers what
concerns all of them. All calls come on the owner's loop. A command that is under way is never cancelled by the end of
whoever asked.
After a crash: what was answered EventsAppended is there (as the hub's durability says), what was refused as known is
not, and what was not answered is there whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar

from hubweir.alarms import Alarms
from hubweir.broker.capture.captures import Captures
from hubweir.broker.capture.places import CapturePlaces
from hubweir.broker.commands.command import Command, Cost, CreateLog, LogCommand, OnAnswer, OwnedCommand, Push
from hubweir.broker.commands.forwarding import ListOpenTransfers, OpenTransfersListed, TransferPlace
from hubweir.broker.commands.fragment import CreateFragment, DeleteFragment, OpenFragment
from hubweir.broker.commands.partition import CreatePartition, DeletePartition, OpenPartition
from hubweir.broker.commands.process import AskCounters, CapPartitions, CloseOwner, CountersTaken, Done, RaiseEpoch
from hubweir.broker.commands.status import AskReaders, AskStatus, ReadersTold, StatusTold, alarms_told
from hubweir.broker.commands.topic import CreateTopic, OpenTopic
from hubweir.broker.deadlines import BrokerDeadlines
from hubweir.broker.deletions import Deletions
from hubweir.broker.fragment_tools import FragmentTools
from hubweir.broker.hosted_fragment import HostedFragment
from hubweir.broker.hosted_partition import HostedPartition
from hubweir.broker.hosted_topic import HostedTopic
from hubweir.broker.log_status import log_told
from hubweir.broker.openings import STOPPING, Openings
from hubweir.broker.partition_tools import PartitionTools
from hubweir.broker.refusals import refusal_of
from hubweir.broker.residents import Resident, Residents
from hubweir.broker.retention_sweep import SWEEP_MS, RetentionSweep
from hubweir.broker.store_look import StoreLook
from hubweir.counters import Counters, GaugeShare
from hubweir.env import Env, Result
from hubweir.errors import ENTITY_MOVED, NOT_ALLOWED, SERVER_BUSY, STORE_OFFLINE, HubweirError, ServiceError
from hubweir.messaging_store.log import Log
from hubweir.messaging_store.log_store import LogStore
from hubweir.metrics import Samples
from hubweir.queue.traced_step import StepTracer

# Whoever makes a broker has the logs of its store opened at once. For so long nothing that it does not know has moved.
BEGINS_MS = 10_000
MEASURED_AT_ONCE = 128  # residents; some 3 us each


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
        tracer: StepTracer | None = None,
    ) -> None:
        """capture_places: where captured files may go; None: it captures nothing. alarms: of the process. tracer: of
        what clients trace; None: nothing is looked at. The store is the broker's, which closes it when it stops.
        OSError: what is in it cannot be listed; it is closed.
        """
        try:
            self._unopened = set(store.log_ids())  # nobody has asked for them yet
        except BaseException:
            store.close(lambda: None)  # by nobody else: its folder would stay locked while this process lives
            raise
        self._env = env
        self._store = store
        self._counters = counters
        self.alarms = Alarms(env, counters) if alarms is None else alarms
        self.on_push: Callable[[Push], None] | None = None
        self._deadlines = BrokerDeadlines(env)
        self._captures = Captures(env, self._deadlines, store.clock, counters, self.alarms, capture_places)
        self._tools = PartitionTools(env, self._deadlines, store.clock, counters, self._push, self._captures)
        fragment_tools = FragmentTools(env, self._deadlines, store.clock, counters, self._push, tracer)
        self._residents = Residents(counters)
        self._readers = GaugeShare(counters, "broker.readers")
        kinds: dict[type[CreateLog], Callable[[Any, Log], Resident]] = {
            **dict.fromkeys((CreatePartition, OpenPartition), partial(HostedPartition, self._tools)),
            **dict.fromkeys((CreateFragment, OpenFragment), partial(HostedFragment.of_queue, fragment_tools)),
            **dict.fromkeys((CreateTopic, OpenTopic), partial(HostedTopic, fragment_tools, self._residents)),
        }
        self._openings = Openings(
            env,
            self._deadlines,
            store,
            self._residents,
            lambda command, log: kinds[type(command)](command, log),
            self.alarms,
        )
        self._deletions = Deletions(env, store, self._residents, self._openings)
        self._sweep = RetentionSweep(
            self._deadlines, store.clock, self._residents.sweep_next, at_end=self._swept, sweep_ms=sweep_ms
        )
        self._look = StoreLook(env, store.keep_clock, store.look_at_syncs)
        self._is_stopping = False
        self._began_ms = env.monotonic_ms()

    def start(self) -> None:
        """Begin what happens by the clock. Logs are opened by commands, see residents.py."""
        self._store.remove_unfinished()
        self._sweep.start()
        self._look.start()

    def stop(self, on_done: Callable[[], None]) -> None:
        """Answer what waits, write what is pending with its idle mark, close the store; then call on_done.

        A second call does nothing, and its on_done is never called.
        """
        if self._is_stopping:
            return
        self._is_stopping = True
        self._sweep.stop()
        self._look.stop()
        parts = self._residents, self._openings, self._deletions
        left = len(parts)

        def stopped() -> None:
            nonlocal left
            left -= 1
            if not left:
                self._store.close(on_done)

        for part in parts:
            part.stop(stopped)

    def submit(self, command: Command, on_answer: OnAnswer) -> None:
        """Run a command; on_answer is called exactly once."""
        if self._is_stopping:
            on_answer(refusal_of(ServiceError(STORE_OFFLINE, STOPPING)))
            return
        try:
            own = self._handlers.get(type(command))
            if own is not None:
                own(self, command, on_answer)
                return
            assert isinstance(command, LogCommand), f"nobody handles a {type(command).__name__}"
            resident = self._residents.by_log_id.get(command.log_id)
            if resident is None:
                self._not_here(command, on_answer)
                return
            if isinstance(command, OwnedCommand):
                self._residents.opens(command)
            handler = resident.handlers.get(type(command))
            if handler is None:
                raise ServiceError(NOT_ALLOWED, f"log {command.log_id} takes no {type(command).__name__}")
            handler(resident, command, on_answer)
        except (HubweirError, OSError) as error:
            on_answer(refusal_of(error))

    def _not_here(self, command: LogCommand, on_answer: OnAnswer) -> None:
        """Answer a command about a log that is not open here."""
        if command.cost is Cost.END:
            on_answer(Done())  # what was to be ended ended with its log
            return
        why = self._openings.why_not(command.log_id)
        if why is None and self._unopened and self._env.monotonic_ms() - self._began_ms < BEGINS_MS:
            why = ServiceError(
                STORE_OFFLINE, "the broker has just begun, and is opening its logs: try again in a moment"
            )
        if why is None:
            text = "the log is not here any more: what it held was deleted or moved; attach again"
            why = ServiceError(ENTITY_MOVED, text)
        on_answer(refusal_of(why))  # raised, an error that a variable here holds would hold this frame in turn

    def _partitions(self) -> Iterator[HostedPartition]:
        return (resident for resident in self._residents if isinstance(resident, HostedPartition))

    def _push(self, push: Push) -> None:
        if self.on_push is not None:
            self.on_push(push)

    def _swept(self) -> None:
        """A sweep has visited all residents."""
        self._store.look_for_owner()

    # One method a command of the broker's own; a HubweirError that is raised is the refusal

    def _create(self, command: CreateLog, on_answer: OnAnswer) -> None:
        if self._deletions.is_under_way(command.log_id):
            raise ServiceError(SERVER_BUSY, f"{command.name} is being deleted; ask again later")
        self._unopened.discard(command.log_id)
        self._openings.open(command, on_answer)

    def _delete(self, command: DeletePartition | DeleteFragment, on_answer: OnAnswer) -> None:
        self._unopened.discard(command.log_id)
        self._deletions.delete(command.log_id, on_answer)

    def _cap(self, command: CapPartitions, on_answer: OnAnswer) -> None:
        now_ms = self._env.monotonic_ms()
        if self._tools.capped.set(command.namespace, is_on=command.is_on, now_ms=now_ms):
            for partition in self._partitions():
                if partition.namespace == command.namespace:
                    partition.set_cap()
        on_answer(Done())

    def _close_owner(self, command: CloseOwner, on_answer: OnAnswer) -> None:
        self._residents.owner_gone(command.owner)
        on_answer(Done())

    def _list_transfers(self, command: ListOpenTransfers, on_answer: OnAnswer) -> None:
        fragments = (each for each in self._residents if isinstance(each, HostedFragment))
        places = [
            TransferPlace(each.resident_id, where) for each in fragments for where in each.fragment.open_transfers
        ]
        on_answer(OpenTransfersListed(tuple(places)))

    def measure(self, samples: Samples) -> Iterator[None]:
        """Say what its residents hold now, some of them a step: whoever asks gives the loop its turns in between.

        Gauges of the counters are set at the end.
        """
        for number, resident in enumerate(self._residents):
            resident.measure(samples)
            if number % MEASURED_AT_ONCE == MEASURED_AT_ONCE - 1:
                yield
        self._count()

    def _ask_status(self, command: AskStatus, on_answer: OnAnswer) -> None:
        logs = tuple(log_told(each) for each in self._residents if each.resident_id == each.log.log_id)
        on_answer(StatusTold(alarms_told(self.alarms), logs))

    def _ask_readers(self, command: AskReaders, on_answer: OnAnswer) -> None:
        wanted = frozenset(command.log_ids)
        asked = (each for each in self._partitions() if not wanted or each.resident_id in wanted)
        on_answer(ReadersTold(tuple(told for each in asked for told in each.readers.told())))

    def _raise_epoch(self, command: RaiseEpoch, on_answer: OnAnswer) -> None:
        def raised(result: Result[int]) -> None:
            try:
                result.value()
            except (HubweirError, OSError) as error:
                on_answer(refusal_of(error))
            else:
                on_answer(Done())

        self._store.raise_epoch(command.newest, raised)

    def _count(self) -> None:
        self._captures.set_gauges()
        self._readers.set(sum(len(partition.readers) for partition in self._partitions()))

    def _ask_counters(self, command: AskCounters, on_answer: OnAnswer) -> None:
        self._count()
        on_answer(CountersTaken(self._counters.snapshot()))

    _handlers: ClassVar[Mapping[type[Command], Callable[[Any, Any, OnAnswer], None]]] = {
        CreatePartition: _create,
        OpenPartition: _create,
        DeletePartition: _delete,
        CreateFragment: _create,
        OpenFragment: _create,
        CreateTopic: _create,
        OpenTopic: _create,
        DeleteFragment: _delete,
        CapPartitions: _cap,
        CloseOwner: _close_owner,
        AskCounters: _ask_counters,
        AskStatus: _ask_status,
        AskReaders: _ask_readers,
        ListOpenTransfers: _list_transfers,
        RaiseEpoch: _raise_epoch,
    }
