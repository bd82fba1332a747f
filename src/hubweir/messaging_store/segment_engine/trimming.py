"""Trims a log in segment files: whole segments go, from the oldest on, and how old each is the log tells.

A segment goes when every record in it lies below the index that is asked for, and snapshots do not need it; so at most
one segment more stays than was asked for. The newest segment never goes: when all in it may, the log starts a new,
empty one, whose header keeps the last offset and time, and the old one goes the next time.

How old a record is, its enqueued time says as long as it lies between the times at which its segment and the next one
were made (trusted_clock.py). One that does not was stamped by a wrong clock: the record is then as old as the next
segment, and a log without one starts one by age. So enqueued times of years ahead keep nothing for years, and those of
years ago remove nothing.

After a crash: a prefix of the log is gone, never a hole, and maybe less of it than `trim` said: superseded files go
first (they would come back to life if what supersedes them were gone), then segments from the oldest on, each removal
durable before the next. The order stays when a removal fails and is done again. A log that is deleted goes in the same
sense: by writer epochs, oldest first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from itertools import groupby

from hubweir.env import Files, Lane, Result, join_path
from hubweir.errors import LogFenced
from hubweir.messaging_store.disk.layout import SegmentName, parse_segment_name
from hubweir.messaging_store.disk.segment_files import Segment
from hubweir.messaging_store.segment_engine.log_state import LogState
from hubweir.messaging_store.trusted_clock import JUMP_MS
from hubweir.service_log import RETENTION

logger = logging.getLogger(__name__)


class Trimming:
    """Lets the old segments of one log go. roll: has a new segment started, so that the newest one can go, too."""

    def __init__(self, state: LogState, roll: Callable[[], None]) -> None:
        self._state = state
        self._roll = roll
        self._removing = False
        self._leaving: list[Segment] = []  # oldest first: the log does not count on them any more, their files may be
        self._on_idle: list[Callable[[], None]] = []

    def older_than(self, time_ms: int) -> int:
        """See Log.older_than."""
        state = self._state
        return index_of_age(
            state.segments.kept, time_ms, last_time_ms=state.visible.last_time_ms, next_index=state.visible.index,
            created_ms=state.clock.created_ms(),
        )  # fmt: skip

    def trim(self, index: int, *, covered: int | None, roll_age_ms: int | None) -> int:
        """See Log.trim. The files go away from the loop, oldest first.

        covered: the index up to which snapshots cover the log; None when nobody takes snapshots. roll_age_ms: the age
        at which the newest one is followed by another when nothing else says how old its records are; None: it is not.
        """
        state = self._state
        if state.health.is_closing or state.health.fenced is not None:
            return state.segments.first_index
        count = count_below(state.segments.kept, index if covered is None else min(index, covered))
        is_all = count == len(state.segments.kept) - 1 and index >= state.visible.index
        if (is_all or self._is_ageless(roll_age_ms)) and state.health.offline is None:
            newest = state.segments.kept[-1]
            if newest.first_index < state.visible.index:
                self._roll()
        if count:
            self._leaving += state.segments.drop(count)
            state.damage.forget_before(state.segments.first_index)
            state.counters["log.expired_segments"] += count
            RETENTION.say(logger, log=state.about, segments=count, first=state.segments.first_index)
        if not self._removing:
            self._remove()
        return state.segments.first_index

    def when_idle(self, callback: Callable[[], None]) -> None:
        """Call back, maybe at once, when no file is being removed. The log is closed: what is left stays there."""
        if self._removing:
            self._on_idle.append(callback)
        else:
            callback()

    def _is_ageless(self, roll_age_ms: int | None) -> bool:
        """Whether the newest segment's stamps say nothing of its age, and it is to be followed by another."""
        state, created_ms = self._state, self._state.clock.created_ms()
        if not state.segments.kept or state.visible.last_time_ms < 0:
            return False
        return is_ageless(state.segments.kept[-1], state.visible.last_time_ms, created_ms, roll_age_ms)

    def _remove(self) -> None:
        """Remove the files that the log does not count on; what fails is done again with the next trim."""
        state = self._state
        leaving, superseded = self._leaving[:], state.segments.take_superseded()
        if not leaving and not superseded:
            return
        self._removing = True
        files, folder = state.env.files, state.folder

        def removed(result: Result[None]) -> None:
            self._removing = False
            try:
                result.value()
            except LogFenced as error:
                state.health.fence(error)
            except OSError:
                state.segments.put_back_superseded(superseded)
            else:
                del self._leaving[: len(leaving)]
                if self._leaving and not state.health.is_closing:
                    self._remove()
            finally:
                if not self._removing:
                    on_idle, self._on_idle = self._on_idle, []
                    for callback in on_idle:
                        callback()

        def remove() -> None:
            state.check_epoch()  # the files of another owner are his to remove
            remove_segments(files, folder, superseded, leaving)

        state.steps.away(Lane.REMOVALS, remove, removed)


def count_below(segments: Sequence[Segment], index: int) -> int:
    """How many of the first segments hold only records below an index; never the newest one."""
    count = 0
    while count + 1 < len(segments) and segments[count + 1].first_index <= index:
        count += 1
    return count


def index_of_age(
    segments: Sequence[Segment], time_ms: int, *, last_time_ms: int, next_index: int, created_ms: int
) -> int:
    """The first index of the oldest segment that may hold a record of time_ms or later; next_index when none does.

    last_time_ms: of the log's newest record, -1 for none. created_ms: of a segment that was made now.
    """
    if not segments:
        return next_index
    ends = _ends(segments, created_ms)
    for segment, following, end_ms in zip(segments, segments[1:], ends, strict=False):
        if _newest(segment, following.header.last_time_ms, end_ms) >= time_ms:
            return segment.first_index
    newest = segments[-1]
    is_older = 0 <= last_time_ms < time_ms and _is_believed(newest, last_time_ms, created_ms)
    return next_index if is_older else newest.first_index


def is_ageless(newest: Segment, last_time_ms: int, created_ms: int, roll_age_ms: int | None) -> bool:
    """Whether the newest segment's last stamp is not believed, and the segment itself is roll_age_ms old."""
    if _is_believed(newest, last_time_ms, created_ms):
        return False
    age_ms = created_ms - newest.header.created_ms
    return age_ms < 0 or (roll_age_ms is not None and age_ms >= roll_age_ms)


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
