"""All readers of a broker: opened, displaced by others, closed by either side, ended with their partition.

Who may read beside whom, and who is displaced, is event_hub/epoch.py; a reader that displaced others is answered when
departures.py says that they are gone. What one reader does is opened_reader.py.
After a crash readers are gone: whoever asked opens a new one at the position it knows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from hubweir.broker.commands.command import Answer, Owner, Push
from hubweir.broker.commands.reader import OpenReader, ReaderClosed, ReaderOpened
from hubweir.broker.departures import Departures
from hubweir.broker.hosted_partitions import HostedPartition
from hubweir.broker.opened_reader import OpenedReader
from hubweir.broker.refusals import refusal_of
from hubweir.counters import Counters
from hubweir.env import Env
from hubweir.errors import (
    DETACH_FORCED,
    INTERNAL_ERROR,
    NOT_FOUND,
    HubweirError,
    ServiceError,
)
from hubweir.event_hub.consumer_group import Reader
from hubweir.event_hub.epoch import displaced_by, displacement
from hubweir.event_hub.told_losses import LostEvents
from hubweir.messaging_store.log import Refused

logger = logging.getLogger(__name__)

OnAnswer = Callable[[Answer], None]


class Readers:
    """All readers of a broker. Ids are never used twice in its life. push: what gateways are told unasked."""

    def __init__(self, env: Env, push: Callable[[Push], None], counters: Counters) -> None:
        self._env = env
        self._counters = counters
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
                lost = LostEvents.of(index.error)
                if lost is None:
                    on_answer(refusal_of(index.error))
                else:  # the first read tells of it
                    self._enter(reader_id, command, hosted, max(lost.first, hosted.log.bounds.first_index), on_answer)
            else:
                self._enter(reader_id, command, hosted, index, on_answer)

        def looked_up(index: int | Refused) -> None:
            try:
                resolved(index)
            except Exception as fault:
                self._faulted(reader_id, fault)

        try:
            index = hosted.partition.resolve(command.position, looked_up)
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
        on_fault = partial(self._faulted, reader_id)
        reader = OpenedReader(self._env, reader_id, hosted, command.owner, entry.group, index, on_fault)
        self._entered[reader_id] = (reader, on_answer)
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
        reader.close(error)
        self._push(ReaderClosed(loser.reader_id, reader.owner, error.condition.symbol, error.text))

    def _end_entered(self, reader_id: int, error: ServiceError) -> None:
        """Refuse a reader that still waits; does nothing when there is none."""
        entered = self._entered.pop(reader_id, None)
        if entered is not None:
            reader, on_answer = entered
            self._departures.cancel(reader_id)
            reader.hosted.readers.remove(reader_id)
            on_answer(refusal_of(error))

    def _faulted(self, reader_id: int, fault: Exception) -> None:
        """End one reader after a fault of the service in its own code, or in its gateway's when it was answered."""
        self._counters.add("broker.reader_faults")
        logger.error("reader %d: a fault of the service; the reader is closed", reader_id, exc_info=fault)
        error = ServiceError(INTERNAL_ERROR, "The service has a fault; it is in its log.")
        try:
            self._end_entered(reader_id, error)
            reader = self._open.pop(reader_id, None)
            if reader is not None:
                reader.hosted.readers.remove(reader_id)
                self._push(ReaderClosed(reader_id, reader.owner, error.condition.symbol, error.text))
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
        reader = self._open.pop(reader_id, None)
        if reader is not None:
            reader.hosted.readers.remove(reader_id)
            reader.close()

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
            reader.close(error)
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
