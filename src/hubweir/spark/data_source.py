"""`format("eventhubs")`: what PySpark calls first, and which reader it gets.

Classes here are pickled by name, so workers need the hubweir package. The sink stands beside it in time; until then
writing is refused in plain words.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import NoReturn

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from hubweir.spark.batch_reader import EventHubReader
from hubweir.spark.errors import IllegalOption
from hubweir.spark.event_schema import check_schema, chosen_columns, spark_schema
from hubweir.spark.options import OptionTexts, parse_options
from hubweir.spark.stream_reader import EventHubStreamReader

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

    def writer(self, schema: StructType, overwrite: bool) -> NoReturn:
        raise _no_sink()

    def streamWriter(self, schema: StructType, overwrite: bool) -> NoReturn:
        raise _no_sink()


def columns_of(schema: StructType) -> tuple[str, ...]:
    """The columns that a schema asks for; IllegalOption when it asks for what events do not have."""
    fixed = [each.name for each in schema.fields if not each.nullable]
    if fixed:
        raise IllegalOption(
            f"the schema says NOT NULL of {fixed[0]}: leave that out, every column of events may be null"
        )
    return check_schema([(each.name, each.dataType.simpleString()) for each in schema.fields])


def _no_sink() -> IllegalOption:
    return IllegalOption(
        f'format("{NAME}") is a source only in this version: write with hubweir.client.blocking in foreachPartition'
    )
