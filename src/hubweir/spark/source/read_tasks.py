"""Assigns ranges to tasks: small ones are joined, and wide ones split when more tasks are asked for.

A task costs some 10 ms whatever it reads, so a micro-batch of a thousand events is read by one, partition by partition;
many events are read by a task a partition. A pure function of the ranges and the options: a repeated batch makes the
same tasks with the same rows, which a sink that drops repeats needs.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql.datasource import InputPartition

from hubweir.spark.source.offsets import EventRange

# Below it the start of a task costs more than a second core gains.
EVENTS_A_TASK = 20_000


class ReadTask(InputPartition):
    """The ranges of one task, in the order in which they are read. It travels to the task."""

    def __init__(self, ranges: tuple[EventRange, ...]) -> None:
        super().__init__(None)
        self.ranges = ranges

    def __repr__(self) -> str:
        return f"ReadTask({', '.join(f'{each.partition_id}: {each.start}…{each.end}' for each in self.ranges)})"


def tasks_of(
    found: Sequence[EventRange], min_partitions: int | None, events_a_task: int = EVENTS_A_TASK
) -> list[ReadTask]:
    """Every event of every range in exactly one task; at least min_partitions of them when there are as many events."""
    if not found:
        return []
    events = sum(map(len, found))
    wanted = min(len(found), -(-events // events_a_task))
    if min_partitions is not None:
        wanted = max(wanted, min(min_partitions, events))
    if wanted >= len(found):
        return [ReadTask((one,)) for one in split_widest(found, wanted)]
    return [ReadTask(together) for together in join_smallest(found, wanted)]


def split_widest(found: Sequence[EventRange], wanted: int) -> list[EventRange]:
    """Cut the widest ranges until there are as many as wanted; the pieces of a range differ by one event at most."""
    pieces = [1] * len(found)
    for _ in range(wanted - len(found)):
        place = max(range(len(found)), key=lambda at: (len(found[at]) / pieces[at], -at))
        pieces[place] += 1
    return [piece for one, count in zip(found, pieces, strict=True) for piece in _cut(one, count)]


def join_smallest(found: Sequence[EventRange], wanted: int) -> list[tuple[EventRange, ...]]:
    """Put whole ranges into `wanted` tasks, the largest first into the task that has least."""
    bins: list[list[EventRange]] = [[] for _ in range(wanted)]
    events = [0] * wanted
    for one in sorted(found, key=lambda each: (-len(each), int(each.partition_id), each.start)):
        place = events.index(min(events))
        bins[place].append(one)
        events[place] += len(one)
    return [tuple(sorted(one, key=lambda each: (int(each.partition_id), each.start))) for one in bins]


def _cut(one: EventRange, count: int) -> list[EventRange]:
    edges = [one.start + len(one) * place // count for place in range(count + 1)]
    return [EventRange(one.partition_id, start, end) for start, end in zip(edges, edges[1:], strict=False)]
