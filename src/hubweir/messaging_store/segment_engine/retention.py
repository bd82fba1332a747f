"""Removes whole segments whose time is over.

A segment goes when its newest record is older than the retention time, everything older went before it, and snapshots
do not need it. The newest segment never goes: when it is old, the log starts a new, empty one, whose header keeps the
last offset and time, and the old one goes the next time.

How old a record is, its enqueued time says as long as it lies between the times at which its segment and the next one
were made (trusted_clock.py). One that does not was stamped by a wrong clock: the record is then as old as the next
segment, and a log without one starts one by age. So enqueued times of years ahead keep nothing for years, and those of
years ago remove nothing.

After a crash: a prefix of the log is gone, never a hole: superseded files go first (they would come back to life if
what supersedes them were gone), then segments from the oldest on, each removal durable before the next. The order stays
when a removal fails and is done again. A log that is deleted goes in the same sense: by writer epochs, oldest first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from hubweir.env import Files, Lane, Result, join_path
from hubweir.errors import LogFenced
from hubweir.messaging_store.disk.layout import SegmentName, parse_segment_name
from hubweir.messaging_store.disk.segment_files import Segment
from hubweir.messaging_store.segment_engine.log_state import LogState
from hubweir.messaging_store.trusted_clock import JUMP_MS


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
        self._leaving: list[Segment] = []  # oldest first: the log does not count on them any more, their files may be

    def expire(
        self, *, oldest_kept_ms: int, trim_limit: int | None, held: Held | None, roll_age_ms: int | None = None
    ) -> int:
        """See Log.expire; the arguments are those of expired_count. The files go away from the loop, oldest first."""
        state = self._state
        if self._removing or state.closing or state.fenced is not None:
            return state.first_index
        count, roll = expired_count(
            state.segments, state.visible.last_time_ms, created_ms=state.clock.created_ms(),
            oldest_kept_ms=oldest_kept_ms, trim_limit=trim_limit, held=held, roll_age_ms=roll_age_ms,
        )  # fmt: skip
        if roll and state.offline is None and state.segments[-1].first_index < state.visible.index:
            self._roll()
        gone, superseded = state.segments[:count], state.superseded
        self._leaving += gone
        leaving = self._leaving
        if not leaving and not superseded:
            return state.first_index
        state.segments = state.segments[count:]
        state.superseded = []
        if gone:
            first = state.segments[0].header
            state.first_index, state.first_offset = first.first_index, first.first_offset
            state.damage.forget_before(state.first_index)
            state.counters.add("log.expired_segments", len(gone))
        self._removing = True
        files, folder = state.env.files, state.folder

        def removed(result: Result[None]) -> None:
            self._removing = False
            try:
                result.value()
                self._leaving = []
            except LogFenced as error:
                state.fence(error)
            except OSError:
                state.superseded = superseded + state.superseded  # the next sweep begins again with these

        def remove() -> None:
            state.check_epoch()  # the files of another owner are his to remove
            remove_segments(files, folder, superseded, leaving)

        state.steps.away(Lane.REMOVALS, remove, removed)
        return state.first_index


def expired_count(
    segments: Sequence[Segment],
    last_time_ms: int,
    *,
    created_ms: int,
    oldest_kept_ms: int,
    trim_limit: int | None,
    held: Held | None = None,
    roll_age_ms: int | None = None,
) -> tuple[int, bool]:
    """How many of the first segments may go, and whether the newest one should be followed by an empty one.

    last_time_ms: of the log's newest record, -1 for none. created_ms: of a segment that was made now. oldest_kept_ms:
    now less retention. trim_limit: the index up to which snapshots cover the log; None when nobody takes snapshots.
    held: what stays longer for a reader. roll_age_ms: the age at which the newest one is followed by another when
    nothing else says how old its records are; None: it is not.
    """
    count, ends = 0, _ends(segments, created_ms)
    for segment, following, end_ms in zip(segments, segments[1:], ends, strict=False):
        newest_ms = _newest(segment, following.header.last_time_ms, end_ms)
        if newest_ms >= oldest_kept_ms or (trim_limit is not None and following.first_index > trim_limit):
            break
        if held is not None and following.first_index > held.keep_from and newest_ms >= held.oldest_ms:
            break
        count += 1
    if not segments or last_time_ms < 0:
        return count, False
    if _is_believed(segments[-1], last_time_ms, created_ms):
        return count, count == len(segments) - 1 and last_time_ms < oldest_kept_ms
    age_ms = created_ms - segments[-1].header.created_ms
    return count, age_ms < 0 or (roll_age_ms is not None and age_ms >= roll_age_ms)


def _ends(segments: Sequence[Segment], created_ms: int) -> list[int]:
    """Of each segment: a time at which its newest record was there already.

    Every segment behind it was made later. One that was made while the clock was ahead says so of a time too late.
    """
    ends = [created_ms]
    for following in reversed(segments[1:]):
        ends.append(min(ends[-1], following.header.created_ms))
    return ends[::-1]


def _newest(segment: Segment, last_time_ms: int, end_ms: int) -> int:
    """When the newest record of a segment was appended: its enqueued time, or no earlier than that."""
    return last_time_ms if _is_believed(segment, last_time_ms, end_ms) else end_ms


def _is_believed(segment: Segment, last_time_ms: int, end_ms: int) -> bool:
    """Whether an enqueued time can be that of the newest record of a segment. The first one is appended before it is
    made, and the two clocks may be apart by what is no jump."""
    return segment.header.created_ms - JUMP_MS <= last_time_ms <= end_ms


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


def remove_log(files: Files, folder: str) -> None:
    """Remove a log's segments, then its folder, which is not durable yet. Blocking; raises OSError, may be repeated.

    What supersedes a file has a newer epoch. So whatever a power cut leaves holds nothing that was superseded before.
    """
    names = filter(None, map(parse_segment_name, files.list(folder)))
    for _, of_one_epoch in groupby(sorted(names, key=_epoch), key=_epoch):
        _remove(files, folder, [name.file_name for name in of_one_epoch])
        files.sync_folder(folder)
    files.remove_folder(folder)


def _epoch(name: SegmentName) -> int:
    return name.writer_epoch


def _remove(files: Files, folder: str, names: Sequence[str]) -> None:
    for name in names:
        path = join_path(folder, name)
        if files.exists(path):
            files.remove(path)
