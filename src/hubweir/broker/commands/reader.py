"""Readers of a partition: opened for a consumer group, read from, ended by either side."""

from __future__ import annotations

from hubweir.broker.commands.command import Answer, Cost, LogCommand, OwnedCommand, Push, answer, command, push
from hubweir.broker.commands.process import Done
from hubweir.errors import Condition
from hubweir.event_hub.event_position import EventPosition


@answer(66)
class ReaderOpened(Answer, frozen=True):
    """reader_id is the broker's; sequence_number: of the first event that it will give."""

    reader_id: int
    sequence_number: int


@command(5, ReaderOpened)
class OpenReader(OwnedCommand, frozen=True):
    """Start reading a partition for a consumer group. epoch: owner level, or None; name: what it calls itself.

    peer, client: where its connection comes from, and its container id; for people.

    Answered when every reader that it displaces has been confirmed closed, or had its time for that.
    """

    consumer_group: str
    position: EventPosition
    epoch: int | None
    name: str | None
    peer: str = ""
    client: str = ""


@command(6, Done, cost=Cost.END)
class CloseReader(LogCommand, frozen=True):
    """The link is gone."""

    reader_id: int


@command(12, Done, cost=Cost.END)
class ConfirmReaderClosed(LogCommand, frozen=True):
    """The link of a reader that ReaderClosed named is detached. Does nothing for any other reader."""

    reader_id: int


@answer(67)
class EventsRead(Answer, frozen=True):
    """Whole stored batches; the events from sequence_number on are the reader's next (maybe inside the first batch).

    next_sequence_number: where its next read goes on. Both are equal and run is empty when nothing came in time.
    """

    reader_id: int
    sequence_number: int
    next_sequence_number: int
    run: bytes | memoryview


@command(8, EventsRead, cost=Cost.WAIT)
class ReadEvents(LogCommand, frozen=True):
    """The next events of a reader; one outstanding a reader. Answers when there are some, or after wait_ms empty.

    again_from: go back to this sequence number first, to one that was read already and not used.
    """

    reader_id: int
    max_bytes: int
    wait_ms: int
    again_from: int | None = None


@command(9, Done, cost=Cost.END)
class CancelRead(LogCommand, frozen=True):
    """Give up the outstanding read of a reader: it is answered with an empty EventsRead."""

    reader_id: int


@push(128)
class ReaderClosed(Push, frozen=True):
    """The broker ended a reader (its entity was deleted, another took over, its log is damaged).

    The gateway detaches its link, then sends ConfirmReaderClosed, even when the link is gone already.
    """

    log_id: str
    reader_id: int
    condition: Condition
    text: str
