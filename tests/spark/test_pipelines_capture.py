"""Capture on Spark beside the broker's own, and replay of what was captured: the same events, each once."""

from __future__ import annotations

import io
import json
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow.dataset as ds
import pytest
from azure.eventhub import EventData, EventHubProducerClient

from hubweir.capture.avro import SCHEMA, header
from hubweir.client.blocking import BlockingEventHubClient
from hubweir.namespace.capture_description import CaptureDescription
from hubweir.pipelines.captured.blocks import sync_marker
from hubweir.pipelines.description import describe
from hubweir.pipelines.errors import PipelineFailed
from hubweir.pipelines.runner import PipelineRun
from hubweir.testing.running_namespace import RunningNamespace, running_namespace
from tests.spark.live_hub import WAIT_S, Hub, until
from tests.spark.pipeline_runs import repeat_last_batch, run_once
from tests.spark.test_stream import expire

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FULL = 11_000  # events of 1,000 bytes: more than the smallest window, of 10 MiB


@contextmanager
def captured_hub(folder: Path) -> Iterator[Hub]:
    """A hub that the broker captures into folder / "broker", when a window of 10 MiB is full."""
    with running_namespace(capture_folder=str(folder / "broker"), log_segment_bytes=2**20) as namespace:
        description = CaptureDescription(enabled=True, interval_s=900, size_limit_bytes=10_485_760)
        namespace.create_event_hub("filmed", partition_count=2, capture=description)
        with BlockingEventHubClient.from_connection_string(namespace.connection_string(), "filmed") as client:
            yield Hub(namespace, "filmed", client)


def send_all_kinds(namespace: RunningNamespace, hub: str) -> None:
    """Events with properties of every type, keys, system properties; one of a publisher."""
    text = namespace.connection_string()
    with EventHubProducerClient.from_connection_string(text, eventhub_name=hub) as producer:
        events = []
        for number in range(40):
            event = EventData(struct.pack(">I", number))
            event.properties = {
                "text": f"grün {number}",
                "number": number - 7,
                "real": number / 4,
                "flag": True,
                "raw": b"\x01",
            }
            event.correlation_id, event.content_type = f"c-{number}", "application/json"
            events.append(event)
        producer.send_batch(events, partition_id="0")
        producer.send_batch([EventData(b"\x00\xff"), EventData(b"")], partition_key="device-7")
    with BlockingEventHubClient.from_connection_string(text, hub) as client:
        client.sender(publisher="meter-1").send([b"by a publisher"])


def records(folder: Path) -> dict[tuple[str, int], dict[str, Any]]:
    """Every record of every captured file, by partition and sequence number; one twice is an error."""
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for path in sorted(folder.rglob("*.avro")):
        reader = fastavro.reader(io.BytesIO(path.read_bytes()))
        assert fastavro.parse_schema(reader.writer_schema) == fastavro.parse_schema(json.loads(SCHEMA))
        for record in reader:
            place = (path.relative_to(folder).parts[2], record["SequenceNumber"])
            assert place not in found, f"{place} is captured twice"
            found[place] = record
    return found


def read_back(spark: SparkSession, folder: Path) -> list[tuple[tuple[str, int], bytes]]:
    """Partition, sequence number and body of every captured event, by the table of captured files."""
    found = spark.read.format("eventhubs-capture").load(str(folder)).select("partition", "sequenceNumber", "body")
    return sorted(((row.partition, row.sequenceNumber), bytes(row.body)) for row in found.collect())


def test_files_have_the_names_and_the_very_records_of_the_brokers(spark: SparkSession, tmp_path: Path) -> None:
    """In batches of 4,000 events; one is repeated as after a crash, under another size limit, and changes nothing."""
    with captured_hub(tmp_path) as hub:
        send_all_kinds(hub.namespace, hub.name)
        for partition_id in "01":
            sender = hub.client.sender(partition_id=partition_id)
            sender.send((b"%d " % number).ljust(1_000, b"x") for number in range(FULL))
        until(lambda: len(list((tmp_path / "broker").rglob("*.avro"))) == 2, "two captured files")
        name = next((tmp_path / "broker").iterdir()).name
        arguments: dict[str, Any] = {
            "source": {"maxEventsPerTrigger": "8000"},
            "parameters": {"namespace": name, "sizeLimit": 3_000_000},
            "sink": {"path": str(tmp_path / "spark")},
        }
        run_once(spark, "capture", hub, tmp_path, **arguments)
        before = {path: path.read_bytes() for path in (tmp_path / "spark").rglob("*.avro")}
        hub.send("0", 5)
        repeat_last_batch(tmp_path / "checkpoint-capture")
        arguments["parameters"]["sizeLimit"] = 30_000_000
        run_once(spark, "capture", hub, tmp_path, **arguments)
    after = {path: path.read_bytes() for path in (tmp_path / "spark").rglob("*.avro")}
    # Of the last run: five events of partition 0, and none of partition 1.
    assert {path: after[path] for path in before} == before and len(after) == len(before) + 2
    assert all(len(data) < 3_000_000 + 2 * 2**20 for data in after.values()) and len(after) > 6
    broker, ours = records(tmp_path / "broker"), records(tmp_path / "spark")
    assert read_back(spark, tmp_path / "broker") == sorted((place, one["Body"]) for place, one in broker.items())
    assert {place: ours[place] for place in broker} == broker and len(broker) > 15_000
    assert len(ours) == 2 * FULL + 40 + 2 + 1 + 5
    assert not [path for path in (tmp_path / "spark").rglob("*") if path.is_file() and path.suffix != ".avro"]


def capture(spark: SparkSession, hub: Hub, tmp_path: Path, **source: str) -> None:
    run_once(spark, "capture", hub, tmp_path, sink={"path": str(tmp_path / "captured")}, source=source)


def capture_in_files_of_20(spark: SparkSession, hub: Hub, tmp_path: Path, files: int) -> list[Path]:
    """So many events of partition 0, and its files in their order: a batch makes one."""
    hub.send("0", 20 * files)
    capture(spark, hub, tmp_path, maxEventsPerTrigger="20")
    made = sorted((tmp_path / "captured").rglob("*/0/*/*/*/*/*/*.avro"))
    assert len(made) == files
    return made


def replay(spark: SparkSession, hub: Hub, tmp_path: Path, **source: str) -> list[str]:
    parameters, sink = {"captured": str(tmp_path / "captured")}, {"path": str(tmp_path / "table")}
    return run_once(spark, "replay", hub, tmp_path, parameters=parameters, sink=sink, source=source)


def rows(tmp_path: Path) -> list[tuple[str, int, bytes]]:
    found = ds.dataset(tmp_path / "table", format="parquet", partitioning="hive").to_table()
    return sorted(zip(*(found[name].to_pylist() for name in ("partition", "sequenceNumber", "body")), strict=True))


def test_history_then_live_has_no_gap_and_no_repeat(spark: SparkSession, hub: Hub, tmp_path: Path) -> None:
    """Half of what was captured is gone from the hub; more is captured while the replay runs; a batch is repeated."""
    for part in range(3):
        hub.send("0", 200, start=200 * part)
        hub.send("1", 100, start=100 * part)
        if part < 2:
            capture(spark, hub, tmp_path)
        if part == 0:
            expire(hub, "0")
    told = replay(spark, hub, tmp_path, maxEventsPerTrigger="250")
    assert len(told) > 3 and "behind 0" in told[-1]
    capture(spark, hub, tmp_path)  # what was read live is in a file now, too
    hub.send("0", 50, start=600)
    repeat_last_batch(tmp_path / "checkpoint-replay")
    replay(spark, hub, tmp_path)
    expected = [("0", number, b"0-%d" % number) for number in range(650)]
    assert rows(tmp_path) == expected + [("1", number, b"1-%d" % number) for number in range(300)]


@pytest.mark.slow
def test_a_hole_in_history_is_filled_by_the_hub_in_its_place(spark: SparkSession, hub: Hub, tmp_path: Path) -> None:
    """A captured file is taken away, and the first one: the hub has their events still."""
    files = capture_in_files_of_20(spark, hub, tmp_path, 4)
    files[0].unlink()
    files[2].unlink()
    replay(spark, hub, tmp_path)
    assert rows(tmp_path) == [("0", number, b"0-%d" % number) for number in range(80)]


def test_a_window_without_events_makes_an_empty_file_of_each_partition_unless_it_is_skipped(
    spark: SparkSession, hub: Hub, tmp_path: Path
) -> None:
    """A stream that runs: an event, then nothing for a few windows; a restart goes on with later names."""
    hub.send("0", 1)
    for skipped in (True, False):
        raw = {
            "pipeline": "capture", "checkpoint": str(tmp_path / "c"), "source": hub.options(), "trigger": "500ms",
            "parameters": {"skipEmptyArchives": skipped}, "sink": {"path": str(tmp_path / "captured")},
        }  # fmt: skip
        wanted = len(avro_files(tmp_path)) + (1 if skipped else 4)
        limit_s = time.monotonic() + WAIT_S

        def is_over(wanted: int = wanted, limit_s: float = limit_s) -> bool:
            return len(avro_files(tmp_path)) >= wanted or time.monotonic() > limit_s

        PipelineRun(describe(raw, "test"), lambda line: None).run(spark, once=False, is_over=is_over)
        assert (len(avro_files(tmp_path)) == 1) is skipped and len(avro_files(tmp_path)) >= wanted
    assert list(records(tmp_path / "captured")) == [("0", 0)]
    silent = [path for path in avro_files(tmp_path) if "/1/" in path.as_posix()]
    assert len(silent) >= 2 and {path.read_bytes() for path in silent} == {header(sync_marker(hub.name, "1"))}


def avro_files(folder: Path) -> list[Path]:
    return list((folder / "captured").rglob("*.avro"))


def test_events_that_neither_files_nor_the_hub_have_are_told(spark: SparkSession, hub: Hub, tmp_path: Path) -> None:
    """The control: a captured file is taken away, behind one that stays."""
    files = capture_in_files_of_20(spark, hub, tmp_path, 3)
    expire(hub, "0")
    files[1].unlink()
    with pytest.raises(PipelineFailed, match="20 events of partition 0 .* sequence numbers 20 to 39: no captured file"):
        replay(spark, hub, tmp_path)
    replay(spark, hub, tmp_path, failOnDataLoss="false")
    assert [number for _, number, _ in rows(tmp_path)] == [*range(20), *range(40, 60)]


@pytest.mark.slow
def test_a_replay_into_another_hub_keeps_keys_and_adds_nothing_when_a_batch_is_repeated(
    spark: SparkSession, hub: Hub, hubs: Any, tmp_path: Path
) -> None:
    (out,) = hubs(1)
    arguments: dict[str, Any] = {
        "parameters": {"captured": str(tmp_path / "captured")},
        "sink": {"eventHub": out.name, "exactlyOnce": "require"},
    }
    for part in range(2):
        hub.client.sender().send([b"%d" % (100 * part + number) for number in range(100)], partition_key="meter-1")
        if part == 0:
            capture(spark, hub, tmp_path)
    run_once(spark, "replay", hub, tmp_path, **arguments)
    repeat_last_batch(tmp_path / "checkpoint-replay")
    run_once(spark, "replay", hub, tmp_path, **arguments)
    stored = spark.read.format("eventhubs").options(**out.options()).load().orderBy("sequenceNumber").collect()
    assert [bytes(row.body) for row in stored] == [b"%d" % number for number in range(200)]
    assert {row.partitionKey for row in stored} == {"meter-1"}
