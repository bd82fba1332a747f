"""Closes a segment that was rolled, or failed: a worker thread saves the indexes of a rolled one and closes its file.

After a crash: nothing here is needed. Indexes can be rebuilt, and recovery deals with spare space and a missing mark.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from hubweir.env import Lane, Result
from hubweir.messaging_store.disk.segment import ActiveSegment
from hubweir.messaging_store.segment_engine.log_state import LogState


def save_indexes(state: LogState, old: ActiveSegment) -> None:
    """The log goes on in a new segment: save the old one's indexes and close its file. Call before state.started."""
    segment, files, folder = state.active_segment, state.env.files, state.folder

    def save() -> None:
        old.file.close()
        if segment is not None and segment.indexes is not None:
            segment.indexes.save(files, folder, segment.header.name.stem)

    state.steps.away(Lane.MAINTENANCE, save, _ignore_failure)


def close_failed(state: LogState, failed: ActiveSegment) -> None:
    """A write or a sync of this segment failed, and it is given up: close its file, once no call uses it."""
    state.steps.when_written(lambda: state.steps.away(Lane.MAINTENANCE, failed.file.close, _ignore_failure))


def close_segment(state: LogState, active: ActiveSegment | None, on_closed: Callable[[], None]) -> None:
    """The log is closed: give the spare space back, save the indexes, close the file, then call back in any case."""
    segment, files, folder = state.active_segment, state.env.files, state.folder
    usable = state.offline is None

    def finish() -> None:
        if active is None or segment is None:
            return
        try:
            if usable:
                active.finish()
                if segment.indexes is not None:
                    segment.indexes.save(files, folder, segment.header.name.stem)
        finally:
            active.file.close()

    def finished(result: Result[None]) -> None:
        try:
            _ignore_failure(result)
        finally:
            on_closed()

    state.steps.away(Lane.MAINTENANCE, finish, finished)


def _ignore_failure(result: Result[None]) -> None:
    with suppress(OSError):
        result.value()
