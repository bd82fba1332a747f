from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from azure.eventhub import EventData, EventHubProducerClient

from hubweir.client.blocking import BlockingEventHubClient
from hubweir.client.receiver import ReceiverOptions
from hubweir.client.stored_run import StoredRun
from hubweir.errors import RESOURCE_LIMIT, TIMED_OUT, ServiceError
from hubweir.spark.errors import DataLoss
from hubweir.spark.event_columns import COLUMN_NAMES
from hubweir.spark.hub_connection import client_of
from hubweir.spark.record_batches import arrow_schema
from hubweir.spark.source import range_reader
from hubweir.spark.source.offsets import EventRange
from hubweir.spark.source.range_reader import RangeReader, read_ranges
from hubweir.spark.source.read_options import ReadOptions, parse_options
from hubweir.testing.damaged_namespace import HUB, damaged_namespace
from hubweir.testing.running_namespace import RunningNamespace

NewHub = Callable[..., str]
OptionsOf = Callable[..., dict[str, str]]
ClientOf = Callable[[str], BlockingEventHubClient]


def rows(options: ReadOptions, *ranges: EventRange, columns: tuple[str, ...] = COLUMN_NAMES) -> list[dict[str, Any]]:
    batches = list(read_ranges(options, ranges, columns))
    for batch in batches:
        batch.validate(full=True)
        assert batch.schema == arrow_schema(columns)
    return pa.Table.from_batches(batches, schema=arrow_schema(columns)).to_pylist()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No frozen garbage in the test process, and no long silence before the partition is asked."""
    monkeypatch.setattr(range_reader, "freeze_garbage", lambda: None)
    monkeypatch.setattr(range_reader, "_SILENCE_S", 0.2)


def test_all_columns_are_what_the_official_client_sent(
    namespace: RunningNamespace, new_hub: NewHub, options_of: OptionsOf
) -> None:
    hub = new_hub(partition_count=2)
    began = datetime.now(UTC)
    with EventHubProducerClient.from_connection_string(namespace.connection_string(), eventhub_name=hub) as producer:
        event = EventData(b"\x00\xffone")
        event.properties = {"text": "grün", "number": 7, "flag": True, "bytes": b"\x01\x02", "real": 1.5}
        event.correlation_id, event.content_type = "c-1", "application/json"
        producer.send_batch([event, EventData("zwei")], partition_id="1")
        producer.send_batch([EventData("drei")], partition_key="device-7")
    options = parse_options(options_of(hub), is_stream=False)
    client = client_of(options)
    keyed = next(state.partition_id for state in client.partitions(("0", "1")) if state.last_sequence_number % 2 == 0)
    found = {each["body"]: each for each in rows(options, EventRange("1", 0, 2))}
    first, second = found[b"\x00\xffone"], found[b"zwei"]
    assert (first["partition"], first["sequenceNumber"], second["sequenceNumber"]) == ("1", 0, 1)
    assert (first["publisher"], first["partitionKey"]) == (None, None)
    assert first["offset"].isdigit() and int(second["offset"]) > int(first["offset"])
    assert abs((first["enqueuedTime"] - began).total_seconds()) < 60 and first["enqueuedTime"].tzinfo is not None
    expected = {"text": "grün", "number": "7", "flag": "true", "bytes": "AQI=", "real": "1.5"}
    assert dict(first["properties"]) == expected and second["properties"] == []
    system = dict(first["systemProperties"])
    assert (system["correlation-id"], system["content-type"]) == ("c-1", "application/json")
    at = 2 if keyed == "1" else 0
    (third,) = rows(options, EventRange(keyed, at, at + 1))
    assert (third["body"], third["partitionKey"]) == (b"drei", "device-7")


def test_range_is_read_exactly_and_in_batches(new_hub: NewHub, options_of: OptionsOf, client_of: ClientOf) -> None:
    hub = new_hub(partition_count=2)
    for partition_id in "01":
        client_of(hub).sender(partition_id=partition_id).send([b"%d" % number for number in range(25_000)])
    options = parse_options(options_of(hub), is_stream=False)
    columns = ("body", "sequenceNumber", "partition")
    batches = list(read_ranges(options, (EventRange("1", 17, 24_321), EventRange("0", 5, 6)), columns))
    table = pa.Table.from_batches(batches)
    assert table["sequenceNumber"].to_pylist() == [*range(17, 24_321), 5]
    assert table["body"].to_pylist() == [b"%d" % number for number in [*range(17, 24_321), 5]]
    assert table["partition"].to_pylist() == ["1"] * 24_304 + ["0"]
    assert [batch.num_rows for batch in batches] == [10_000, 10_000, 4_305]


def test_reader_that_is_closed_early_gives_its_place_back(
    new_hub: NewHub, options_of: OptionsOf, client_of: ClientOf
) -> None:
    hub = new_hub()
    client_of(hub).sender().send([b"x" * 100] * 30_000)
    options = parse_options(options_of(hub), is_stream=False)
    for _ in range(8):  # five readers of a partition are the limit
        reading = read_ranges(options, (EventRange("0", 0, 30_000),), ("body",))
        assert next(iter(reading)).num_rows == 10_000
        reading.close()  # type: ignore[attr-defined]


def test_ranges_that_attach_together_give_their_places_back(
    new_hub: NewHub, options_of: OptionsOf, client_of: ClientOf
) -> None:
    hub = new_hub(partition_count=3)
    for key in ("0", "1", "2"):
        client_of(hub).sender(partition_id=key).send([b"%d" % number for number in range(20)])
    options = parse_options(options_of(hub), is_stream=False)
    ranges = tuple(EventRange(key, 3, 9) for key in ("0", "1", "2"))
    large = EventRange("0", 0, 20)
    for _ in range(8):  # five readers of a partition are the limit
        found = rows(options, *ranges, columns=("partition", "sequenceNumber"))
        assert [tuple(each.values()) for each in found] == [(key, n) for key in ("0", "1", "2") for n in range(3, 9)]
        reading = read_ranges(replace(options, prefetch_count=25), (large, *ranges), ("body",))
        next(iter(reading))
        reading.close()  # type: ignore[attr-defined]
    (batch,) = read_ranges(options, ranges, ("sequenceNumber",))
    assert batch.num_rows == 18


def test_sixth_reader_hears_what_to_do(new_hub: NewHub, options_of: OptionsOf, client_of: ClientOf) -> None:
    hub = new_hub()
    client = client_of(hub)
    client.sender().send([b"x"])
    for _ in range(5):
        client.receiver("0").open()
    options = replace(parse_options(options_of(hub), is_stream=False), receiver_timeout_s=0.1)
    with pytest.raises(ServiceError, match="for 0.1 s: give each query a consumer group of its own") as refused:
        rows(options, EventRange("0", 0, 1))
    assert refused.value.condition is RESOURCE_LIMIT


def test_sixth_reader_waits_until_another_is_done(
    new_hub: NewHub, options_of: OptionsOf, client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a task does whose partition is shared by more tasks than it has places."""
    hub = new_hub()
    client = client_of(hub)
    client.sender().send([b"x"])
    others = [client.receiver("0") for _ in range(5)]
    for other in others:
        other.open()

    class Clock:
        now_s = 0.0

        def monotonic(self) -> float:
            return self.now_s

        def sleep(self, seconds: float) -> None:
            self.now_s += 1.0  # so there are tries left until the service has heard that one is closed
            if self.now_s == 5.0:
                others[0].close()

    monkeypatch.setattr(range_reader, "time", Clock())
    (row,) = rows(parse_options(options_of(hub), is_stream=False), EventRange("0", 0, 1))
    assert row["body"] == b"x"


def test_connection_that_breaks_in_the_middle_is_not_seen(
    new_hub: NewHub, options_of: OptionsOf, client_of: ClientOf
) -> None:
    hub = new_hub()
    client_of(hub).sender().send([b"%d" % number for number in range(30_000)])
    options = replace(parse_options(options_of(hub), is_stream=False), prefetch_count=500)
    reading = read_ranges(options, (EventRange("0", 0, 30_000),), ("sequenceNumber",))
    numbers: list[int] = []
    for batch in reading:
        numbers += batch["sequenceNumber"].to_pylist()
        client = range_reader.client_of(options)
        client.thread._loop.call_soon_threadsafe(client.inner._connection._connection._abort)  # type: ignore[union-attr]
    assert numbers == list(range(30_000))


def test_range_that_is_no_more_is_data_loss(
    new_hub: NewHub, options_of: OptionsOf, client_of: ClientOf, caplog: pytest.LogCaptureFixture
) -> None:
    """The hub was made anew after the batch was planned: fewer events than the range has."""
    hub = new_hub()
    client_of(hub).sender().send([b"x"] * 10)
    options = parse_options(options_of(hub), is_stream=False)
    with pytest.raises(DataLoss, match="10 events of partition 0 .* sequence numbers 10 to 19: .*failOnDataLoss"):
        rows(options, EventRange("0", 0, 20))
    with pytest.raises(DataLoss):
        rows(options, EventRange("0", 50, 60))
    with caplog.at_level(logging.WARNING):
        kept = rows(replace(options, fail_on_data_loss=False), EventRange("0", 5, 20), columns=("sequenceNumber",))
    assert [each["sequenceNumber"] for each in kept] == [5, 6, 7, 8, 9]
    assert "10 events" in caplog.text


def test_gap_inside_a_range_is_counted_or_refused(
    new_hub: NewHub, options_of: OptionsOf, client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A partition never has one here, so the kernel's answer is changed: as if the numbers had jumped by three."""
    hub = new_hub()
    client_of(hub).sender().send([b"x"] * 10)
    options = parse_options(options_of(hub), is_stream=False)
    client = range_reader.client_of(options)
    real = StoredRun.append_columns

    def jump(run: StoredRun, first: int, last: int, expected: int, *rest: Any) -> Any:
        return real(run, first, last, expected - 3 if expected == 4 else expected, *rest)

    monkeypatch.setattr(StoredRun, "append_columns", jump)
    reader = RangeReader(options, client, EventRange("0", 4, 10), ("body",))
    list(reader.read())
    assert reader.lost == 0  # the numbers themselves are held against each other, not the kernel's word
    monkeypatch.setattr(StoredRun, "append_columns", real)
    reader = RangeReader(options, client, EventRange("0", 2, 8), ("sequenceNumber",))
    reader._next = 0  # what was asked for before the events that come
    monkeypatch.setattr(type(client), "receiver", _at(type(client).receiver, 2))
    with pytest.raises(DataLoss, match="2 events of partition 0 .* sequence numbers 0 to 1"):
        list(reader.read())
    accepting = RangeReader(
        replace(options, fail_on_data_loss=False), client, EventRange("0", 2, 8), ("sequenceNumber",)
    )
    accepting._next = 0
    table = pa.Table.from_batches(list(accepting.read()))
    assert table["sequenceNumber"].to_pylist() == [2, 3, 4, 5, 6, 7]
    assert accepting.lost == 2


def _at(receiver: Any, number: int) -> Any:
    def made(self: Any, partition_id: str, options: ReceiverOptions, **more: Any) -> Any:
        moved = replace(options, position=replace(options.position, value=number))
        return receiver(self, partition_id, moved, **more)

    return made


def test_events_behind_the_range_are_no_loss(
    new_hub: NewHub, options_of: OptionsOf, client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service may send more than it was given credit for a moment ago."""
    hub = new_hub()
    client_of(hub).sender().send([b"x"] * 30)
    options = parse_options(options_of(hub), is_stream=False)
    client = range_reader.client_of(options)
    unlimited = type(client).receiver

    def receiver(self: Any, partition_id: str, options: ReceiverOptions, **more: Any) -> Any:
        return unlimited(self, partition_id, replace(options, limit=None), **more)

    monkeypatch.setattr(type(client), "receiver", receiver)
    found = rows(options, EventRange("0", 3, 10), columns=("sequenceNumber",))
    assert [row["sequenceNumber"] for row in found] == list(range(3, 10))


def test_service_that_is_silent_ends_in_a_time_out(
    new_hub: NewHub, options_of: OptionsOf, client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = new_hub()
    client_of(hub).sender().send([b"x"] * 10)
    options = replace(parse_options(options_of(hub), is_stream=False), receiver_timeout_s=0.5)
    reader = RangeReader(options, range_reader.client_of(options), EventRange("0", 0, 10), ("body",))
    monkeypatch.setattr(reader, "_receive", lambda receiver: [])
    with pytest.raises(ServiceError, match="gave nothing") as silent:
        list(reader.read())
    assert silent.value.condition is TIMED_OUT


@pytest.mark.parametrize("damaged", [7, 19], ids=["in the middle", "the newest"])
def test_damaged_events_are_data_loss_and_what_is_sound_behind_them_is_read(tmp_path: Path, damaged: int) -> None:
    with damaged_namespace(tmp_path / "data", events=20, damaged=damaged) as namespace:
        given = {"connectionString": namespace.connection_string(), "eventHub": HUB, "receiverTimeout": "2s"}
        options = parse_options(given, is_stream=False)
        with pytest.raises(DataLoss, match=f"1 events? of partition 0 .* sequence numbers? {damaged}"):
            rows(options, EventRange("0", 0, 20))
        kept = rows(replace(options, fail_on_data_loss=False), EventRange("0", 0, 20), columns=("sequenceNumber",))
        assert [each["sequenceNumber"] for each in kept] == [number for number in range(20) if number != damaged]
