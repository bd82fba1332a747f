"""JSON bodies as columns, by Spark itself: what parses, what does not, and what is kept of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hubweir.spark.json_view import with_json_value

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BODIES = (b'{"number": 7, "place": "gr\xc3\xbcn", "more": [1]}', b'{"number": "seven"}', b"\xff\x00", b"", None)


def events(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([(row, body) for row, body in enumerate(BODIES)], "sequenceNumber long, body binary")


def test_bodies_that_parse_are_columns_and_the_others_are_kept(spark: SparkSession) -> None:
    rows = with_json_value(events(spark), "number int, place string").orderBy("sequenceNumber").collect()
    assert (rows[0].value.number, rows[0].value.place) == (7, "grün")
    assert [row.value and row.value.number for row in rows[1:]] == [None] * 4
    assert [row.body and bytes(row.body) for row in rows[2:]] == [b"\xff\x00", b"", None]
    assert rows[4].value is None


def test_the_schema_may_be_sparks_own_and_the_column_has_any_name(spark: SparkSession) -> None:
    from pyspark.sql.types import IntegerType, StructField, StructType

    schema = StructType([StructField("number", IntegerType())])
    found = with_json_value(events(spark), schema, column="reading")
    assert found.columns == ["sequenceNumber", "body", "reading"]
    assert found.where("reading.number = 7").count() == 1
