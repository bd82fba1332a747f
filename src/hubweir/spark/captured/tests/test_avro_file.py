import io
import json
from typing import Any

import fastavro
import pytest

from hubweir.capture.avro import SCHEMA
from hubweir.spark.captured import avro_file
from hubweir.spark.captured.avro_file import EventTimes, begins_before, read_blocks, read_header
from hubweir.spark.errors import IllegalCapture
from hubweir.spark.event_columns import COLUMN_NAMES

NOON_MS = 1_769_860_800_000


def event(number: int) -> dict[str, Any]:
    return {
        "SequenceNumber": number,
        "Offset": str(40 * number),
        "EnqueuedTimeUtc": "1/31/2026 12:00:00 PM",
        "SystemProperties": {
            "x-opt-enqueued-time": NOON_MS + number,
            "x-opt-partition-key": f"key-{number}",
            "message-id": "m",
        },
        "Properties": {"real": 1.5, "whole": number, "text": "grün", "bytes": b"\x01\x02"},
        "Body": b"body %d" % number,
    }


def written(count: int, *, codec: str = "null", schema: Any = None, records: Any = None) -> bytes:
    """A file by fastavro, a foreign writer."""
    out = io.BytesIO()
    parsed = fastavro.parse_schema(schema or json.loads(SCHEMA))
    fastavro.writer(out, parsed, records or map(event, range(count)), codec=codec, sync_interval=2_000)
    return out.getvalue()


def rows(data: bytes, columns: tuple[str, ...] = COLUMN_NAMES, **more: Any) -> list[dict[str, Any]]:
    header = read_header(data, "a file")
    more = {"times": EventTimes(), "name": "a file", "partition_id": "3", **more}
    batches = list(read_blocks(data, more.pop("start", header.size), header, columns=columns, **more))
    for batch in batches:
        batch.validate(full=True)
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_file_of_a_foreign_writer_has_every_column(codec: str) -> None:
    found = rows(written(100, codec=codec))
    assert [row["sequenceNumber"] for row in found] == list(range(100))
    row = found[7]
    assert (row["body"], row["partition"], row["offset"], row["partitionKey"]) == (b"body 7", "3", "280", "key-7")
    assert row["enqueuedTime"].timestamp() * 1000 == NOON_MS + 7
    assert dict(row["properties"]) == {"real": "1.5", "whole": "7", "text": "grün", "bytes": "AQI="}
    assert (dict(row["systemProperties"]), row["publisher"]) == ({"message-id": "m"}, None)


def test_times_and_columns_are_pruned() -> None:
    times = EventTimes(NOON_MS + 10, NOON_MS + 13)
    assert rows(written(100), ("sequenceNumber",), times=times) == [{"sequenceNumber": n} for n in (10, 11, 12)]
    assert rows(written(100), ("body",), times=EventTimes(until_ms=0)) == []


def test_batches_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro_file, "ROWS_A_BATCH", 30)
    data = written(200)
    header = read_header(data, "a file")
    sizes = [
        batch.num_rows
        for batch in read_blocks(
            data, header.size, header, name="a file", partition_id="0", columns=("body",), times=EventTimes()
        )
    ]
    assert sum(sizes) == 200 and len(sizes) > 2


def test_part_of_a_file_has_the_blocks_that_begin_in_it() -> None:
    data = written(300)
    header = read_header(data, "a file")
    marks = [at + 16 for at in range(len(data)) if data.startswith(header.sync_marker, at)][:-1]
    cut = marks[3] + 5  # inside the fourth block
    first = rows(data, ("sequenceNumber",), end=cut)
    rest = rows(data, ("sequenceNumber",), start=marks[4])
    assert [row["sequenceNumber"] for row in first + rest] == list(range(300))


def test_every_cut_is_noticed_and_never_a_crash() -> None:
    """Whole blocks may end anywhere, so a file that ends behind one is not cut off."""
    data = written(30)
    header = read_header(data, "a file")
    ends = {at + 16 for at in range(len(data)) if data.startswith(header.sync_marker, at)}
    for size in range(len(data)):
        if size in ends:
            assert rows(data[:size]) is not None
            continue
        with pytest.raises(IllegalCapture, match="a file"):
            rows(data[:size])


def test_what_is_no_captured_file_is_refused() -> None:
    other = {"type": "record", "name": "X", "fields": [{"name": "a", "type": "long"}]}
    with pytest.raises(IllegalCapture, match="other records"):
        read_header(written(1, schema=other, records=[{"a": 1}]), "a file")
    with pytest.raises(IllegalCapture, match="no Avro file"):
        read_header(b"PAR1" + bytes(100), "a file")
    with pytest.raises(IllegalCapture, match="compressed by bzip2"):
        read_header(written(1, codec="bzip2"), "a file")
    damaged = bytearray(written(10))
    damaged[-1] ^= 1
    with pytest.raises(IllegalCapture, match="no sync marker"):
        rows(bytes(damaged))
    deflated = bytearray(written(10, codec="deflate"))
    deflated[-60:-20] = bytes(40)
    with pytest.raises(IllegalCapture, match="does not inflate"):
        rows(bytes(deflated))


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_the_first_event_tells_when_a_file_begins(codec: str) -> None:
    data = written(100, codec=codec)
    header = read_header(data, "a file")
    assert begins_before(data, header, NOON_MS, "a file") is False
    assert begins_before(data, header, NOON_MS + 1, "a file") is True
    with pytest.raises(IllegalCapture, match="a file"):
        begins_before(data[: header.size + 20], header, NOON_MS, "a file")


def test_a_file_without_events_begins_nowhere() -> None:
    data = written(0, records=[])
    assert begins_before(data, read_header(data, "a file"), NOON_MS, "a file") is None
    empty = data[: read_header(data, "a file").size]
    assert begins_before(empty, read_header(empty, "a file"), NOON_MS, "a file") is None
