"""One commit for a batch of files, once however often it is tried; and compaction of hours that are over."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("deltalake")
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

from hubweir.pipelines.lake.delta_table import DeltaFile, commit_files, compact_hours
from hubweir.spark.errors import IllegalOption

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


def test_many_queries_that_begin_at_once_make_one_table(tmp_path: Path) -> None:
    def run(query: int) -> None:
        for batch in range(3):
            file = write(tmp_path, f"{query}-{batch}.parquet", [query * 10 + batch])
            assert commit_files(tmp_path, SCHEMA, [file], query=f"q{query}", batch=batch)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(run, range(6)))
    assert numbers(tmp_path) == [query * 10 + batch for query in range(6) for batch in range(3)]


def test_two_runs_of_a_query_commit_each_batch_once(tmp_path: Path) -> None:
    def run(name: str) -> int:
        return sum(
            commit_files(tmp_path, SCHEMA, [write(tmp_path, f"{name}-{batch}", [batch])], query="q", batch=batch)
            for batch in range(10)
        )

    with ThreadPoolExecutor(2) as pool:
        assert sum(pool.map(run, "ab")) == len(numbers(tmp_path))
    assert len(set(numbers(tmp_path))) == len(numbers(tmp_path))


@pytest.mark.parametrize(
    ("columns", "partition_by", "text"),
    [
        (["other"], ["date", "hour"], "sequenceNumber is not there"),
        (["sequenceNumber"], [], "it is partitioned by nothing, not by date, hour"),
        (["sequenceNumber"], ["hour", "date"], "it is partitioned by hour, date, not by"),
    ],
)
def test_a_table_of_other_columns_is_left_alone(
    tmp_path: Path, columns: list[str], partition_by: list[str], text: str
) -> None:
    there = pa.table({name: [1] for name in columns} | {"date": ["x"], "hour": pa.array([1], pa.int32())})
    write_deltalake(str(tmp_path), there, partition_by=partition_by)
    with pytest.raises(IllegalOption, match=text):
        commit_files(tmp_path, SCHEMA, [write(tmp_path, "a.parquet", [1])], query="q", batch=0)
    assert DeltaTable(str(tmp_path)).version() == 0


def test_a_table_may_have_more_columns_and_other_nulls(tmp_path: Path) -> None:
    kind = pa.map_(pa.string(), pa.field("value", pa.string(), nullable=False))
    more = pa.schema([*SCHEMA, pa.field("more", pa.map_(pa.string(), pa.string())), pa.field("note", pa.string())])
    commit_files(tmp_path, more, [write(tmp_path, "a.parquet", [1])], query="q", batch=0)
    fields = [pa.field("sequenceNumber", pa.int64(), nullable=False), *list(SCHEMA)[1:], pa.field("more", kind)]
    assert commit_files(tmp_path, pa.schema(fields), [write(tmp_path, "b.parquet", [2])], query="q", batch=1)
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
