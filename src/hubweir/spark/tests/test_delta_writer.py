"""One commit for a batch of files, once however often it is tried; and compaction of hours that are over."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from hubweir.spark.delta_writer import DeltaFile, commit_files, compact_hours

SCHEMA = pa.schema([("sequenceNumber", pa.int64()), ("date", pa.string()), ("hour", pa.int32())])
HOUR_ENDS_MS = 1_769_846_400_000  # 2026-01-31T08:00:00Z


def write(table: Path, name: str, numbers: list[int]) -> DeltaFile:
    path = table / "date=2026-01-31" / "hour=07" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"sequenceNumber": pa.array(numbers, pa.int64())}), path)
    stats = {
        "numRecords": len(numbers),
        "minValues": {"sequenceNumber": numbers[0]},
        "maxValues": {"sequenceNumber": numbers[-1]},
    }
    where = {"date": "2026-01-31", "hour": "7"}
    return DeltaFile(path.relative_to(table).as_posix(), path.stat().st_size, where, stats)


def numbers(table: Path) -> list[int]:
    return sorted(DeltaTable(str(table)).to_pyarrow_table()["sequenceNumber"].to_pylist())


def test_a_batch_is_in_the_table_once_however_often_it_is_tried(tmp_path: Path) -> None:
    assert commit_files(tmp_path, SCHEMA, [write(tmp_path, "a.parquet", [1, 2])], query="q", batch=0)
    assert commit_files(tmp_path, SCHEMA, [write(tmp_path, "b.parquet", [3])], query="q", batch=1)
    for batch in (0, 1):
        again = write(tmp_path, f"again-{batch}.parquet", [1, 2, 3])
        assert not commit_files(tmp_path, SCHEMA, [again], query="q", batch=batch)
    assert numbers(tmp_path) == [1, 2, 3]
    assert DeltaTable(str(tmp_path)).transaction_version("q") == 1


@pytest.mark.parametrize("other", ["r", "s"])
def test_another_query_counts_for_itself(tmp_path: Path, other: str) -> None:
    """The control: what keeps a batch out is the query's own number, not any number."""
    commit_files(tmp_path, SCHEMA, [write(tmp_path, "a.parquet", [1])], query="q", batch=7)
    assert commit_files(tmp_path, SCHEMA, [write(tmp_path, "b.parquet", [2])], query=other, batch=0)
    assert numbers(tmp_path) == [1, 2]


def test_hours_that_are_over_are_joined(tmp_path: Path) -> None:
    for batch in range(3):
        commit_files(tmp_path, SCHEMA, [write(tmp_path, f"{batch}.parquet", [batch])], query="q", batch=batch)
    assert compact_hours(tmp_path, now_ms=HOUR_ENDS_MS + 59_999, after_ms=60_000) == 0
    assert len(DeltaTable(str(tmp_path)).file_uris()) == 3
    assert compact_hours(tmp_path, now_ms=HOUR_ENDS_MS + 60_000, after_ms=60_000) == 1
    assert len(DeltaTable(str(tmp_path)).file_uris()) == 1 and numbers(tmp_path) == [0, 1, 2]


def test_no_table_has_nothing_to_join(tmp_path: Path) -> None:
    assert compact_hours(tmp_path, now_ms=HOUR_ENDS_MS, after_ms=0) == 0
