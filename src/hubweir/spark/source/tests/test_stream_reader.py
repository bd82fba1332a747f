import json
import pickle
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

from hubweir.client.blocking import BlockingEventHubClient
from hubweir.client.retry import RetryPolicy
from hubweir.errors import ServiceError
from hubweir.spark import hub_connection
from hubweir.spark.errors import DataLoss, IllegalOffset
from hubweir.spark.hub_connection import close_clients
from hubweir.spark.source import hub_bounds, range_reader
from hubweir.spark.source.read_options import parse_options
from hubweir.spark.source.stream_reader import EventHubStreamReader
from hubweir.testing.running_namespace import RunningNamespace
from hubweir.testing.server_process import ServerProcess

NewHub = Callable[..., str]
OptionsOf = Callable[..., dict[str, str]]
ClientOf = Callable[[str], BlockingEventHubClient]
StartServer = Callable[..., ServerProcess]
ALL = ReadAllAvailable()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(range_reader, "freeze_garbage", lambda: None)
    monkeypatch.setattr(hub_bounds, "_PARTITIONS_KEPT_S", 0.0)


@pytest.fixture
def reader_of(options_of: OptionsOf) -> Callable[..., EventHubStreamReader]:
    """reader_of(hub, startingPosition="latest"): what Spark makes for a query."""
    return lambda hub, **more: EventHubStreamReader(
        parse_options(options_of(hub, **more), is_stream=True), ("partition", "sequenceNumber")
    )


ReaderOf = Callable[..., EventHubStreamReader]


def logged(offset: dict[str, Any]) -> dict[str, Any]:
    again: dict[str, Any] = json.loads(json.dumps(offset))
    return again


def read(reader: EventHubStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[tuple[str, int]]:
    """The rows of a batch, each task by a copy of the reader, as in Spark's workers."""
    tasks = pickle.loads(pickle.dumps(reader.partitions(start, end)))
    copied: EventHubStreamReader = pickle.loads(pickle.dumps(reader))
    batches: list[pa.RecordBatch] = [batch for task in tasks for batch in copied.read(task)]
    return [(row["partition"], row["sequenceNumber"]) for batch in batches for row in batch.to_pylist()]


def test_stream_goes_on_where_it_was(new_hub: NewHub, reader_of: ReaderOf, client_of: ClientOf) -> None:
    hub = new_hub(partition_count=2)
    client_of(hub).sender(partition_id="1").send([b"x"] * 5)
    reader = reader_of(hub, startingPosition="earliest")
    start = reader.initialOffset()
    end = logged(reader.latestOffset(start, ALL))
    assert end == {"0": 0, "1": 5, "from": {"0": 0, "1": 0}}
    assert read(reader, reader.initialOffset(), end) == [("1", number) for number in range(5)]
    assert reader.latestOffset(end, ALL) is end  # nothing new: no batch
    client_of(hub).sender(partition_id="0").send([b"x"] * 2)
    following = reader.latestOffset(end, ALL)
    assert following == {"0": 2, "1": 5} == reader.reportLatestOffset()
    assert read(reader_of(hub), end, following) == [("0", 0), ("0", 1)]
    reader.stop()


def test_a_consumer_group_that_is_not_there_is_an_error_at_the_start_not_with_the_first_event(
    new_hub: NewHub, reader_of: ReaderOf
) -> None:
    hub = new_hub(partition_count=2)
    with pytest.raises(ServiceError, match=f"consumerGroup 'nobody' of event hub '{hub}' cannot be read: .*found"):
        reader_of(hub, consumerGroup="nobody").initialOffset()


def test_first_batch_of_latest_stays_where_it_began(new_hub: NewHub, reader_of: ReaderOf, client_of: ClientOf) -> None:
    """Spark asks the initial offset again when it plans, and once more after a crash; events come all the time."""
    hub = new_hub()
    sender = client_of(hub).sender()
    sender.send([b"x"] * 10)
    reader = reader_of(hub)  # latest
    start = reader.initialOffset()
    sender.send([b"x"] * 10)
    end = logged(reader.latestOffset(start, ALL))
    sender.send([b"x"] * 10)
    expected = [("0", number) for number in range(10, 20)]
    assert read(reader, reader.initialOffset(), end) == expected
    after_crash = reader_of(hub)
    assert read(after_crash, after_crash.initialOffset(), end) == expected


def test_empty_first_batch_of_latest_loses_nothing(new_hub: NewHub, reader_of: ReaderOf, client_of: ClientOf) -> None:
    hub = new_hub()
    reader = reader_of(hub)
    start = reader.initialOffset()
    end = logged(reader.latestOffset(start, ALL))
    client_of(hub).sender().send([b"x"] * 3)
    again = reader_of(hub)
    assert again.partitions(again.initialOffset(), end) == []
    following = again.latestOffset(end, ALL)
    assert read(again, end, following) == [("0", 0), ("0", 1), ("0", 2)]


def test_limit_holds_and_is_the_option(new_hub: NewHub, reader_of: ReaderOf, client_of: ClientOf) -> None:
    hub = new_hub(partition_count=2)
    client_of(hub).sender(partition_id="0").send([b"x"] * 90)
    client_of(hub).sender(partition_id="1").send([b"x"] * 10)
    reader = reader_of(hub, startingPosition="earliest", maxEventsPerTrigger="50")
    assert reader.getDefaultReadLimit() == ReadMaxRows(50)
    assert reader_of(hub).getDefaultReadLimit() == ALL
    offset = reader.initialOffset()
    taken = []
    for _ in range(3):
        end = reader.latestOffset(offset, ReadMaxRows(50))
        taken.append(len(read(reader, offset, end)) if end is not offset else 0)
        offset = end
    assert taken == [50, 50, 0]


def test_gap_that_an_unclean_stop_left_in_a_relaxed_hub_is_crossed_in_one_small_batch(
    start_server: StartServer,
) -> None:
    server = start_server("relaxed")
    text = server.connection_string()

    def send() -> None:
        with BlockingEventHubClient.from_connection_string(text, "orders") as client:
            client.sender().send([b"x"] * 5)

    send()
    server.kill9()
    server.start()
    send()
    given = {"connectionString": text, "eventHub": "orders", "startingPosition": "earliest"}
    strict = EventHubStreamReader(parse_options(given, is_stream=True), ("partition", "sequenceNumber"))
    with pytest.raises(DataLoss, match="sequence numbers 5 to 8"):
        read(strict, {"0": 0}, strict.latestOffset({"0": 0}, ReadMaxRows(9)))
    lenient = EventHubStreamReader(
        parse_options({**given, "failOnDataLoss": "false"}, is_stream=True), ("partition", "sequenceNumber")
    )
    offset, taken = lenient.initialOffset(), list[int]()
    for _ in range(5):
        end = lenient.latestOffset(offset, ReadMaxRows(3))
        if end is not offset:
            rows = [number for _, number in read(lenient, offset, end)]
            assert len(rows) <= 3
            taken += rows
        offset = end
    assert taken[:5] == list(range(5)) and len(taken) == 10 and taken[5] >= 2**25
    close_clients()


def test_a_query_waits_for_a_service_that_is_away_between_two_batches(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As long as the operationTimeout says; not where nobody has answered yet, and not with AvailableNow, which would
    end with events unread.
    """
    monkeypatch.setattr(hub_connection, "_RETRY", RetryPolicy(attempts=1))
    server = start_server()
    text = server.connection_string()

    def reader(**more: str) -> EventHubStreamReader:
        given = {"connectionString": text, "eventHub": "orders", **more}
        return EventHubStreamReader(parse_options(given, is_stream=True), ("partition", "sequenceNumber"))

    patient, hasty, ending = reader(), reader(operationTimeout="1ms"), reader()
    start = patient.initialOffset()
    assert patient.latestOffset(start, ALL) == start == hasty.latestOffset(start, ALL)
    ending.prepareForTriggerAvailableNow()
    server.kill9()
    assert [patient.latestOffset(start, ALL) for _ in range(3)] == [start] * 3
    assert [record.getMessage()[:34] for record in caplog.records] == ["event hub 'orders' has not served "]
    for one in (ending, reader()):
        with pytest.raises(ServiceError, match="cannot reach"):
            one.latestOffset(start, ALL)
    with pytest.raises(ServiceError, match="cannot reach"):
        for _ in range(10_000):  # a millisecond's worth
            hasty.latestOffset(start, ALL)
    server.start()
    with BlockingEventHubClient.from_connection_string(text, "orders") as client:
        client.sender().send([b"x"] * 5)
    assert read(patient, start, patient.latestOffset(start, ALL)) == [("0", number) for number in range(5)]
    close_clients()


def test_too_few_events_wait_but_not_for_ever(new_hub: NewHub, reader_of: ReaderOf, client_of: ClientOf) -> None:
    hub = new_hub()
    client_of(hub).sender().send([b"x"] * 5)
    patient = reader_of(hub, startingPosition="earliest", minEventsPerTrigger="10", maxTriggerDelay="1h")
    start = patient.initialOffset()
    assert patient.latestOffset(start, ALL) is start
    assert patient.latestOffset(start, ReadMinRows(5)) is not start
    late = reader_of(hub, startingPosition="earliest", minEventsPerTrigger="10", maxTriggerDelay="0s")
    assert late.latestOffset(late.initialOffset(), ALL)["0"] == 5
    client_of(hub).sender().send([b"x"] * 5)
    assert patient.latestOffset(start, ALL)["0"] == 10


def test_available_now_ends_where_the_hub_was(new_hub: NewHub, reader_of: ReaderOf, client_of: ClientOf) -> None:
    hub = new_hub()
    sender = client_of(hub).sender()
    sender.send([b"x"] * 7)
    reader = reader_of(hub, startingPosition="earliest", minEventsPerTrigger="100")
    reader.prepareForTriggerAvailableNow()
    sender.send([b"x"] * 50)
    offset = reader.initialOffset()
    ends = []
    while (end := reader.latestOffset(offset, ReadMaxRows(3))) is not offset:
        ends.append(end["0"])
        offset = end
    assert ends == [3, 6, 7]


def test_available_now_from_latest_has_nothing_to_read(
    new_hub: NewHub, reader_of: ReaderOf, client_of: ClientOf
) -> None:
    hub = new_hub()
    reader = reader_of(hub)
    reader.prepareForTriggerAvailableNow()
    client_of(hub).sender().send([b"x"] * 5)  # between the target and "latest"
    start = reader.initialOffset()
    assert reader.latestOffset(start, ALL) is start


def test_partition_that_was_added_is_read_from_its_first_event(
    new_hub: NewHub, reader_of: ReaderOf, client_of: ClientOf
) -> None:
    hub = new_hub(partition_count=2)
    client_of(hub).sender(partition_id="1").send([b"x"] * 3)
    reader = reader_of(hub)
    end = reader.latestOffset({"0": 0}, ALL)  # the checkpoint of a time with one partition
    assert end == {"0": 0, "1": 3}
    assert read(reader, {"0": 0}, end) == [("1", 0), ("1", 1), ("1", 2)]


def test_partition_that_is_gone_is_refused(new_hub: NewHub, reader_of: ReaderOf) -> None:
    reader = reader_of(new_hub())
    with pytest.raises(IllegalOffset, match="has no partition 1, .* another checkpoint"):
        reader.latestOffset({"0": 0, "1": 3}, ALL)
    with pytest.raises(IllegalOffset, match="has no partition 1"):  # a batch that is planned again after a crash
        reader.partitions({"0": 0, "1": 3}, {"0": 0, "1": 5})


def test_hub_made_anew_is_data_loss_or_read_from_its_start(
    namespace: RunningNamespace, new_hub: NewHub, reader_of: ReaderOf, client_of: ClientOf
) -> None:
    hub = new_hub()
    client_of(hub).sender().send([b"x"] * 4)
    start = {"0": 9}  # of the hub that had this name before
    with pytest.raises(DataLoss, match="made anew"):
        reader_of(hub).latestOffset(start, ALL)
    lenient = reader_of(hub, failOnDataLoss="false")
    end = lenient.latestOffset(start, ALL)
    assert end == {"0": 4}
    assert read(lenient, start, end) == [("0", number) for number in range(4)]
    with pytest.raises(IllegalOffset, match="backwards"):
        reader_of(hub).partitions(start, end)


def test_reader_is_small_when_it_travels_and_shows_no_secret(new_hub: NewHub, reader_of: ReaderOf) -> None:
    reader = reader_of(new_hub(), startingPosition="earliest")
    reader.latestOffset(reader.initialOffset(), ALL)
    assert len(pickle.dumps(reader)) < 2_000
    tasks = reader.partitions({"0": 0}, {"0": 0})
    assert tasks == []
