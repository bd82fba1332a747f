"""One reader of a partition: its position, and the one read of it that may be waiting.

A read is answered at once when events are there. Else it waits, and is woken by the log in the loop turn in which the
next event becomes visible; or it is answered empty when its time is over, it is cancelled, or its reader is closed.
A reader that comes to damage is told what is lost, or steps over it when its group was told (event_hub/told_losses.py).
A fault of the service in what one reader does when the log or the clock wakes it ends that reader (`on_fault`): the
log, its publishers and its other readers go on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from hubweir.broker.capping import Capping
from hubweir.broker.commands.command import Answer, OnAnswer, Owner
from hubweir.broker.commands.reader import EventsRead, ReadEvents
from hubweir.broker.deadlines import BrokerDeadlines, Deadline
from hubweir.broker.refusals import refusal_of
from hubweir.env import Clock
from hubweir.errors import ILLEGAL_STATE, HubweirError, ServiceError
from hubweir.event_hub.partition import Partition, Waiting
from hubweir.event_hub.told_losses import LostEvents, ToldLosses
from hubweir.messaging_store.log import Pending, Refused, Run
from hubweir.throughput_unit.partition_cap import PartitionCap

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReadPartition:
    """A partition as its readers share it: with its cap, and with the losses that its groups were told."""

    clock: Clock
    deadlines: BrokerDeadlines
    partition: Partition
    capping: Capping
    losses: ToldLosses = field(default_factory=ToldLosses)


class OpenedReader:
    """One reader: its next sequence number and, while a read is outstanding, whom to answer."""

    def __init__(
        self,
        reader_id: int,
        where: ReadPartition,
        owner: Owner,
        group: str,
        next_index: int,
        on_fault: Callable[[Exception], None],
    ) -> None:
        """group: in lower case. on_fault: ends this reader, and raises nothing."""
        self.reader_id = reader_id
        self.owner = owner
        self._where = where
        self._clock = where.clock
        self._deadlines = where.deadlines
        self._log = where.partition.log
        self.group = group
        self._next = next_index
        self._on_fault = on_fault
        self._max_bytes = 0
        self._on_answer: OnAnswer | None = None
        self._pending: Pending | None = None
        self._waiting: Waiting | None = None
        self._may_wait = False
        self._deadline_ms = 0
        # Due when a read has waited, or an earlier one: to arm one for each read would cost more than to look.
        self._deadline: Deadline | None = None
        self._held_until: Deadline | None = None  # of events that the partition's cap holds back
        # While a read waits for the partition's cap: what gives it back what the read took.
        self._take_back: Callable[[], None] | None = None

    @property
    def next_sequence_number(self) -> int:
        """Of the first event that was not handed out."""
        return self._next

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
        self._may_wait = command.wait_ms > 0
        self._deadline_ms = self._clock.monotonic_ms() + max(0, command.wait_ms)
        self._look()

    def give_up(self) -> None:
        """Answer an outstanding read empty; does nothing without one."""
        self._answer(EventsRead(self.reader_id, self._next, self._next, b""))

    def refuse(self, error: HubweirError) -> None:
        """Answer an outstanding read with an error; does nothing without one."""
        self._answer(refusal_of(error))

    def close(self, error: HubweirError | None = None) -> None:
        """The reader is over: an outstanding read is answered empty, or with the error."""
        if error is None:
            self.give_up()
        else:
            self.refuse(error)
        if self._deadline is not None:
            self._deadlines.cancel(self._deadline)
            self._deadline = None

    def due(self, events: EventsRead | None, now_ms: int) -> None:
        """The partition's cap lets these events out; None: it is time to look whether a read has waited."""
        self._do(self._waited if events is None else partial(self._answer_with, events))

    def _look(self) -> None:
        """Read at the position; called first, and again when an event was made visible there."""
        self._waiting = None
        try:
            found = self._log.read(self._next, max_bytes=self._max_bytes, on_done=partial(self._do, self._came))
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
            self._refused(found.error)
            return
        # Retention may have removed what the reader would have got next: then the run begins behind it.
        first = max(self._next, found.first_index)
        if found.next_index > first:
            events, cap = EventsRead(self.reader_id, first, found.next_index, found.data), self._where.capping.cap
            if cap is None or not self._holds_back(cap, events):
                self._answer_with(events)
            return
        self._wait()

    def _refused(self, error: HubweirError) -> None:
        """Tell of what is lost, or go on behind it; any other error is the answer."""
        lost, partition = LostEvents.of(error), self._where.partition
        if lost is None:
            self.refuse(error)
            return
        if self._where.losses.must_hear(self.group, lost, self._clock.monotonic_ms()):
            told = lost.error(partition)
            logger.warning("consumer group %s is told: %s", self.group, told.text)
            self.refuse(told)
            return
        logger.warning("consumer group %s goes on behind %s", self.group, lost.named(partition))
        self._next = max(self._next, lost.end)  # a read that goes back goes back to what was read behind it
        self._look()

    def _holds_back(self, cap: PartitionCap, events: EventsRead) -> bool:
        """Whether the cap lets these events out only later, when it answers; the read may be given up meanwhile."""
        size, count = len(events.run), events.next_sequence_number - events.sequence_number
        delay_ms = cap.reserve_egress(size, count, self._clock.monotonic_ms())
        if not delay_ms:
            return False
        self._where.capping.read_waits()
        self._take_back = lambda: cap.give_back_unsent(size, count, self._clock.monotonic_ms())
        self._held_until = self._deadlines.arm_in(delay_ms, self, events)
        return True

    def _answer_with(self, events: EventsRead) -> None:
        self._take_back = None
        self._next = events.next_sequence_number
        self._answer(events)

    def _wait(self) -> None:
        if not self._may_wait:
            self.give_up()
            return
        # A deadline that is over already, because the files were slow, rings in the next turn.
        self._waiting = self._where.partition.wait(self._next, partial(self._do, self._look))
        if self._deadline is not None and self._deadline.at_ms > self._deadline_ms:
            self._deadlines.cancel(self._deadline)
            self._deadline = None
        if self._deadline is None:
            self._deadline = self._deadlines.arm(self._deadline_ms, self)

    def _waited(self) -> None:
        """A read that waits has waited long enough, or a later one has still to."""
        self._deadline = None
        if self._waiting is None and self._pending is None:
            return
        if self._deadline_ms > self._clock.monotonic_ms():
            self._deadline = self._deadlines.arm(self._deadline_ms, self)
        else:
            self.give_up()

    def _do(self, step: Callable[..., None], *result: Run | Refused) -> None:
        """Do a step that the log or the clock begins, not a command: it may not raise there.

        Whoever passes it on makes a partial each time: a kept one would hold the reader in a circle, which only a
        collection finds.
        """
        try:
            step(*result)
        except Exception as fault:
            self._on_fault(fault)

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
        if self._held_until is not None:
            self._deadlines.cancel(self._held_until)
            self._held_until = None
        if on_answer is not None:
            on_answer(answer)
