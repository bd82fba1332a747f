import pytest
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from hubweir.spark.errors import IllegalOption
from hubweir.spark.event_format import columns_of

BODIES = StructType([StructField("body", BinaryType()), StructField("sequenceNumber", LongType())])


def test_schema_names_the_columns() -> None:
    assert columns_of(BODIES) == ("body", "sequenceNumber")
    with pytest.raises(IllegalOption, match="NOT NULL of body"):
        columns_of(StructType([StructField("body", BinaryType(), nullable=False)]))
    with pytest.raises(IllegalOption, match="body as string"):
        columns_of(StructType([StructField("body", StringType())]))
