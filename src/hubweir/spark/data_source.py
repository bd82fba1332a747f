"""`format("eventhubs")`: what PySpark calls first, and which reader or writer it gets."""

from __future__ import annotations

from pyspark.sql.types import StructType

from hubweir.spark.errors import IllegalOption
from hubweir.spark.event_format import EventFormat, columns_of
from hubweir.spark.sink.sink_columns import SinkColumns, sink_columns
from hubweir.spark.sink.write_options import parse_write_options
from hubweir.spark.sink.writer import EventHubStreamWriter, EventHubWriter
from hubweir.spark.source.batch_reader import EventHubReader
from hubweir.spark.source.read_options import parse_options
from hubweir.spark.source.stream_reader import EventHubStreamReader


class EventHubsDataSource(EventFormat):
    """One event hub, named by its options."""

    NAME = "eventhubs"

    def reader(self, schema: StructType) -> EventHubReader:
        return EventHubReader(parse_options(self._given, is_stream=False), columns_of(schema))

    def streamReader(self, schema: StructType) -> EventHubStreamReader:
        return EventHubStreamReader(parse_options(self._given, is_stream=True), columns_of(schema))

    def writer(self, schema: StructType, overwrite: bool) -> EventHubWriter:
        if overwrite:
            raise IllegalOption("events of an event hub cannot be overwritten: write with .mode('append')")
        return EventHubWriter(parse_write_options(self._given), self._written(schema))

    def streamWriter(self, schema: StructType, overwrite: bool) -> EventHubStreamWriter:
        """overwrite: of output mode complete; all rows of each batch are sent then, as new events."""
        return EventHubStreamWriter(parse_write_options(self._given), self._written(schema))

    def _written(self, schema: StructType) -> SinkColumns:
        found = sink_columns([(each.name, each.dataType.simpleString()) for each in schema.fields])
        for name in parse_write_options(self._given).sort_by:
            found.place(name)
        return found
