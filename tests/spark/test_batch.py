"""Reading event hubs and captured files as tables, with a real Spark session."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastavro
import pytest
from azure.eventhub import EventData, EventHubConsumerClient, EventHubProducerClient

from hubweir.capture.avro import SCHEMA
from hubweir.spark.event_columns import COLUMN_NAMES
from hubweir.spark.json_view import with_json_value
from tests.spark.live_hub import Hub

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.timeout(300)

JVM = (
    "body binary, partition string, offset string, sequenceNumber long, enqueuedTime timestamp, publisher string, "
    "partitionKey string, properties map<string,string>, systemProperties map<string,string>"
)


def read(spark: SparkSession, hub: Hub, **more: str) -> DataFrame:
    return spark.read.format("eventhubs").options(**hub.options(**more)).load()


def send_with_the_official_client(hub: Hub) -> None:
    text = hub.namespace.connection_string()
    with EventHubProducerClient.from_connection_string(text, eventhub_name=hub.name) as producer:
        events = []
        for number in range(50):
            event = EventData(json.dumps({"number": number, "place": f"p{number}"}).encode())
            event.properties = {
                "text": f"grün {number}",
                "number": number,
                "real": number / 4,
                "flag": True,
                "raw": b"\x01",
            }
            event.correlation_id, event.content_type = f"c-{number}", "application/json"
            events.append(event)
        producer.send_batch(events, partition_id="0")
        producer.send_batch([EventData(b"\x00\xff"), EventData(b"")], partition_key="device-7")
    sender = hub.client.sender(publisher="meter-1")
    sender.send([b"by a publisher"])


def received_by_the_official_client(hub: Hub, count: int) -> dict[tuple[str, int], dict[str, Any]]:
    """What the same events are to the official consumer: by (partition, sequence number)."""
    text = hub.namespace.connection_string()
    consumer = EventHubConsumerClient.from_connection_string(text, "$Default", eventhub_name=hub.name)
    found: dict[tuple[str, int], dict[str, Any]] = {}

    def on_events(context: Any, events: list[Any]) -> None:
        for event in events:
            found[context.partition_id, event.sequence_number] = {
                "body": b"".join(event.body),
                "offset": event.offset,
                "enqueuedTime": event.enqueued_time,
                "partitionKey": event.partition_key and event.partition_key.decode(),
                "properties": {key.decode(): value for key, value in (event.properties or {}).items()},
                "correlation": event.correlation_id,
            }
        if len(found) == count:
            consumer.close()

    with consumer:
        # One by one it gives five events a second.
        consumer.receive_batch(on_events, starting_position="-1", max_wait_time=1)
    return found


def test_all_nine_columns_are_what_the_official_client_receives(spark: SparkSession, hub: Hub) -> None:
    send_with_the_official_client(hub)
    events = read(spark, hub)
    assert tuple(events.columns) == COLUMN_NAMES
    assert events.schema.simpleString() == spark.createDataFrame([], JVM).schema.simpleString()
    # Times as integers: a local time has no zone in Python's row.
    rows = events.selectExpr("*", "unix_millis(enqueuedTime) AS ms").collect()
    expected = received_by_the_official_client(hub, 53)
    assert {(row.partition, row.sequenceNumber) for row in rows} == set(expected) and len(rows) == 53
    for row in rows:
        sent = expected[row.partition, row.sequenceNumber]
        assert (bytes(row.body), row.offset, row.partitionKey or None) == (
            sent["body"],
            sent["offset"],
            sent["partitionKey"],
        )
        assert row.ms == round(sent["enqueuedTime"].timestamp() * 1000)
        assert row.properties == {key: _text(value) for key, value in sent["properties"].items()}
        assert row.systemProperties.get("correlation-id") == sent["correlation"]
    assert [row.publisher for row in rows if bytes(row.body) == b"by a publisher"] == ["meter-1"]
    values = with_json_value(events, "number int, place string").selectExpr("value.number", "value.place")
    assert sorted(row.number for row in values.where("place LIKE 'p%'").collect()) == list(range(50))
    assert values.where("number IS NULL").count() == 3


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode() if value != b"\x01" else "AQ=="
    return json.dumps(value)


def test_schema_and_columns_are_pruning_and_plans_show_no_secret(
    spark: SparkSession, hub: Hub, capfd: pytest.CaptureFixture[str]
) -> None:
    hub.send("1", 20)
    plain = read(spark, hub, columns="sequenceNumber,partition")
    assert plain.columns == ["sequenceNumber", "partition"]
    assert plain.agg({"sequenceNumber": "sum"}).first()[0] == 190
    by_schema = spark.read.format("eventhubs").options(**hub.options()).schema("body binary").load()
    assert sorted(bytes(row.body) for row in by_schema.collect())[0] == b"1-0"
    by_schema.explain(True)
    printed = "".join(capfd.readouterr()) + repr(by_schema) + by_schema._jdf.queryExecution().toString()
    assert "SharedAccessKey" not in printed
    with pytest.raises(Exception, match="cast it in a select") as refused:
        spark.read.format("eventhubs").options(**hub.options()).schema("body string").load().collect()
    assert "SharedAccessKey=" not in str(refused.value)


def test_positions_of_every_kind(spark: SparkSession, hub: Hub) -> None:
    hub.send("0", 10)
    boundary = (
        read(spark, hub)
        .where("partition = '0'")
        .selectExpr("offset", "unix_millis(enqueuedTime) AS ms", "sequenceNumber")
    )
    five = boundary.where("sequenceNumber = 5").first()
    after = datetime.fromtimestamp(five.ms / 1000 + 0.001, UTC).isoformat()
    positions = {
        "earliest": 10,
        "latest": 0,
        "7": 3,
        after: 0,
        "2020-01-01": 10,
        '{"0": 4, "1": "latest"}': 6,
        json.dumps({"offset": five.offset, "seqNo": -1, "isInclusive": True}): 5,
        json.dumps({"offset": five.offset, "seqNo": -1, "isInclusive": False}): 4,
        json.dumps({json.dumps({"ehName": hub.name, "partitionId": 0}): {"seqNo": 8, "isInclusive": True}}): 2,
    }
    for text, expected in positions.items():
        start = text if text != "7" else '{"0": 7}'  # partition 1 is empty: it has no event 7
        assert read(spark, hub, startingPosition=start).count() == expected, text
    assert read(spark, hub, startingPositions='{"0": 2}', endingPositions='{"0": 6}').count() == 4
    assert read(spark, hub, minPartitions="5").rdd.getNumPartitions() == 5


def test_an_unknown_consumer_group_is_an_error_also_in_an_empty_hub(spark: SparkSession, hub: Hub) -> None:
    assert read(spark, hub).count() == 0
    with pytest.raises(Exception, match=f"consumerGroup 'nobody' of event hub '{hub.name}' cannot be read"):
        read(spark, hub, consumerGroup="nobody").count()


@pytest.mark.slow
def test_filters_are_not_pushed_as_long_as_spark_keeps_them_for_the_next_action(spark: SparkSession) -> None:
    """Spark 4.3 caches the planned reader of a DataFrame with its filters. Until it does not."""
    from pyspark.sql.datasource import DataSource, DataSourceReader, EqualTo, InputPartition

    class Reader(DataSourceReader):
        only: Any = None

        def pushFilters(self, filters: Any) -> Any:
            for each in filters:
                if isinstance(each, EqualTo) and each.attribute == ("p",):
                    self.only = each.value
                else:
                    yield each

        def partitions(self) -> Any:
            return [InputPartition(p) for p in range(4) if self.only is None or p == self.only]

        def read(self, partition: Any) -> Any:
            yield from [(partition.value,)] * 10

    class Source(DataSource):
        @classmethod
        def name(cls) -> str:
            return "pushes"

        def schema(self) -> str:
            return "p int"

        def reader(self, schema: Any) -> Any:
            return Reader()

    spark.dataSource.register(Source)
    setting = "spark.sql.python.filterPushdown.enabled"
    before = spark.conf.get(setting)
    spark.conf.set(setting, "true")
    try:
        frame = spark.read.format("pushes").load()
        assert (frame.count(), frame.where("p = 1").count()) == (40, 10)
        assert frame.count() == 10, "Spark's cache is mended: pushFilters may be used"
    finally:
        spark.conf.set(setting, before)


def test_captured_files_are_a_table(spark: SparkSession, tmp_path: Path) -> None:
    noon_s = 1_769_860_800
    for partition_id in ("0", "1"):
        path = tmp_path / "ns" / "orders" / partition_id / "2026/01/31/12/05/00.avro"
        path.parent.mkdir(parents=True)
        out = io.BytesIO()
        records = [
            {
                "SequenceNumber": number,
                "Offset": str(number),
                "EnqueuedTimeUtc": "1/31/2026 12:00:00 PM",
                "SystemProperties": {"x-opt-enqueued-time": (noon_s + number) * 1000, "x-opt-partition-key": "k"},
                "Properties": {"n": number},
                "Body": b"%d" % number,
            }
            for number in range(300)
        ]
        fastavro.writer(out, fastavro.parse_schema(json.loads(SCHEMA)), records)
        path.write_bytes(out.getvalue())
    captured = spark.read.format("eventhubs-capture").load(str(tmp_path))
    assert captured.schema.simpleString() == spark.createDataFrame([], JVM).schema.simpleString()
    assert captured.count() == 600
    row = captured.where("partition = '1' AND sequenceNumber = 7").first()
    assert (bytes(row.body), row.partitionKey, row.properties) == (b"7", "k", {"n": "7"})
    some = spark.read.format("eventhubs-capture").options(
        partition="1", since="2026-01-31T12:01:00Z", until="2026-01-31T12:02:00Z"
    )
    assert [r.sequenceNumber for r in some.load(str(tmp_path)).orderBy("sequenceNumber").collect()] == list(
        range(60, 120)
    )
