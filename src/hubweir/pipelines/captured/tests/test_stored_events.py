"""Received events as stored batches: capture's kernel makes of them the records that it makes of the log's."""

from __future__ import annotations

import io
from itertools import pairwise

import fastavro
import pytest

from hubweir.capture.avro import BlockWriter, header
from hubweir.client.blocking import BlockingEventHubClient
from hubweir.client.event_run import EventRun
from hubweir.client.receiver import ReceiverOptions
from hubweir.event_hub.event_position import EARLIEST
from hubweir.pipelines.captured.stored_events import publishers, record_starts, stored_events
from hubweir.testing.running_namespace import running_namespace

SYNC = bytes(range(16))


@pytest.fixture(scope="module")
def run() -> EventRun:
    """Twelve events: with a key, without, of a publisher, and with bodies of other lengths."""
    with running_namespace() as namespace:
        namespace.create_event_hub("hub", partition_count=1)
        with BlockingEventHubClient.from_connection_string(namespace.connection_string(), "hub") as client:
            client.sender().send([b"x" * size for size in range(5)], partition_key="k")
            client.sender(partition_id="0").send([b"plain"] * 5)
            client.sender(publisher="meter-1").send([b"p1", b"p2"])
            receiver = client.receiver("0", ReceiverOptions(position=EARLIEST, limit=12), group="$Default")
            runs = receiver.receive_runs(12, max_wait_s=30)
            receiver.close()
    assert [len(each) for each in runs] == [12]
    return runs[0]


def records(run: EventRun, count: int) -> list[dict[str, object]]:
    writer = BlockWriter(SYNC)
    out = [*writer.add_events(stored_events(run, count), 0, count), *writer.flush()]
    assert writer.unsound == []
    return list(fastavro.reader(io.BytesIO(b"".join([header(SYNC), *map(bytes, out)]))))  # type: ignore[arg-type]


def test_records_have_number_offset_time_name_and_body_of_each_event(run: EventRun) -> None:
    found = records(run, 12)
    assert [record["SequenceNumber"] for record in found] == list(range(12))
    assert [record["Offset"] for record in found] == [str(offset) for offset in run.offsets()]
    assert [record["Body"] for record in found] == [bytes(body) for body in run.bodies()]
    system = [dict(record["SystemProperties"]) for record in found]  # type: ignore[call-overload]
    keys = [each.get("x-opt-partition-key") for each in system]
    assert keys == ["k"] * 5 + [None] * 5 + ["meter-1"] * 2
    assert [each.get("x-opt-publisher") for each in system] == [None] * 10 + ["meter-1"] * 2
    assert all(each["x-opt-offset"] == record["Offset"] for each, record in zip(system, found, strict=True))


def test_only_the_first_are_taken_when_so_many_are_wanted(run: EventRun) -> None:
    assert [record["SequenceNumber"] for record in records(run, 7)] == list(range(7))


def test_publishers_are_looked_up_only_where_there_is_one(run: EventRun) -> None:
    assert publishers(run, 10) == []
    assert publishers(run, 12) == [b""] * 10 + [b"meter-1"] * 2


def test_starts_follow_the_lengths(run: EventRun) -> None:
    data = bytearray(b"".join(length.to_bytes(4, "big") + bytes(length - 4) for length in (40, 36, 99)))
    starts = record_starts(data, 3)
    assert list(starts) == [0, 40, 76, 175] and [end - start for start, end in pairwise(starts)] == [40, 36, 99]
