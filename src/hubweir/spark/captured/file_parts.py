"""Chooses the captured files that a read needs, by names and a few looks, and shares them out to tasks."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hubweir.spark.captured.avro_file import EventTimes
from hubweir.spark.captured.places import CapturedName

# The longest window of a capture, and a minute for clocks. A file's name gives the time at which its window closed
# (other services: opened), so an event is at most this much newer than its file's name. An event may be hours older
# than the name: capture may have been behind.
_WINDOW_MS = (15 + 1) * 60 * 1000
# Some seconds of work a task.
TASK_BYTES = 128 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class FilePart:
    """The blocks of a file that begin at bytes start up to, not including, end."""

    file: CapturedName
    start: int
    end: int


def wanted_files(
    names: Iterable[CapturedName],
    partitions: frozenset[str] | None,
    times: EventTimes,
    begins_before: Callable[[CapturedName, int], bool | None],
) -> list[CapturedName]:
    """The files that may have events of these partitions and times, in order. Never leaves out one that has.

    begins_before: looks whether a file's first event came before a time; None: it has no event. Asked of a few files
    that were closed behind `until`: a partition's files have its events in order, so one of them tells of all behind.
    """
    by_series: dict[tuple[int, str], list[CapturedName]] = {}
    for name in names:
        if partitions is None or name.partition_id in partitions:
            by_series.setdefault((int(name.partition_id), name.series), []).append(name)
    wanted: list[CapturedName] = []
    for _, files in sorted(by_series.items()):
        files.sort(key=lambda each: (each.second, each.path))
        start = bisect_left(files, times.since_ms + 1 - _WINDOW_MS, key=_closed_ms)
        end = bisect_left(files, times.until_ms, lo=start, key=_closed_ms)
        wanted += files[start : _end_of(files, end, times.until_ms, begins_before)]
    return wanted


def _closed_ms(name: CapturedName) -> int:
    return name.second * 1000


def _end_of(
    files: list[CapturedName], low: int, until_ms: int, begins_before: Callable[[CapturedName, int], bool | None]
) -> int:
    """Where the files end, of those from low on, that begin before until_ms; found by halves."""
    high = len(files)
    while low < high:
        middle = place = (low + high) // 2
        while (is_before := begins_before(files[place], until_ms)) is None and place + 1 < high:
            place += 1
        if is_before:
            low = place + 1
        else:
            high = middle  # from there on nothing, or nothing that is wanted
    return low


def parts_of(files: Iterable[CapturedName], task_bytes: int = TASK_BYTES) -> list[tuple[FilePart, ...]]:
    """Every block of every file in one task: files in their order, joined up to task_bytes, larger ones cut."""
    tasks: list[tuple[FilePart, ...]] = []
    open_task: list[FilePart] = []
    room = task_bytes
    for file in files:
        count = max(1, -(-file.size_bytes // task_bytes))
        if open_task and (count > 1 or file.size_bytes > room):
            tasks.append(tuple(open_task))
            open_task, room = [], task_bytes
        edges = [file.size_bytes * place // count for place in range(count + 1)]
        cut = [FilePart(file, start, end) for start, end in zip(edges, edges[1:], strict=False)]
        if count > 1:
            tasks += [(part,) for part in cut]
        else:
            open_task += cut
            room -= file.size_bytes
    return [*tasks, tuple(open_task)] if open_task else tasks
