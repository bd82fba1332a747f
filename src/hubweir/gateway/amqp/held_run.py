"""The run that one reader's link has read and not sent, and the place in it where to go on.

A run lies in memory until it is sent, so it is dropped where that takes too long, and read again from where it stopped
(turn_share.py, gateway/held_runs.py).
"""

from __future__ import annotations

from hubweir.amqp.transport.sender_link import SendProgress
from hubweir.broker.commands.reader import EventsRead
from hubweir.gateway.amqp.run_cursor import cursor_at, sequence_number_at
from hubweir.gateway.held_runs import ReadSize
from hubweir.kernels.contract import RunCursor

_AT_START = RunCursor()


class HeldRun:
    """One run of a link, or none. run: None while there is none. cursor: of the first event in it that was not sent.

    events: about how many were not sent. again_from: of the first event that was read, and dropped unsent; the next
    read takes it. size: of the reads, which counts what is held.
    """

    __slots__ = ("_is_fresh", "again_from", "cursor", "events", "run", "size")

    def __init__(self, size: ReadSize) -> None:
        self.size = size
        self.run: bytes | memoryview | None = None
        self.cursor = _AT_START
        self.events = 0
        self.again_from: int | None = None
        self._is_fresh = False  # something was sent from it, or it came, since the last look

    def came(self, answer: EventsRead) -> None:
        """A read is over; its run is held now, unless it is empty."""
        self.size.came(len(answer.run))
        self.again_from = None
        if len(answer.run):
            self.run, self._is_fresh = answer.run, True
            self.events = answer.next_sequence_number - answer.sequence_number
            self.cursor = cursor_at(answer.run, answer.sequence_number)

    def sent(self, run: bytes | memoryview, progress: SendProgress) -> None:
        """This went out of the run; at its end nothing is held any more."""
        self.cursor = progress.cursor
        self.events -= progress.events
        if self.cursor.batch_at >= len(run):
            self.run = None
            self.size.sent()
        elif progress.events:
            self._is_fresh = True

    def drop(self) -> None:
        """Forget the run, if there is one; what of it was not sent is read again."""
        if self.run is not None:
            self.again_from = sequence_number_at(self.run, self.cursor)
            self.run = None
            self.size.dropped()

    def drop_when_stale(self) -> None:
        """The same, when nothing was sent from it since the last call."""
        if not self._is_fresh:
            self.drop()
        self._is_fresh = False

    def close(self) -> None:
        """The link is over."""
        self.run = None
        self.size.dropped()
