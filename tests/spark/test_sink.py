"""Writing into event hubs with a real Spark session: what is written, where it lands, and what is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hubweir.client.authorization_rules import AuthorizationRules
from hubweir.client.blocking import BlockingEventHubClient
from hubweir.client.event_hub_client import EventHubClient
from hubweir.testing.running_namespace import RunningNamespace, running_namespace
from hubweir.throughput_unit.usage import HourUsage
from tests.spark.live_hub import Hub

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NewHub = Callable[..., Hub]


@pytest.fixture
def new_hub(namespace: RunningNamespace, hub: Hub) -> NewHub:
    """new_hub("copy", 4): one more hub."""

    def make(name: str, partition_count: int = 2, of: RunningNamespace = namespace) -> Hub:
        whole = f"{hub.name}-{name}"
        of.create_event_hub(whole, partition_count=partition_count)
        client = BlockingEventHubClient.from_connection_string(of.connection_string(), whole)
        made.append(client)
        return Hub(of, whole, client)

    made: list[BlockingEventHubClient] = []
    yield make
    for client in made:
        client.close()


def write(rows: DataFrame, hub: Hub, **more: str) -> None:
    rows.write.format("eventhubs").options(**hub.options(**more)).mode("append").save()


def read(spark: SparkSession, hub: Hub) -> list[Any]:
    events = spark.read.format("eventhubs").options(**hub.options()).load()
    return sorted(events.collect(), key=lambda row: (int(row.partition), row.sequenceNumber))


def test_what_a_source_gives_can_be_written_as_it_is(spark: SparkSession, hub: Hub, new_hub: NewHub) -> None:
    """Bodies, properties, keys and publishers; keyed rows in the partition where the gateway puts the key."""
    for key in ("device-1", "device-2", "grün", "x" * 128):
        hub.client.sender().send([f"{key}-{number}".encode() for number in range(20)], partition_key=key)
    # A key that the service itself would not choose by.
    write(spark.range(1).selectExpr("'long' AS body", "repeat('x', 129) AS partitionKey"), hub)
    hub.client.sender(publisher="meter-1").send([b"by a publisher", b"once more"])
    hub.client.sender(partition_id="1").send([b"\x00\xff", b""])
    first = spark.read.format("eventhubs").options(**hub.options()).load()
    marked = first.withColumn("properties", _map("map('colour', 'grün', 'empty', '')"))
    target = new_hub("copy")
    write(marked, target)
    fields = ("partition", "body", "partitionKey", "publisher")
    copied = read(spark, target)
    assert _sorted(copied, fields) == _sorted(read(spark, hub), fields)
    assert {tuple(row.properties.items()) for row in copied} == {(("colour", "grün"), ("empty", ""))}


def _map(expression: str) -> Any:
    from pyspark.sql.functions import expr

    return expr(expression)


def _sorted(rows: list[Any], fields: tuple[str, ...]) -> list[tuple[Any, ...]]:
    return sorted((tuple(row[name] for name in fields) for row in rows), key=repr)


@pytest.mark.parametrize("hub", [4], indirect=True)
def test_rows_go_where_their_target_says_and_else_everywhere(spark: SparkSession, hub: Hub) -> None:
    rows = spark.range(400).selectExpr("'text' AS body", "int(id % 4) AS partitionId")
    write(rows.where("partitionId = 2"), hub)
    assert [hub.high(each) for each in "0123"] == [0, 0, 100, 0]
    write(spark.range(400).selectExpr("binary('bytes') AS body", "string(null) AS partitionKey"), hub)
    assert [hub.high(each) for each in "0123"] == [100, 100, 200, 100]


def test_a_stream_is_copied_to_the_end_and_goes_on_from_its_checkpoint(
    spark: SparkSession, hub: Hub, new_hub: NewHub, tmp_path: Path
) -> None:
    target = new_hub("copy")
    for start in (0, 2_000):
        for partition_id in "01":
            hub.send(partition_id, 2_000, start=start)
        source = spark.readStream.format("eventhubs").options(**hub.options(startingPosition="earliest"))
        events = source.option("maxEventsPerTrigger", "2500").load()
        writer = events.writeStream.format("eventhubs").options(**target.options(exactlyOnce="require"))
        query = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
        assert query.awaitTermination(60)
    copied = [(row.partition, bytes(row.body)) for row in read(spark, target)]
    assert copied == [(each, b"%s-%d" % (each.encode(), number)) for each in "01" for number in range(4_000)]


def test_a_row_over_the_limit_is_named_with_the_limit(spark: SparkSession, hub: Hub) -> None:
    rows = spark.range(1, 4, 1, 1).selectExpr("repeat('x', int(if(id = 2, 2000000, 5))) AS body")
    with pytest.raises(Exception, match=r"IllegalRow: row 2 of task 0 is too large.* over the \d+ bytes"):
        write(rows, hub)


def test_a_busy_service_is_waited_for_until_all_is_stored_once(spark: SparkSession, new_hub: NewHub) -> None:
    with running_namespace(throughput_units=1) as slow:
        target = new_hub("slow", 2, slow)
        rows = spark.range(1_500).selectExpr("string(id) AS body", "string(id % 2) AS partition")
        write(rows.coalesce(1), target, exactlyOnce="require")
        assert refusals(slow) > 0
        assert [int(row.body) for row in read(spark, target)] == [*range(0, 1_500, 2), *range(1, 1_500, 2)]


def refusals(namespace: RunningNamespace) -> int:
    """How many requests were answered server-busy."""
    process = namespace.service.process

    async def hours() -> list[HourUsage]:
        return [HourUsage(*row) for gateway in process.gateways for row in gateway.units.hours()]

    return sum(hour.refusals for hour in namespace.run(hours()))


def test_a_batch_named_by_options_is_stored_once_however_often_it_is_written(spark: SparkSession, hub: Hub) -> None:
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        rows = spark.range(1_000).selectExpr("string(id) AS body")
        for batch_id in ("0", "0", "1", "1"):
            write(rows, hub, queryId="copy", batchId=batch_id, exactlyOnce="require")
        assert hub.high("0") + hub.high("1") == 2_000
        with pytest.raises(Exception, match="ChangedRepeat: task . of batch 1 was repeated and made other rows"):
            write(spark.range(1_000).selectExpr("string(id + 1) AS body"), hub, queryId="copy", batchId="1")
        write(rows, hub, queryId="another", batchId="0")
        write(rows, hub)  # a job of its own
        assert hub.high("0") + hub.high("1") == 4_000
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")


def test_sorted_rows_may_come_in_any_order(spark: SparkSession, hub: Hub) -> None:
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    named = {"queryId": "sorted", "batchId": "0", "exactlyOnce": "require"}
    try:
        for order in ("id", "-id"):
            rows = (
                spark.range(0, 1_000, 1, 1)
                .orderBy(_map(order))
                .selectExpr("string(id % 7) AS body", "id", "id AS `a,b`")
            )
            write(rows.coalesce(1), hub, sortBy="ID", **named)
        assert hub.high("0") + hub.high("1") == 1_000
        with pytest.raises(Exception, match="ChangedRepeat"):
            write(rows.coalesce(1), hub, **named)
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")


def of_all(*case: object) -> Any:
    """A case that runs with --all: the task's refusal of another row stands for it, and it has a test without Spark."""
    return pytest.param(*case, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("columns", "options", "text"),
    [
        ("id", {}, "there is no column body"),
        ("id AS body", {}, "column body is bigint"),
        ("'x' AS body; '0' AS partitionId; 'k' AS partitionKey", {}, "row 1 of task 0 has a partitionId and"),
        of_all("'x' AS body; 'p' AS publisher; 'k' AS partitionKey", {}, "row 1 of task 0 has a publisher and"),
        of_all("'x' AS body; 7 AS partition", {}, "row 1 of task 0 names partition '7' in partition, and the"),
        of_all("'x' AS body; 'p' AS publisher", {"exactlyOnce": "require"}, "NotExactlyOnce.*publisher 'p'"),
        ("'x' AS body", {"exactlyOnce": "require", "queryId": "q", "batchId": "1"}, "NotExactlyOnce.*adaptive"),
        of_all("'x' AS body; repeat('k', 40000) AS partitionKey", {}, "task 0 has a partitionKey of 40000 bytes"),
        of_all("'x' AS body; repeat('p', 300) AS publisher", {}, "row 1 of task 0 has a publisher of 300 characters"),
        of_all("'x' AS body; 'a/b' AS publisher", {}, "row 1 of task 0 has the publisher 'a/b', which is no piece"),
        of_all("'x' AS body; map('big', repeat('v', 40000)) AS properties", {}, "task 0 has a property of 400"),
        ("'x' AS body; INTERVAL 1 MONTH AS h", {}, "column h is interval month"),
        ("'x' AS body; map('a', 'b') AS m", {"sortBy": "m"}, "sortBy: column m is map<string,string>, which has no"),
        ("'x' AS body", {"credential": "jobs.tokens"}, "a connection string carries the proof"),
        ("'x' AS body", {"queryId": "q"}, "queryId and batchId belong together"),
        ("'x' AS body", {"sortBy": "nothing"}, "there is no column 'nothing'"),
    ],
)  # fmt: skip
def test_what_cannot_be_written_is_refused_and_nothing_of_it_stored(
    spark: SparkSession, hub: Hub, columns: str, options: dict[str, str], text: str
) -> None:
    rows = spark.range(0, 1, 1, 1).selectExpr(*columns.split("; "))
    with pytest.raises(Exception, match=text):
        write(rows, hub, **options)
    assert hub.high("0") + hub.high("1") == 0


def test_no_rows_are_no_events(spark: SparkSession, hub: Hub) -> None:
    write(spark.createDataFrame([], "body string"), hub, exactlyOnce="require")
    write(spark.range(10).selectExpr("string(id) AS body").where("body = 'x'"), hub)
    assert hub.high("0") + hub.high("1") == 0


def test_a_stream_has_its_names_in_its_checkpoint(
    spark: SparkSession, hub: Hub, new_hub: NewHub, tmp_path: Path
) -> None:
    hub.send("0", 5)
    events = spark.readStream.format("eventhubs").options(**hub.options(startingPosition="earliest")).load()
    options = new_hub("copy").options(queryId="copy", batchId="1")
    writer = events.writeStream.format("eventhubs").options(**options).option("checkpointLocation", str(tmp_path))
    with pytest.raises(Exception, match="a stream has both in its checkpoint"):
        writer.trigger(availableNow=True).start().awaitTermination(60)


def test_who_may_only_listen_is_told_which_right_a_write_needs(spark: SparkSession, hub: Hub) -> None:
    text = hub.namespace.connection_string()
    with pytest.raises(Exception, match=r"partition \d of event hub '.*' takes no writes of this task; .* right Send"):
        write(spark.range(1).selectExpr("'x' AS body"), hub, connectionString=_with_rule(hub, text, "Listen"))
    write(spark.range(1).selectExpr("'x' AS body"), hub, connectionString=_with_rule(hub, text, "Send"))
    assert hub.high("0") + hub.high("1") == 1


def _with_rule(hub: Hub, text: str, right: str) -> str:
    """The connection string of a rule of the hub that has this right alone."""

    async def key() -> str:
        async with EventHubClient.from_connection_string(text, hub.name) as client:
            rules = AuthorizationRules(await client.connection())
            return (await rules.create_rule(right, (right,), hub.name)).primary.reveal()

    kept = [each for each in text.split(";") if not each.startswith("SharedAccessKey")]
    return ";".join([*kept, f"SharedAccessKeyName={right}", f"SharedAccessKey={asyncio.run(key())}"])


def test_a_hub_is_not_overwritten(spark: SparkSession, hub: Hub) -> None:
    writer = spark.range(1).selectExpr("'x' AS body").write.format("eventhubs").options(**hub.options())
    with pytest.raises(Exception, match="cannot be overwritten"):
        writer.mode("overwrite").save()


def test_a_write_in_foreach_batch_says_what_it_repeats(
    spark: SparkSession, hub: Hub, new_hub: NewHub, tmp_path: Path
) -> None:
    hub.send("0", 500)
    target, refused = new_hub("copy"), []

    def copy(batch: DataFrame, batch_id: int) -> None:
        try:
            write(batch, target, exactlyOnce="require")
        except Exception as error:
            refused.append(str(error))
        for _ in range(2):
            write(batch, target, exactlyOnce="require", queryId=str(tmp_path), batchId=str(batch_id))

    source = spark.readStream.format("eventhubs").options(**hub.options(startingPosition="earliest"))
    query = source.load().writeStream.foreachBatch(copy).option("checkpointLocation", str(tmp_path))
    assert query.trigger(availableNow=True).start().awaitTermination(60)
    assert target.high("0") == 500
    assert refused and all("inside foreachBatch has to say what it repeats" in text for text in refused)
