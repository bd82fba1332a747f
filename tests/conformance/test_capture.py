"""Capture with the official client publishing and a standard Avro reader reading: schema, records, windows, names."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
from azure.eventhub import EventData, EventHubConsumerClient, EventHubProducerClient
from msgspec.structs import replace

from hubweir.namespace import capture_description
from hubweir.namespace.capture_description import CaptureDescription
from hubweir.namespace.event_hub_changes import set_settings
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.testing.running_namespace import RunningNamespace
from tests.capture.captured import CapturedFile, captured_files, wrong_order
from tests.conformance.conftest import Serve
from tests.conformance.ways import CALLS, REPLICATED, SOCKET, settings_of

pytestmark = pytest.mark.conformance

BY_SIZE = CaptureDescription(enabled=True, interval_s=900, size_limit_bytes=10_485_760)
MAP = {"type": "map", "values": ["long", "double", "string", "bytes"]}
FIELDS = [
    ("SequenceNumber", "long"), ("Offset", "string"), ("EnqueuedTimeUtc", "string"), ("SystemProperties", MAP),
    ("Properties", MAP), ("Body", ["null", "bytes"]),
]  # fmt: skip
TIME = re.compile(r"\d{1,2}/\d{1,2}/\d{4} \d{1,2}:\d\d:\d\d [AP]M")


def until(files: Callable[[], list[CapturedFile]], count: int, *, seconds: float = 30) -> list[CapturedFile]:
    """The files, once there are so many."""
    end = time.monotonic() + seconds
    while len(found := files()) < count:
        assert time.monotonic() < end, f"{len(found)} of {count} files after {seconds} s"
        time.sleep(0.1)
    return found


def publish(namespace: RunningNamespace, hub: str, batches: int, events: int = 40, size: int = 8_000) -> None:
    """Send batches of events with properties of several types to partition 0."""
    producer = EventHubProducerClient.from_connection_string(namespace.connection_string(), eventhub_name=hub)
    with producer:
        for number in range(batches):
            batch = producer.create_batch(partition_id="0")
            for place in range(events):
                event = EventData(json.dumps({"number": number * events + place}).encode().ljust(size))
                event.properties = {"count": place, "share": 0.5, "name": "eins", "raw": b"\x00\xff", "on": True}
                event.content_type = "application/json"
                event.message_id = f"m{number}"
                batch.add(event)
            producer.send_batch(batch)


def received(namespace: RunningNamespace, hub: str, count: int) -> list[EventData]:
    """The first events of partition 0 as the official client reads them."""
    found: list[EventData] = []
    consumer = EventHubConsumerClient.from_connection_string(
        namespace.connection_string(), "$Default", eventhub_name=hub
    )

    def on_batch(context: object, events: list[EventData]) -> None:
        found.extend(events)
        if len(found) >= count:
            consumer.close()

    with consumer:
        consumer.receive_batch(on_batch, partition_id="0", starting_position="-1", max_batch_size=300)
    return found[:count]


@pytest.mark.eh(79)
@pytest.mark.parametrize("way", [CALLS, SOCKET, REPLICATED])
def test_captured_records_equal_the_events_that_a_consumer_reads(serve: Serve, tmp_path: Path, way: str) -> None:
    with serve(capture_folder=str(tmp_path), **settings_of(way)) as namespace:
        namespace.create_event_hub("captured", partition_count=2, capture=BY_SIZE)
        publish(namespace, "captured", 70)
        files = until(lambda: captured_files(tmp_path), 2)
        events = received(namespace, "captured", sum(len(file.records) for file in files))
    for file in files:
        schema = file.schema
        assert (schema["type"], schema["name"]) == ("record", "Microsoft.ServiceBus.Messaging.EventData")
        assert [(field["name"], field["type"]) for field in schema["fields"]] == FIELDS
        assert file.codec == "null"
        assert re.fullmatch(r"hubweir/captured/0/\d{4}(/\d\d){5}\.avro", file.name)
    assert not wrong_order(files)
    records = [record for file in files for record in file.records]
    assert len(records) > 2_000
    for record, event in zip(records, events, strict=True):
        assert (record["SequenceNumber"], record["Offset"]) == (event.sequence_number, str(event.offset))
        assert record["Body"] == event.body_as_str().encode()
        properties = {key.decode() if isinstance(key, bytes) else key: value for key, value in event.properties.items()}
        assert record["Properties"] == {
            "count": properties["count"], "share": 0.5, "name": "eins", "raw": b"\x00\xff", "on": 1,
        }  # fmt: skip
        assert TIME.fullmatch(record["EnqueuedTimeUtc"])
        stamp = datetime.strptime(record["EnqueuedTimeUtc"], "%m/%d/%Y %I:%M:%S %p").replace(tzinfo=UTC)
        assert stamp == event.enqueued_time.replace(microsecond=0)
        system = record["SystemProperties"]
        assert system["x-opt-sequence-number"] == event.sequence_number
        assert (system["content-type"], system["message-id"]) == ("application/json", event.message_id)


@pytest.mark.eh(79)
@pytest.mark.eh(80)
@pytest.mark.timeout(400)
def test_windows_end_by_time_and_empty_ones_make_a_file_by_setting(
    serve: Serve, broker_count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measure: Callable[[int], int]
) -> None:
    """Two hubs: the usual names and a file of each window; another order of tokens and no file of an empty one.

    With --all by windows of a minute, the shortest that there are; else a service of this process has shorter ones.
    """
    seconds = 60 if broker_count > 1 or measure(2) == 2 else 5
    monkeypatch.setattr(capture_description, "INTERVAL_MIN_S", seconds)
    usual = CaptureDescription(enabled=True, interval_s=seconds)
    turned = "{Second}-{Minute}-{Hour}/{Day}.{Month}.{Year}/{PartitionId}_{EventHub}_{Namespace}"
    other = CaptureDescription(
        enabled=True, interval_s=seconds, container="turned", archive_name_format=turned, skip_empty_archives=True
    )

    def usual_files(partition: str) -> list[CapturedFile]:
        return captured_files(tmp_path / "hubweir" / "usual" / partition)

    def other_files() -> list[CapturedFile]:
        return captured_files(tmp_path / "turned")

    with serve(capture_folder=str(tmp_path)) as namespace:
        began = time.time()
        namespace.create_event_hub("usual", partition_count=2, capture=usual)
        namespace.create_event_hub("other", partition_count=2, capture=other)
        publish(namespace, "usual", 1)
        publish(namespace, "other", 1)
        for files in (other_files, lambda: usual_files("0")[1:], lambda: usual_files("1")[1:]):
            until(files, 1, seconds=2 * seconds + 60)
        ended = time.time()
        [file] = other_files()  # a second window of it, or the first one, had nothing
        found = [usual_files(partition) for partition in "01"]
    assert sorted(len(each.records) for each in found[0]) == [0] * (len(found[0]) - 1) + [40]
    assert not any(each.records for each in found[1])
    closed = [datetime.strptime(each.name, "%Y/%m/%d/%H/%M/%S.avro") for files in found for each in files]
    assert len(file.records) == 40
    name = re.fullmatch(r"(\d\d)-(\d\d)-(\d\d)/(\d\d)\.(\d\d)\.(\d{4})/0_other_hubweir\.avro", file.name)
    assert name is not None
    closed.append(datetime(*map(int, name.groups()[::-1])))  # type: ignore[arg-type]
    for time_ in closed:
        assert began + seconds - 1 <= time_.replace(tzinfo=UTC).timestamp() <= ended


@pytest.mark.eh(79)
def test_only_events_after_enabling_are_captured_and_none_after_disabling(serve: Serve, tmp_path: Path) -> None:
    with serve(capture_folder=str(tmp_path)) as namespace:
        namespace.create_event_hub("switched", partition_count=1)
        publish(namespace, "switched", 5)
        switch(namespace, "switched", BY_SIZE)
        publish(namespace, "switched", 40)
        files = until(lambda: captured_files(tmp_path), 1)
        switch(namespace, "switched", CaptureDescription(enabled=False))
        publish(namespace, "switched", 40)
        time.sleep(2)
        assert captured_files(tmp_path) == files
    assert not wrong_order(files, first=5 * 40)


def switch(namespace: RunningNamespace, hub: str, capture: CaptureDescription) -> None:
    """As an operator does while the service runs."""
    known = namespace.parts.gateway.management.hub(hub)
    namespace.change(hub, EventHubDescription, partial(set_settings, wanted=replace(known, capture=capture)))
