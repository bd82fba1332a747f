from collections.abc import Callable

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from hubweir.spark.data_source import EventHubsDataSource
from hubweir.spark.errors import IllegalOption
from hubweir.spark.sink.writer import EventHubStreamWriter, EventHubWriter
from hubweir.spark.source.batch_reader import EventHubReader
from hubweir.spark.source.stream_reader import EventHubStreamReader

OptionsOf = Callable[..., dict[str, str]]
BODIES = StructType([StructField("body", BinaryType()), StructField("sequenceNumber", LongType())])


def source(options: dict[str, str]) -> EventHubsDataSource:
    return EventHubsDataSource(CaseInsensitiveDict(options))


def test_readers_are_made_from_options_without_a_connection(options_of: OptionsOf) -> None:
    made = source(options_of("nowhere", columns="sequenceNumber,body"))
    assert made.name() == "eventhubs"
    assert made.schema() == "sequenceNumber bigint, body binary"
    assert isinstance(made.reader(BODIES), EventHubReader)
    assert isinstance(made.streamReader(BODIES), EventHubStreamReader)


def test_no_filters_are_pushed() -> None:
    """Spark 4.3 would keep the filters of a DataFrame's first action; tests/spark shows when that is mended."""
    assert "pushFilters" not in vars(EventHubReader)


def test_writers_are_made_from_options_without_a_connection(options_of: OptionsOf) -> None:
    made = source(options_of("nowhere", sortBy="sequenceNumber"))
    assert isinstance(made.writer(BODIES, False), EventHubWriter)
    assert isinstance(made.streamWriter(BODIES, True), EventHubStreamWriter)  # output mode complete
    with pytest.raises(IllegalOption, match="cannot be overwritten: write with .mode"):
        made.writer(BODIES, True)
    with pytest.raises(IllegalOption, match="no column 'nothing'"):
        source(options_of("nowhere", sortBy="nothing")).writer(BODIES, False)
    with pytest.raises(IllegalOption, match="no column body"):
        made.streamWriter(StructType([StructField("value", StringType())]), False)
