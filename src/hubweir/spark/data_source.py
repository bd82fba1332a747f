"""`format("eventhubs")`: what PySpark calls first, and which reader or writer it gets.

Classes here are pickled by name, so workers need the hubweir package.
"""

from __future__ import annotations

from collections.abc import MutableMapping

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from hubweir.spark.batch_reader import EventHubReader
from hubweir.spark.errors import IllegalOption
from hubweir.spark.event_columns import check_schema, chosen_columns, spark_schema
from hubweir.spark.options import OptionTexts, parse_options
from hubweir.spark.sink_columns import SinkColumns, sink_columns
from hubweir.spark.stream_reader import EventHubStreamReader
from hubweir.spark.write_options import parse_write_options
from hubweir.spark.writer import EventHubStreamWriter, EventHubWriter

NAME = "eventhubs"


class EventHubsDataSource(DataSource):
    """One event hub, named by its options."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._given = options

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        """All columns, or those of the option `columns`. Not asked when the user gave a schema."""
        columns = OptionTexts(self._given).text("columns")
        return spark_schema() if columns is None else spark_schema(chosen_columns(columns))

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


def columns_of(schema: StructType) -> tuple[str, ...]:
    """The columns that a schema asks for; IllegalOption when it asks for what events do not have."""
    fixed = [each.name for each in schema.fields if not each.nullable]
    if fixed:
        raise IllegalOption(
            f"the schema says NOT NULL of {fixed[0]}: leave that out, every column of events may be null"
        )
    return check_schema([(each.name, each.dataType.simpleString()) for each in schema.fields])
