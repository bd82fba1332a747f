"""The common part of the formats whose rows are events: the schema, and which of its columns a reader wants.

Formats are pickled by name, so workers need the hubweir package.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import ClassVar

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from hubweir.spark.errors import IllegalOption
from hubweir.spark.event_columns import check_schema, chosen_columns, spark_schema
from hubweir.spark.option_texts import OptionTexts


class EventFormat(DataSource):
    """A format with options. NAME: what stands in `format("…")`."""

    NAME: ClassVar[str]

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._given = options

    @classmethod
    def name(cls) -> str:
        return cls.NAME

    def schema(self) -> str:
        """All columns, or those of the option `columns`. Not asked when the user gave a schema."""
        columns = OptionTexts(self._given).text("columns")
        return spark_schema() if columns is None else spark_schema(chosen_columns(columns))


def columns_of(schema: StructType) -> tuple[str, ...]:
    """The columns that a schema asks for; IllegalOption when it asks for what events do not have."""
    fixed = [each.name for each in schema.fields if not each.nullable]
    if fixed:
        raise IllegalOption(
            f"the schema says NOT NULL of {fixed[0]}: leave that out, every column of events may be null"
        )
    return check_schema([(each.name, each.dataType.simpleString()) for each in schema.fields])
