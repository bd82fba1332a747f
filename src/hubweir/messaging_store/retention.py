"""Which whole segments may go, and how they go.

A segment goes when its newest record is older than the retention time, everything older went before it, and snapshots
do not need it. The newest segment never goes: when it is old, the log starts a new, empty one, whose header keeps the
last offset and time, and the old one goes the next time.

After a crash: a prefix of the log is gone, never a hole: superseded files go first (they would come back to life if
what supersedes them were gone), then segments from the oldest on, each removal durable before the next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hubweir.env import Files, Result
from hubweir.messaging_store.layout import join
from hubweir.messaging_store.log_state import LogState
from hubweir.messaging_store.segment_files import Segment


@dataclass(frozen=True, slots=True)
class Held:
    """Records from keep_from on, and not older than oldest_ms, stay beyond their time: somebody must read them yet."""

    keep_from: int
    oldest_ms: int


class Retention:
    """Lets the old segments of one log go. roll: has a new segment started, so that the newest one can go, too."""

    def __init__(self, state: LogState, roll: Callable[[], None]) -> None:
        self._state = state
        self._roll = roll
        self._removing = False

    def expire(self, *, oldest_kept_ms: int, trim_limit: int | None, held: Held | None) -> int:
        """See Log.expire; the arguments are those of expired_count. The files go away from the loop, oldest first."""
        state = self._state
        if self._removing or state.closing:
            return state.first_index
        count, roll = expired_count(
            state.segments, state.visible.last_time_ms, oldest_kept_ms=oldest_kept_ms, trim_limit=trim_limit, held=held
        )
        if roll and state.offline is None and state.segments[-1].first_index < state.visible.index:
            self._roll()
        gone, superseded = state.segments[:count], state.superseded
        if not gone and not superseded:
            return state.first_index
        state.segments = state.segments[count:]
        state.superseded = []
        if gone:
            first = state.segments[0].header
            state.first_index, state.first_offset = first.first_index, first.first_offset
            state.counters.add("log.expired_segments", len(gone))
        self._removing = True
        files, folder = state.env.files, state.folder

        def removed(result: Result[None]) -> None:
            self._removing = False
            try:
                result.value()
            except OSError:
                # They are found again at the next start. Superseded ones must not outlive what supersedes them.
                state.superseded = (
                    superseded + [name for segment in gone for name in segment.names()] + state.superseded
                )

        state.steps.away(lambda: remove_segments(files, folder, superseded, gone), removed)
        return state.first_index


def expired_count(
    segments: Sequence[Segment],
    last_time_ms: int,
    *,
    oldest_kept_ms: int,
    trim_limit: int | None,
    held: Held | None = None,
) -> tuple[int, bool]:
    """How many of the first segments may go, and whether the newest one should be followed by an empty one.

    last_time_ms: of the log's newest record, -1 for none. oldest_kept_ms: now less retention. trim_limit: the index
    up to which snapshots cover the log; None when nobody takes snapshots. held: what stays longer for a reader.
    """
    count = 0
    for following in segments[1:]:
        newest_ms = following.header.last_time_ms
        if newest_ms >= oldest_kept_ms or (trim_limit is not None and following.first_index > trim_limit):
            return count, False
        if held is not None and following.first_index > held.keep_from and newest_ms >= held.oldest_ms:
            return count, False
        count += 1
    return count, bool(segments) and 0 <= last_time_ms < oldest_kept_ms


def remove_segments(files: Files, folder: str, superseded: Sequence[str], segments: Sequence[Segment]) -> None:
    """Remove files, oldest last to be missed: see the module's text. Blocking; raises OSError, and may be repeated."""
    for name in superseded:
        _remove(files, folder, [name])
    if superseded:
        files.sync_folder(folder)
    for segment in segments:
        log_name, *index_names = segment.names()
        _remove(files, folder, [*index_names, log_name])
        files.sync_folder(folder)


def _remove(files: Files, folder: str, names: Sequence[str]) -> None:
    for name in names:
        path = join(folder, name)
        if files.exists(path):
            files.remove(path)
