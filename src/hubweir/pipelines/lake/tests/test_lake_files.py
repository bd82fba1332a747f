"""Rows into Parquet files, a folder for each hour."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from hubweir.pipelines.lake.lake_files import LakeFile, by_hour, write_files


def rows(*places: tuple[str, int, int]) -> pa.RecordBatch:
    """(date, hour, sequence number) of each row."""
    dates, hours, numbers = zip(*places, strict=True)
    return pa.record_batch(
        {"sequenceNumber": pa.array(numbers, pa.int64()), "date": list(dates), "hour": pa.array(hours, pa.int32())}
    )


def test_each_row_is_in_the_file_of_its_hour_and_files_say_what_they_hold(tmp_path: Path) -> None:
    batches = [rows(("2026-01-31", 7, 5), ("2026-01-31", 7, 6)), rows(("2026-01-31", 7, 7), ("2026-02-01", 0, 8))]
    written = write_files(batches, tmp_path, "a.parquet")
    assert [(file.path, file.rows, file.low, file.high) for file in written] == [
        ("date=2026-01-31/hour=07/a.parquet", 3, 5, 7),
        ("date=2026-02-01/hour=00/a.parquet", 1, 8, 8),
    ]
    assert all((tmp_path / file.path).stat().st_size == file.size_bytes for file in written)
    table = ds.dataset(tmp_path, partitioning="hive").to_table().sort_by("sequenceNumber")
    assert table["sequenceNumber"].to_pylist() == [5, 6, 7, 8]
    assert table["date"].to_pylist() == ["2026-01-31"] * 3 + ["2026-02-01"] and table["hour"].to_pylist() == [
        7,
        7,
        7,
        0,
    ]


def test_a_name_that_is_there_is_replaced(tmp_path: Path) -> None:
    for _ in range(2):
        write_files([rows(("2026-01-31", 7, 5))], tmp_path, "a.parquet")
    assert ds.dataset(tmp_path, partitioning="hive").count_rows() == 1


def test_what_fails_leaves_no_file(tmp_path: Path) -> None:
    def failing():  # type: ignore[no-untyped-def]
        yield rows(("2026-01-31", 7, 5))
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        write_files(failing(), tmp_path, "a.parquet")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_no_rows_make_no_file(tmp_path: Path) -> None:
    found: list[LakeFile] = write_files([], tmp_path, "a.parquet")
    assert found == [] and not list(tmp_path.iterdir())


def test_rows_of_an_hour_keep_their_order() -> None:
    batch = rows(("d", 2, 9), ("d", 1, 8), ("d", 2, 3))
    found = {(date, hour): part["sequenceNumber"].to_pylist() for date, hour, part in by_hour(batch)}
    assert found == {("d", 2): [9, 3], ("d", 1): [8]}
