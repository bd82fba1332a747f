"""The ranges that a task reads, as Spark hands them to it."""

from __future__ import annotations

from pyspark.sql.datasource import InputPartition

from hubweir.spark.offsets import EventRange


class RangePartition(InputPartition):
    """The ranges of one task, in the order in which they are read."""

    def __init__(self, ranges: tuple[EventRange, ...]) -> None:
        super().__init__(None)
        self.ranges = ranges

    def __repr__(self) -> str:
        return f"RangePartition({', '.join(f'{each.partition_id}: {each.start}…{each.end}' for each in self.ranges)})"
