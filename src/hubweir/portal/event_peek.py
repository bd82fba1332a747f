"""Peeks at events of one partition: a reader of its own, closed as soon as it has read enough.

Its consumer group is none that clients can name, so it takes no reader's place and meets no owner level. It reads a
bounded number of bytes, a bounded number of times, and is charged to no throughput unit. What it reads has a place in
the process's byte budget (held_room.py), so that many peeks at once wait for one another.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from hubweir.broker.commands.command import Answer, Owner, nobody_waits
from hubweir.broker.commands.partition import PartitionInfo
from hubweir.broker.commands.reader import CloseReader, EventsRead, OpenReader, ReaderOpened, ReadEvents
from hubweir.errors import ServiceError
from hubweir.event_hub.event_position import EARLIEST, EventPosition, PositionKind
from hubweir.gateway.brokers import error_of
from hubweir.gateway.directory import PartitionPlace
from hubweir.gateway.http.head_receive import NO_CONNECTION
from hubweir.kernels import collect_deliveries, deliver, open_events, scan_frames
from hubweir.kernels.contract import (
    D_LENGTH,
    D_START,
    DELIVERY_WIDTH,
    E_ENQUEUED_TIME,
    E_KEY,
    E_KEY_LENGTH,
    E_OFFSET,
    E_SEQUENCE_NUMBER,
    EVENT_WIDTH,
    FRAME_WIDTH,
    RunCursor,
    SendRoom,
    TransferForm,
)
from hubweir.portal.visit import Visit

GROUP = "$portal"
READ_BYTES, READS_LIMIT, PEEK_BYTES = 256 * 1024, 8, 1024 * 1024
# No event needs more than one frame: these are never sent.
_FRAME_BYTES = 2**31 - 1
_FORM = TransferForm(channel=0, handle=0, max_frame_size=_FRAME_BYTES, settled=True)
_ROOM = SendRoom(deliveries=2**31 - 1, frames=2**31 - 1, bytes=2**40)


@dataclass(frozen=True, slots=True)
class PeekedEvent:
    """One event. key: "" for none. data: the message, as a reader gets it."""

    sequence_number: int
    offset: int
    enqueued_time_ms: int
    key: str
    data: bytes


def newest_position(info: PartitionInfo, count: int) -> EventPosition:
    """Where the newest `count` events of a partition begin."""
    first = max(info.begin_sequence_number, info.last_sequence_number - count + 1)
    return EARLIEST if info.is_empty else EventPosition(PositionKind.SEQUENCE_NUMBER, first, inclusive=True)


async def peek_events(visit: Visit, place: PartitionPlace, position: EventPosition, count: int) -> list[PeekedEvent]:
    """At most `count` events from a position on, and no more behind PEEK_BYTES. Raises ServiceError."""
    owner = Owner(visit.gateway.process.process_id, NO_CONNECTION)
    opening = _PeekReader(place, OpenReader(place.log_id, owner, GROUP, position, None, None))
    events: list[PeekedEvent] = []
    size = 0
    try:
        reader_id = (await visit.ask(opening.start)).reader_id
        for _ in range(READS_LIMIT):
            reading = partial(_read, place, ReadEvents(place.log_id, reader_id, READ_BYTES, 0))
            read = await visit.ask(reading)
            if not read.run:
                break
            found = _events_of(read, count - len(events))
            size += sum(len(event.data) for event in found)
            events += found
            if len(events) >= count or size >= PEEK_BYTES:
                break
    finally:
        opening.close()
    return events


class _PeekReader:
    """A reader that is closed whatever happens, also when it opens later than anybody waits."""

    def __init__(self, place: PartitionPlace, command: OpenReader) -> None:
        self._place = place
        self._command = command
        self._reader_id: int | None = None
        self._is_over = False

    def start(self, on_done: Callable[[ReaderOpened | ServiceError], None]) -> None:
        def answered(answer: Answer) -> None:
            if isinstance(answer, ReaderOpened):
                self._reader_id = answer.reader_id
                if self._is_over:
                    self.close()
            on_done(answer if isinstance(answer, ReaderOpened) else error_of(answer))

        self._place.broker.submit(self._command, answered)

    def close(self) -> None:
        self._is_over = True
        if self._reader_id is not None:
            self._place.broker.submit(CloseReader(self._place.log_id, self._reader_id), nobody_waits)


def _read(place: PartitionPlace, command: ReadEvents, on_done: Callable[[EventsRead | ServiceError], None]) -> None:
    place.broker.submit(command, lambda answer: on_done(answer if isinstance(answer, EventsRead) else error_of(answer)))


def _events_of(read: EventsRead, count: int) -> list[PeekedEvent]:
    """The first `count` of those that were read."""
    out = bytearray()
    written = deliver(read.run, RunCursor(), _FORM, 0, _ROOM, out)[0]
    frames, rows = array("q", bytes(8 * FRAME_WIDTH * written)), array("q", bytes(8 * DELIVERY_WIDTH * written))
    scan_frames(out, 0, len(out), _FRAME_BYTES, frames)
    collect_deliveries(frames, 0, written, rows)
    data, columns = bytes(out), array("q", bytes(8 * EVENT_WIDTH * written))
    opened = open_events(data, rows, 0, written, columns)
    events: list[PeekedEvent] = []
    for number in range(opened):
        at, row = number * EVENT_WIDTH, number * DELIVERY_WIDTH
        # A batch comes whole; what is in it before the position was not asked for.
        if columns[at + E_SEQUENCE_NUMBER] < read.sequence_number:
            continue
        start, key = rows[row + D_START], columns[at + E_KEY]
        events.append(
            PeekedEvent(
                columns[at + E_SEQUENCE_NUMBER],
                columns[at + E_OFFSET],
                columns[at + E_ENQUEUED_TIME],
                "" if key < 0 else data[key : key + columns[at + E_KEY_LENGTH]].decode(errors="replace"),
                data[start : start + rows[row + D_LENGTH]],
            )
        )
        if len(events) == count:
            break
    return events
