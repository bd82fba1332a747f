"""The readers of one partition: opened, displaced by others, closed by either side, ended with the partition.

Who may read beside whom, and who is displaced, is event_hub/epoch.py; a reader that displaced others is answered when
departures.py says that they are gone. What one reader does is opened_reader.py.
After a crash readers are gone: whoever asked opens a new one at the position it knows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import partial

from hubweir.broker.capping import Capping
from hubweir.broker.commands.command import OnAnswer, Owner
from hubweir.broker.commands.reader import OpenReader, ReaderClosed, ReaderOpened
from hubweir.broker.commands.status import ReaderTold
from hubweir.broker.departures import Departures
from hubweir.broker.opened_reader import OpenedReader, ReadPartition
from hubweir.broker.partition_tools import PartitionTools
from hubweir.broker.refusals import refusal_of
from hubweir.errors import DETACH_FORCED, INTERNAL_ERROR, NOT_FOUND, HubweirError, ServiceError
from hubweir.event_hub.consumer_group import Reader, ReaderTable
from hubweir.event_hub.epoch import displaced_by, displacement
from hubweir.event_hub.partition import Partition
from hubweir.event_hub.told_losses import LostEvents
from hubweir.messaging_store.log import Refused
from hubweir.metrics import READER_LAG, READERS, Samples

logger = logging.getLogger(__name__)


class Readers:
    """Those of one partition. Their ids are never used twice in the broker's life."""

    def __init__(self, tools: PartitionTools, partition: Partition, capping: Capping) -> None:
        self._counters = tools.counters
        self._push = tools.push
        self._ids = tools.reader_ids
        self._partition = partition
        self._where = ReadPartition(tools.env, tools.deadlines, partition, capping)
        self._table = ReaderTable()
        self._open: dict[int, OpenedReader] = {}
        # Readers whose position is being looked up, by id: closing an owner ends these too.
        self._opening: dict[int, Owner] = {}
        # Readers that stand in the table, but wait for those that they displaced.
        self._entered: dict[int, tuple[OpenedReader, OnAnswer]] = {}
        self._departures = Departures(tools.deadlines)

    def __len__(self) -> int:
        return len(self._open)

    def measure(self, samples: Samples, labels: tuple[str, ...]) -> None:
        """Say how many there are in each group, and how far behind they are. labels: of the hub."""
        next_index, counts, lags = self._partition.log.bounds.next_index, samples[READERS], samples[READER_LAG]
        for reader in self._open.values():
            its = (*labels, self._partition.partition_id, reader.group)
            counts[its] += 1
            lags[its] = max(lags[its], next_index - reader.next_sequence_number)

    def told(self) -> Iterator[ReaderTold]:
        """How each of them is, in the order in which they came."""
        log = self._partition.log
        next_index = log.bounds.next_index
        for its in self._table:
            reader = self._open.get(its.reader_id)
            if reader is not None:
                yield ReaderTold(
                    log.log_id,
                    its.group,
                    its.name or "",
                    -1 if its.epoch is None else its.epoch,
                    reader.next_sequence_number,
                    max(0, next_index - reader.next_sequence_number),
                    reader.owner.process,
                    its.peer,
                    its.client,
                )

    def open(self, command: OpenReader, on_answer: OnAnswer) -> None:
        """Look the position up, displace whom the reader displaces, enter it; answers ReaderOpened or Refusal."""
        reader_id = next(self._ids)
        self._opening[reader_id] = command.owner

        def resolved(index: int | Refused) -> None:
            if self._opening.pop(reader_id, None) is None:
                on_answer(refusal_of(_closed_before_open()))
            elif isinstance(index, Refused):
                lost = LostEvents.of(index.error)
                if lost is None:
                    on_answer(refusal_of(index.error))
                else:  # the first read tells of it
                    first = max(lost.first, self._partition.log.bounds.first_index)
                    self._enter(reader_id, command, first, on_answer)
            else:
                self._enter(reader_id, command, index, on_answer)

        def looked_up(index: int | Refused) -> None:
            try:
                resolved(index)
            except Exception as fault:
                self._faulted(reader_id, fault)

        try:
            index = self._partition.resolve(command.position, looked_up)
        except HubweirError as error:
            self._opening.pop(reader_id, None)
            on_answer(refusal_of(error))
            return
        if isinstance(index, int):
            resolved(index)

    def _enter(self, reader_id: int, command: OpenReader, index: int, on_answer: OnAnswer) -> None:
        """Take the reader into the table in the place of those it displaces, then wait for their links."""
        name, epoch = command.name, command.epoch
        try:
            losers = displaced_by(self._table.of_group(command.consumer_group), name=name, epoch=epoch)
        except ServiceError as error:
            on_answer(refusal_of(error))
            return
        entry = self._table.add(
            reader_id,
            command.consumer_group,
            name=name,
            epoch=epoch,
            owner=command.owner,
            peer=command.peer,
            client=command.client,
        )
        on_fault = partial(self._faulted, reader_id)
        reader = OpenedReader(reader_id, self._where, command.owner, entry.group, index, on_fault)
        self._entered[reader_id] = (reader, on_answer)
        for loser in losers:
            self._displace(loser, displacement(loser, name=name, epoch=epoch))

        def nobody_leaves() -> None:
            reader, answer = self._entered.pop(reader_id)
            self._open[reader_id] = reader
            try:
                answer(ReaderOpened(reader_id, index))
            except Exception as fault:  # others wait behind this one
                self._faulted(reader_id, fault)

        # Telling the losers may have ended this one too.
        if reader_id in self._entered:
            self._departures.wait(reader_id, entry.group, nobody_leaves)

    def _displace(self, loser: Reader, error: ServiceError) -> None:
        """Take a reader out for another; its gateway confirms when its link is detached."""
        reader = self._take_out(loser.reader_id)
        if reader is None:
            # It was never answered: there is no link to end.
            self._contained(loser.reader_id, partial(self._end_entered, loser.reader_id, error))
            return
        self._departures.begin(loser.reader_id, loser.group, reader.owner)
        self._end_open(reader, error)

    def _take_out(self, reader_id: int) -> OpenedReader | None:
        """An open reader, which is open no longer; None when there is none."""
        reader = self._open.pop(reader_id, None)
        if reader is not None:
            self._table.remove(reader_id)
        return reader

    def _end_open(self, reader: OpenedReader, error: ServiceError) -> None:
        """Refuse what a reader that was taken out waits for, and tell its gateway."""
        self._contained(reader.reader_id, partial(reader.close, error))
        self._contained(reader.reader_id, partial(self._tell, reader, error))

    def _contained(self, reader_id: int, step: Callable[[], None]) -> None:
        """Do what ends one of many: a fault of its gateway, which is told, keeps no other from its end."""
        try:
            step()
        except Exception:
            self._counters["broker.reader_faults"] += 1
            logger.exception("reader %d: a fault of the service at its end", reader_id)

    def _tell(self, reader: OpenedReader, error: ServiceError) -> None:
        """Tell a reader's gateway that it was ended."""
        log_id = self._partition.log.log_id
        self._push(ReaderClosed(reader.owner, log_id, reader.reader_id, error.condition, error.text))

    def _end_entered(self, reader_id: int, error: ServiceError) -> None:
        """Refuse a reader that still waits; does nothing when there is none."""
        entered = self._entered.pop(reader_id, None)
        if entered is not None:
            _, on_answer = entered
            self._departures.cancel(reader_id)
            self._table.remove(reader_id)
            on_answer(refusal_of(error))

    def _faulted(self, reader_id: int, fault: Exception) -> None:
        """End one reader after a fault of the service in its own code, or in its gateway's when it was answered."""
        self._counters["broker.reader_faults"] += 1
        logger.error("reader %d: a fault of the service; the reader is closed", reader_id, exc_info=fault)
        error = ServiceError(INTERNAL_ERROR, "The service has a fault; it is in its log.")
        try:
            self._end_entered(reader_id, error)
            reader = self._take_out(reader_id)
            if reader is not None:
                self._tell(reader, error)
                reader.close(error)
        except Exception:
            logger.exception("reader %d: its gateway could not be told", reader_id)

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
        reader = self._take_out(reader_id)
        if reader is not None:
            reader.close()

    def purged(self, index: int, error: ServiceError) -> None:
        """Events below the index go: end those that have not read them all."""
        for reader in [reader for reader in self._open.values() if reader.next_sequence_number < index]:
            self._take_out(reader.reader_id)
            self._end_open(reader, error)

    def owner_gone(self, owner: Owner) -> None:
        """Close what this owner holds."""
        self._opening = {key: its for key, its in self._opening.items() if not owner.covers(its)}
        for reader in [reader for reader, _ in self._entered.values() if owner.covers(reader.owner)]:
            self._contained(reader.reader_id, partial(self._end_entered, reader.reader_id, _closed_before_open()))
        for reader in [reader for reader in self._open.values() if owner.covers(reader.owner)]:
            self._contained(reader.reader_id, partial(self.close, reader.reader_id))
        self._departures.end_of(owner)

    def end(self, error: ServiceError) -> None:
        """The partition is gone: take out all readers, refuse their reads with error, and tell their gateways."""
        self._opening = {}
        for reader_id in list(self._entered):
            self._contained(reader_id, partial(self._end_entered, reader_id, error))
        for reader_id in list(self._open):
            reader = self._take_out(reader_id)
            if reader is not None:
                self._end_open(reader, error)
        self._departures.close()

    def stop(self) -> None:
        """The broker stops: every outstanding read is answered empty, every reader that waits is refused."""
        self._opening = {}
        for reader_id in list(self._entered):
            self._contained(reader_id, partial(self._end_entered, reader_id, _closed_before_open()))
        for reader_id in list(self._open):
            self._contained(reader_id, partial(self.close, reader_id))
        self._departures.close()


def _closed_before_open() -> ServiceError:
    return ServiceError(DETACH_FORCED, "the reader was closed before it was open: attach again")
