import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import _parse_datatype_string

from hubweir.kernels.columns_contract import ALL_COLUMNS, COLUMN_BODY, COLUMN_SEQUENCE_NUMBER
from hubweir.spark.event_columns import COLUMN_NAMES, spark_schema
from hubweir.spark.record_batches import arrow_schema, fresh_columns, mask_of, record_batch

# As the JVM connector has them.
JVM = (
    "body binary, partition string, offset string, sequenceNumber long, enqueuedTime timestamp, publisher string, "
    "partitionKey string, properties map<string,string>, systemProperties map<string,string>"
)


def test_columns_are_those_of_the_jvm_connector(no_java: None) -> None:
    assert arrow_schema(COLUMN_NAMES) == to_arrow_schema(_parse_datatype_string(JVM), timezone="UTC")
    assert _parse_datatype_string(spark_schema()) == _parse_datatype_string(JVM)


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark parses DDL in the JVM; these few types are parsed here."""
    from pyspark.sql import types

    def parse(text: str) -> types.StructType:
        kinds = {
            "binary": types.BinaryType(), "string": types.StringType(), "long": types.LongType(),
            "bigint": types.LongType(), "timestamp": types.TimestampType(),
            "map<string,string>": types.MapType(types.StringType(), types.StringType()),
        }  # fmt: skip
        fields = [field.split(" ") for field in text.replace("g,s", "g;s").split(", ")]
        return types.StructType([types.StructField(name, kinds[kind.replace(";", ",")]) for name, kind in fields])

    monkeypatch.setattr(f"{__name__}._parse_datatype_string", parse)


def test_mask_has_the_columns_asked_for() -> None:
    assert mask_of(COLUMN_NAMES) == ALL_COLUMNS
    assert mask_of(("partition", "sequenceNumber", "body")) == 1 << COLUMN_SEQUENCE_NUMBER | 1 << COLUMN_BODY
    assert mask_of(("partition",)) == 0


def test_no_rows_are_a_batch_of_every_column() -> None:
    made = record_batch(fresh_columns(), 0, COLUMN_NAMES, "0")
    made.validate(full=True)
    assert made.num_rows == 0 and made.schema == arrow_schema(COLUMN_NAMES)


def test_partition_is_the_same_in_every_row() -> None:
    made = record_batch(fresh_columns(), 3, ("partition",), "17")
    assert made.to_pydict() == {"partition": ["17"] * 3}
    assert made.schema == pa.schema([("partition", pa.string())])
