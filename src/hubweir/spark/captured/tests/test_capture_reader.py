import io
import json
from datetime import UTC, datetime
from pathlib import Path

import fastavro
import pytest

from hubweir.capture.avro import SCHEMA
from hubweir.spark.captured import capture_reader, file_parts
from hubweir.spark.captured.capture_reader import CaptureReader, parse_capture_options
from hubweir.spark.errors import IllegalCapture, IllegalOption

NOON_S = 1_769_860_800


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture_reader, "freeze_garbage", lambda: None)


@pytest.fixture
def captured(tmp_path: Path) -> Path:
    """Two partitions, three windows of an hour each, 20 events a window: one every three minutes."""
    for partition_id in ("0", "1"):
        for hour in range(3):
            closed = datetime.fromtimestamp(NOON_S + 3600 * (hour + 1), UTC)
            path = tmp_path / "ns" / "orders" / partition_id / f"{closed:%Y/%m/%d/%H/%M/%S}.avro"
            path.parent.mkdir(parents=True)
            out = io.BytesIO()
            records = [
                {
                    "SequenceNumber": number,
                    "Offset": str(number),
                    "EnqueuedTimeUtc": "",
                    "SystemProperties": {"x-opt-enqueued-time": 1000 * (NOON_S + 180 * number)},
                    "Properties": {},
                    "Body": b"%d" % number,
                }
                for number in range(20 * hour, 20 * hour + 20)
            ]
            fastavro.writer(out, fastavro.parse_schema(json.loads(SCHEMA)), records, sync_interval=150)
            path.write_bytes(out.getvalue())
    return tmp_path


def read(folder: Path, **more: str) -> dict[str, list[int]]:
    reader = CaptureReader(parse_capture_options({"path": str(folder), **more}), ("partition", "sequenceNumber"))
    found: dict[str, list[int]] = {}
    for task in reader.partitions():
        for batch in reader.read(task):
            for row in batch.to_pylist():
                found.setdefault(row["partition"], []).append(row["sequenceNumber"])
    return found


def test_everything_is_read(captured: Path) -> None:
    assert read(captured) == {"0": list(range(60)), "1": list(range(60))}
    assert read(captured / "ns" / "orders" / "1") == {"1": list(range(60))}


def test_partition_and_times_choose_files_and_then_rows(captured: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    real = capture_reader._read_part
    monkeypatch.setattr(
        capture_reader,
        "_read_part",
        lambda place, part, *rest: opened.append(part.file.path) or real(place, part, *rest),
    )
    found = read(captured, partition="1", since="2026-01-31T12:30:00Z", until="2026-01-31T13:06:00Z")
    assert found == {"1": list(range(10, 22))}
    assert [path.split("/")[2] for path in opened] == ["1", "1"]  # the third window is not opened


def test_events_of_files_that_were_closed_late_are_found(captured: Path) -> None:
    """The destination was away: the third window's file was closed a day late, and another one behind it."""
    folder = captured / "ns" / "orders" / "1"
    for name, late in (("2026/01/31/14/00/00", "2026/02/01/14/00/00"), ("2026/01/31/15/00/00", "2026/02/01/14/00/01")):
        (folder / late).parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.avro").rename(folder / f"{late}.avro")
    found = read(captured, partition="1", since="2026-01-31T12:57:00Z", until="2026-01-31T14:06:00Z")
    assert found == {"1": list(range(19, 42))}


def test_large_file_is_read_in_parts(captured: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_parts.parts_of, "__defaults__", (400,))
    reader = CaptureReader(parse_capture_options({"path": str(captured)}), ("body",))
    assert len(reader.partitions()) > 12
    assert read(captured) == {"0": list(range(60)), "1": list(range(60))}


def test_damaged_file_is_named(captured: Path) -> None:
    path = next((captured / "ns" / "orders" / "0").rglob("*.avro"))
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(IllegalCapture, match=f"{path.relative_to(captured)}.*cut off"):
        read(captured)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"path": ""}, "path is missing"),
        ({"partition": "a"}, "partition is one id or several"),
        ({"since": "latest"}, "since is a time"),
        ({"until": "soon"}, "until is a time such as"),
        ({"connectionString": "x"}, "option connectionstring is not known"),
        ({"archiveNameFormat": "{Year}"}, "archiveNameFormat"),
    ],
)
def test_what_is_not_right_is_refused(tmp_path: Path, more: dict[str, str], why: str) -> None:
    with pytest.raises(IllegalOption, match=why):
        read(tmp_path, **more)


def test_settings_of_the_store_are_not_shown() -> None:
    options = parse_capture_options({"path": "az://c/p", "store.account_key": "c2VjcmV0"})
    assert options.store == {"account_key": "c2VjcmV0"} and "c2VjcmV0" not in repr(options)
