"""Which captured files a read needs, by their names alone, and how they are shared out to tasks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hubweir.spark.captured_file import EventTimes
from hubweir.spark.captured_places import CapturedName

# The longest window of a capture, and a minute for clocks and for a file that took its time. A name tells when a window
# was closed (other services: opened), so an event lies this far from its file's name at most.
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
    names: Iterable[CapturedName], partitions: frozenset[str] | None, times: EventTimes
) -> list[CapturedName]:
    """The files that may have events of these partitions and times, in order. Never leaves out one that has.

    A file's events came before it was closed, give or take a window; and after the file before it was closed, so one
    behind a file that was closed well after `until` has none that are wanted, however long it was kept open.
    """
    by_partition: dict[str, list[CapturedName]] = {}
    for name in names:
        if partitions is None or name.partition_id in partitions:
            by_partition.setdefault(name.partition_id, []).append(name)
    wanted: list[CapturedName] = []
    for partition_id in sorted(by_partition, key=int):
        before_ms: int | None = None
        for name in sorted(by_partition[partition_id], key=lambda each: (each.second, each.path)):
            at_ms = name.second * 1000
            is_too_late = before_ms is not None and before_ms - _WINDOW_MS >= times.until_ms
            if at_ms + _WINDOW_MS > times.since_ms and not is_too_late:
                wanted.append(name)
            before_ms = at_ms
    return wanted


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
