"""An event hub as a table: the events between two positions, as they were when the DataFrame was first used.

There is no `pushFilters`: Spark 4.3 keeps the planned reader of a DataFrame with the filters of its first action, and a
second action without them gets fewer rows than there are. Positions are options instead. By the same cache a
DataFrame is a snapshot; `load()` again sees what came since.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from hubweir.spark.source.hub_bounds import HubBounds
from hubweir.spark.source.offsets import ranges
from hubweir.spark.source.range_reader import read_ranges
from hubweir.spark.source.read_options import ReadOptions
from hubweir.spark.source.read_tasks import ReadTask, tasks_of


class EventHubReader(DataSourceReader):
    """See the module's text."""

    def __init__(self, options: ReadOptions, columns: tuple[str, ...]) -> None:
        self._options = options
        self._columns = columns

    def partitions(self) -> Sequence[InputPartition]:
        """The tasks. DataLoss when the start names events that retention removed and that matters."""
        hub = HubBounds(self._options)
        begin = hub.resolve(self._options.starting, option="startingPosition")
        end = hub.resolve(self._options.ending, option="endingPosition")
        bounds = hub.bounds()
        # An end before the start is no event of that partition, as between two times at which nothing came.
        found = ranges(begin, {key: max(number, begin[key]) for key, number in end.items()})
        kept = [hub.kept(one, bounds[one.partition_id]) for one in found]
        tasks = tasks_of([one for one in kept if one is not None], self._options.min_partitions)
        if not tasks:
            hub.check_group()  # no task will attach, and so nobody else would say so
        return tasks

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """In a task: the events of its ranges."""
        if not isinstance(partition, ReadTask):  # Spark reads a source without partitions as one of None
            return iter(())
        return read_ranges(self._options, partition.ranges, self._columns)
