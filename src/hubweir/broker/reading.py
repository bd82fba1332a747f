"""Readers of partitions: where each goes on, and the one read of it that may be waiting.

A read is answered at once when events are there. Else it waits, and is woken by the log in the loop turn in which the
next event becomes visible; or it is answered empty when its time is over, it is cancelled, or its reader is closed.
Who may read beside whom, and who is displaced, is event_hub/epoch.py; a reader that displaced others is answered when
departures.py says that they are gone.
After a crash readers are gone: whoever asked opens a new one at the position it knows.
"""

from __future__ import annotations

from collections.abc import Callable

from hubweir.broker.commands import (
    Answer,
    EventsRead,
    OpenReader,
    Owner,
    Push,
    ReaderClosed,
    ReaderOpened,
    ReadEvents,
)
from hubweir.broker.departures import Departures
from hubweir.broker.hosted_partitions import HostedPartition
from hubweir.broker.refusals import refusal_of
from hubweir.env import Env, Timer
from hubweir.errors import DETACH_FORCED, ILLEGAL_STATE, NOT_FOUND, HubweirError, ServiceError
from hubweir.event_hub.consumer_group import Reader
from hubweir.event_hub.epoch import displaced_by, displacement
from hubweir.event_hub.partition import Waiting
from hubweir.messaging_store.log import Pending, Refused, Run

OnAnswer = Callable[[Answer], None]


class OpenedReader:
    """One reader: its next sequence number and, while a read is outstanding, whom to answer."""

    def __init__(self, env: Env, reader_id: int, hosted: HostedPartition, owner: Owner, next_index: int) -> None:
        self.reader_id = reader_id
        self.hosted = hosted
        self.owner = owner
        self._env = env
        self._next = next_index
        self._max_bytes = 0
        self._on_answer: OnAnswer | None = None
        self._pending: Pending | None = None
        self._waiting: Waiting | None = None
        self._timer: Timer | None = None
        self._deadline_ms = 0
        # While a read waits for the partition's cap: what gives it back what the read took.
        self._take_back: Callable[[], None] | None = None

    def read(self, command: ReadEvents, on_answer: OnAnswer) -> None:
        """Answer with the next events, now or when they come."""
        if self._on_answer is not None:
            text = f"reader {self.reader_id} has a read outstanding: one at a time"
            on_answer(refusal_of(ServiceError(ILLEGAL_STATE, text)))
            return
        self._on_answer = on_answer
        if command.again_from is not None:
            self._next = min(self._next, command.again_from)
        self._max_bytes = max(1, command.max_bytes)
        self._deadline_ms = self._env.monotonic_ms() + max(0, command.wait_ms)
        self._look()

    def give_up(self) -> None:
        """Answer an outstanding read empty; does nothing without one."""
        self._answer(EventsRead(self.reader_id, self._next, self._next, b""))

    def refuse(self, error: HubweirError) -> None:
        """Answer an outstanding read with an error; does nothing without one."""
        self._answer(refusal_of(error))

    def _look(self) -> None:
        """Read at the position; called first, and again when an event was made visible there."""
        self._waiting = None
        partition = self.hosted.partition
        try:
            found = partition.read(self._next, max_bytes=self._max_bytes, on_done=self._came)
        except HubweirError as error:
            self.refuse(error)
            return
        if isinstance(found, Run):
            self._came(found)
        else:
            self._pending = found

    def _came(self, found: Run | Refused) -> None:
        self._pending = None
        if self._on_answer is None:
            return
        if isinstance(found, Refused):
            self.refuse(found.error)
            return
        # Retention may have removed what the reader would have got next: then the run begins behind it.
        first = max(self._next, found.first_index)
        if found.next_index > first:
            self._answer_when_due(EventsRead(self.reader_id, first, found.next_index, found.data))
            return
        self._wait()

    def _answer_when_due(self, events: EventsRead) -> None:
        """Answer with events when the partition's cap lets them out; meanwhile the read may still be given up."""
        size, count = len(events.run), events.next_sequence_number - events.sequence_number
        cap = self.hosted.cap
        delay_ms = 0 if cap is None else cap.take(size, count, self._env.monotonic_ms())

        def due() -> None:
            self._take_back = None
            self._next = events.next_sequence_number
            self._answer(events)

        if cap is None or not delay_ms:
            due()
            return
        self._take_back = lambda: cap.give_back_unsent(size, count, self._env.monotonic_ms())
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._env.call_later(delay_ms, due)

    def _wait(self) -> None:
        left_ms = self._deadline_ms - self._env.monotonic_ms()
        if left_ms <= 0:
            self.give_up()
            return
        self._waiting = self.hosted.partition.wait(self._next, self._look)
        if self._timer is None:
            self._timer = self._env.call_later(left_ms, self._timed_out)

    def _timed_out(self) -> None:
        self._timer = None
        self.give_up()

    def _answer(self, answer: Answer) -> None:
        on_answer, self._on_answer = self._on_answer, None
        if self._take_back is not None:
            self._take_back()
            self._take_back = None
        if self._pending is not None:
            self._pending.cancel()
            self._pending = None
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if on_answer is not None:
            on_answer(answer)


class Readers:
    """All readers of a broker. Ids are never used twice in its life. push: what gateways are told unasked."""

    def __init__(self, env: Env, push: Callable[[Push], None]) -> None:
        self._env = env
        self._push = push
        self._last_id = 0
        self._open: dict[int, OpenedReader] = {}
        # Readers whose position is being looked up, by id: closing an owner ends these too.
        self._opening: dict[int, tuple[Owner, HostedPartition]] = {}
        # Readers that stand in their partition's table, but wait for those that they displaced.
        self._entered: dict[int, tuple[OpenedReader, OnAnswer]] = {}
        self._departures = Departures(env)

    def __len__(self) -> int:
        return len(self._open)

    def open(self, command: OpenReader, hosted: HostedPartition, on_answer: OnAnswer) -> None:
        """Look the position up, displace whom the reader displaces, enter it; answers ReaderOpened or Refusal."""
        self._last_id += 1
        reader_id = self._last_id
        self._opening[reader_id] = command.owner, hosted

        def resolved(index: int | Refused) -> None:
            if self._opening.pop(reader_id, None) is None:
                on_answer(refusal_of(_closed_before_open()))
            elif isinstance(index, Refused):
                on_answer(refusal_of(index.error))
            else:
                self._enter(reader_id, command, hosted, index, on_answer)

        try:
            index = hosted.partition.resolve(command.position, resolved)
        except HubweirError as error:
            self._opening.pop(reader_id, None)
            on_answer(refusal_of(error))
            return
        if isinstance(index, int):
            resolved(index)

    def _enter(
        self, reader_id: int, command: OpenReader, hosted: HostedPartition, index: int, on_answer: OnAnswer
    ) -> None:
        """Take the reader into its partition's table in the place of those it displaces, then wait for their links."""
        name, epoch = command.name, command.epoch
        try:
            losers = displaced_by(hosted.readers.of_group(command.consumer_group), name=name, epoch=epoch)
        except ServiceError as error:
            on_answer(refusal_of(error))
            return
        entry = hosted.readers.add(reader_id, command.consumer_group, name=name, epoch=epoch, owner=command.owner)
        place = (hosted, entry.group)
        self._entered[reader_id] = OpenedReader(self._env, reader_id, hosted, command.owner, index), on_answer
        for loser in losers:
            self._displace(loser, hosted, displacement(loser, name=name, epoch=epoch))

        def nobody_leaves() -> None:
            reader, answer = self._entered.pop(reader_id)
            self._open[reader_id] = reader
            answer(ReaderOpened(reader_id, index))

        # Telling the losers may have ended this one too.
        if reader_id in self._entered:
            self._departures.wait(reader_id, place, nobody_leaves)

    def _displace(self, loser: Reader, hosted: HostedPartition, error: ServiceError) -> None:
        """Take a reader out for another; its gateway confirms when its link is detached."""
        reader = self._open.pop(loser.reader_id, None)
        if reader is None:
            self._end_entered(loser.reader_id, error)  # it was never answered: there is no link to end
            return
        hosted.readers.remove(loser.reader_id)
        self._departures.begin(loser.reader_id, (hosted, loser.group), reader.owner)
        reader.refuse(error)
        self._push(ReaderClosed(loser.reader_id, reader.owner, error.condition.symbol, error.text))

    def _end_entered(self, reader_id: int, error: ServiceError) -> None:
        """Refuse a reader that still waits; does nothing when there is none."""
        entered = self._entered.pop(reader_id, None)
        if entered is not None:
            reader, on_answer = entered
            self._departures.cancel(reader_id)
            reader.hosted.readers.remove(reader_id)
            on_answer(refusal_of(error))

    def confirm_closed(self, reader_id: int) -> None:
        """The gateway has detached the link of a reader that it was told about."""
        self._departures.end(reader_id)

    def get(self, reader_id: int) -> OpenedReader:
        """The reader; ServiceError NOT_FOUND when it was closed."""
        reader = self._open.get(reader_id)
        if reader is None:
            raise ServiceError(NOT_FOUND, f"reader {reader_id} is not open: it was closed, or its owner was")
        return reader

    def close(self, reader_id: int) -> None:
        """Take a reader out; its outstanding read is answered empty. Does nothing when it is gone."""
        reader = self._open.pop(reader_id, None)
        if reader is not None:
            reader.hosted.readers.remove(reader_id)
            reader.give_up()

    def close_owner(self, owner: Owner) -> None:
        """Close what this owner holds: of one connection, or with connection -1 of its whole process."""

        def is_his(other: Owner) -> bool:
            return other == owner or (owner.connection == -1 and other.process == owner.process)

        self._opening = {key: entry for key, entry in self._opening.items() if not is_his(entry[0])}
        for reader in [reader for reader, _ in self._entered.values() if is_his(reader.owner)]:
            self._end_entered(reader.reader_id, _closed_before_open())
        for reader in [reader for reader in self._open.values() if is_his(reader.owner)]:
            self.close(reader.reader_id)
        self._departures.end_of(is_his)

    def end_partition(self, hosted: HostedPartition, error: ServiceError) -> None:
        """Take out all readers of a partition, refuse their reads with error, and tell their gateways."""
        self._opening = {key: entry for key, entry in self._opening.items() if entry[1] is not hosted}
        for reader in [reader for reader, _ in self._entered.values() if reader.hosted is hosted]:
            self._end_entered(reader.reader_id, error)
        for reader in [reader for reader in self._open.values() if reader.hosted is hosted]:
            del self._open[reader.reader_id]
            hosted.readers.remove(reader.reader_id)
            reader.refuse(error)
            self._push(ReaderClosed(reader.reader_id, reader.owner, error.condition.symbol, error.text))

    def close_all(self) -> None:
        """The broker stops: every outstanding read is answered empty, every reader that waits is refused."""
        self._opening = {}
        for reader_id in list(self._entered):
            self._end_entered(reader_id, _closed_before_open())
        for reader_id in list(self._open):
            self.close(reader_id)
        self._departures.close()


def _closed_before_open() -> ServiceError:
    return ServiceError(DETACH_FORCED, "the reader was closed before it was open: attach again")
