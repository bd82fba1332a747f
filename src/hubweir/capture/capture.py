"""Capture of one partition, as decisions: when a window ends, what its file holds and is called, how the mark moves.

Nothing here waits, reads or writes. Whoever runs it keeps this order, so that a kill at any point loses no event and
puts none into two finished files (promise P20):

1. `intend` gives a mark with the intent (first, end, name, destination): it is made durable;
2. the file is written under another name, synced, renamed, its folder synced (a blob: one committed put);
3. `finished` gives the mark behind it: it is made durable.

A mark with an intent, found at start or left by a failure, goes on at 2. What is not in a finished file is in the log:
retention keeps everything from `keep_from` on, as far as its quota goes.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from hubweir.capture.archive_name import archive_name, name_second
from hubweir.capture.capture_mark import LOST_RANGES, CaptureMark, Intent
from hubweir.capture.window import Window
from hubweir.messaging_store.log import Bounds
from hubweir.namespace.capture_description import CaptureDescription


def first_mark(seed: bytes, bounds: Bounds, now_ms: int) -> CaptureMark:
    """The mark of capture that is enabled now: only events from now on are captured."""
    return CaptureMark(seed, bounds.next_index, bounds.next_offset, now_ms)


class Capture:
    """See the module's text. Times: wall clock in ms, and monotonic where the name says so."""

    def __init__(
        self,
        mark: CaptureMark,
        description: CaptureDescription,
        bounds: Bounds,
        *,
        namespace: str,
        hub: str,
        partition_id: str,
        now_ms: int,
        monotonic_ms: int,
    ) -> None:
        self.mark = _within(mark, bounds)
        self.description = description
        self._names = {"namespace": namespace, "hub": hub, "partition_id": partition_id}
        # A clock that ran back while nobody ran: the window is as good as new.
        age_ms = max(0, now_ms - mark.window_start_ms)
        self._opened_ms = monotonic_ms - age_ms
        self._next_opened_ms = monotonic_ms

    @property
    def window(self) -> Window:
        """The open window; also the one behind a file that is being made."""
        its = self.description
        return Window(self._opened_ms, its.interval_s * 1000, self.mark.next_offset, its.size_limit_bytes)

    @property
    def keep_from(self) -> int:
        """The first event that the log must still have."""
        return self.mark.next_index

    def wait_ms(self, bounds: Bounds, monotonic_ms: int) -> int:
        """How long until the open window ends by time; 0 when it has ended, by time or by size."""
        if self.window.size_end(bounds.next_offset) is not None:
            return 0
        return self.window.wait_ms(monotonic_ms)

    def pass_over_trimmed(self, bounds: Bounds) -> tuple[int, int] | None:
        """Go on behind what retention took though it was not captured; that range, or None. Durable with the next mark.

        Else there would be a file for each window of events that are gone.
        """
        if self.mark.intent is not None or bounds.first_index <= self.mark.next_index:
            return None
        gone = (self.mark.next_index, bounds.first_index)
        self.mark = msgspec.structs.replace(
            self.mark,
            next_index=bounds.first_index,
            next_offset=bounds.first_offset,
            uncaptured=self.mark.uncaptured + gone[1] - gone[0],
            lost=(*self.mark.lost, gone)[-LOST_RANGES:],
        )
        return gone

    def begin_at(self, index: int, offset: int) -> bool:
        """The log has nothing between the window's begin and this event: begin here. False when it is the same."""
        if index <= self.mark.next_index and offset <= self.mark.next_offset:
            return False
        self.mark = msgspec.structs.replace(
            self.mark,
            next_index=max(index, self.mark.next_index),
            next_offset=max(offset, self.mark.next_offset),
        )
        return True

    def may_skip(self, bounds: Bounds) -> bool:
        """Whether the window that has ended makes no file: there are no events, and empty files are not wanted."""
        return self.description.skip_empty_archives and bounds.next_index <= self.mark.next_index

    def open_next(self, monotonic_ms: int) -> None:
        """The window has ended: the next one is open. Does nothing while it is open still."""
        if not self.window.wait_ms(monotonic_ms):
            self._opened_ms = self.window.next_opened_ms(monotonic_ms)

    def intend(self, end: int, end_offset: int, *, now_ms: int, monotonic_ms: int, last_second: int = 0) -> CaptureMark:
        """The mark that says which file is made now: of the events from the mark to end, exclusive.

        end_offset: the log's offset where the next window begins. last_second: of a name that is taken already.
        """
        its, window = self.description, self.window
        second = name_second(now_ms, max(self.mark.last_second, last_second))
        name = archive_name(its.archive_name_format, **self._names, second=second)
        is_full = end_offset >= window.first_offset + window.size_bytes
        self._next_opened_ms = monotonic_ms if is_full else window.next_opened_ms(monotonic_ms)
        intent = Intent(self.mark.next_index, end, end_offset, second, name, its.destination, its.container)
        return msgspec.structs.replace(self.mark, intent=intent)

    def finished(
        self, bounds: Bounds, lost: Sequence[tuple[int, int]], *, now_ms: int, monotonic_ms: int
    ) -> CaptureMark:
        """The mark behind the file that was made. lost: ranges of its events that the log did not have any more."""
        intent = self.mark.intent
        if intent is None:
            return self.mark
        self._opened_ms = self._next_opened_ms
        if self.window.wait_ms(monotonic_ms) == 0 and bounds.next_index <= intent.end:
            # The file took longer than a window (its destination was away), and nothing came meanwhile: one empty
            # file at most for the time away.
            self._opened_ms = monotonic_ms
        return msgspec.structs.replace(
            self.mark,
            next_index=intent.end,
            next_offset=intent.end_offset,
            window_start_ms=now_ms - (monotonic_ms - self._opened_ms),
            last_second=intent.second,
            intent=None,
            last_file=intent.name,
            files=self.mark.files + 1,
            uncaptured=self.mark.uncaptured + sum(end - first for first, end in lost),
            lost=(*self.mark.lost, *lost)[-LOST_RANGES:],
        )


def _within(mark: CaptureMark, bounds: Bounds) -> CaptureMark:
    """The mark, not behind the log's end. A disk that lied about syncs may have taken events that were captured."""
    end = bounds.next_index
    if mark.intent is not None and mark.intent.end > end:
        first = min(mark.intent.first, end)
        intent = msgspec.structs.replace(mark.intent, first=first, end=end, end_offset=bounds.next_offset)
        mark = msgspec.structs.replace(mark, intent=intent)
    if mark.next_index > end:
        mark = msgspec.structs.replace(mark, next_index=end, next_offset=bounds.next_offset)
    return mark
