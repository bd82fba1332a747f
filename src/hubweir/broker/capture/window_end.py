"""Finds the end of a window that is full by size: the log is asked for the first event at or behind its last byte.

A relaxed log that was not closed cleanly skips numbers and offsets: nothing is there, and nothing was lost to capture.
They must not fill windows, so the window's begin is first held against the first batch that the log really has.
"""

from __future__ import annotations

from collections.abc import Callable

from hubweir.capture.capture import Capture
from hubweir.errors import CorruptStore
from hubweir.messaging_store.log import Bounds, Log, Refused, Run
from hubweir.messaging_store.record import headers_of


def find_window_end(log: Log, capture: Capture, size_end: int, on_end: Callable[[int | Refused | None], None]) -> None:
    """on_end, maybe at once: the index behind the window's last event; None when its begin moved: look again.

    size_end: the offset at which it is full, which the log has. Settings that change meanwhile hold for the next one.
    """

    asked = log.bounds
    # One event at least, or a window smaller than an event would never end.
    least_end = capture.mark.next_index + 1

    def begun(run: Run | Refused) -> None:
        nonlocal least_end
        if isinstance(run, Run):
            if _begin_at(run, capture, asked):
                on_end(None)
                return
        elif isinstance(run.error, CorruptStore):
            least_end = max(least_end, run.error.resume_index or least_end)  # or each lost event would be a window
        else:
            on_end(run)
            return
        find()

    def find() -> None:
        answer = log.find_offset(size_end, found)
        if isinstance(answer, int):
            found(answer)

    def found(end: int | Refused) -> None:
        if isinstance(end, Refused):
            on_end(end)
        else:
            on_end(max(end, min(least_end, log.bounds.next_index)))

    answer = log.read(capture.mark.next_index, max_bytes=1, on_done=begun)
    if isinstance(answer, Run):
        begun(answer)


def _begin_at(run: Run, capture: Capture, asked: Bounds) -> bool:
    """Move the window's begin to the first event there is, when it lies before it. True when it was moved.

    asked: the log's bounds when it was asked. By now it may have more: an empty run says nothing of that.
    """
    first = next((header for header in headers_of(run.data) if header.count), None)
    if first is None:
        return run.next_index == asked.next_index and capture.begin_at(asked.next_index, asked.next_offset)
    if first.first_index < capture.mark.next_index:  # it begins inside a batch: there is no gap
        return False
    return capture.begin_at(first.first_index, first.first_offset)
