"""The table's options, Delta's names for files, and when compaction is due."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
from pyspark.sql.types import StructType

from hubweir.pipelines.lake.compaction import file_name
from hubweir.pipelines.lake.lake_files import LakeFile
from hubweir.pipelines.lake.lake_sink import PARQUET, LakeDataSource, LakeMessage, LakeWriter, delta_file
from hubweir.spark.errors import IllegalOption


def test_a_table_needs_a_path_and_the_columns_of_its_folders() -> None:
    part = StructType().add("body", "binary").add("date", "string")
    whole = StructType(list(part.fields)).add("hour", "integer")
    for options, schema in (({}, whole), ({"path": "x"}, part)):
        with pytest.raises(IllegalOption, match="needs the option path, and the columns date and hour"):
            LakeDataSource(options).streamWriter(schema, False)
    assert isinstance(LakeDataSource({"path": "x"}).streamWriter(whole, False), LakeWriter)


def test_delta_is_told_what_lets_it_skip_a_file() -> None:
    found = delta_file(LakeFile("a", "2026-01-31", 7, 99, 3, 5, 7))
    assert found.partition == {"date": "2026-01-31", "hour": "7"}
    assert found.stats == {"numRecords": 3, "minValues": {"sequenceNumber": 5}, "maxValues": {"sequenceNumber": 7}}
    assert delta_file(LakeFile("a", "2026-01-31", 7, 99, 3)).stats == {"numRecords": 3}


def test_folders_are_looked_through_once_a_minute_for_each_query_whatever_process_commits(tmp_path: Path) -> None:
    """One that always comes first must not take the other's turn: each joins its own files alone."""

    def is_due(query: str) -> bool:
        return LakeWriter(tmp_path / "lake", PARQUET, 0)._is_due(query * 36)

    assert [is_due("a"), is_due("a"), is_due("b"), is_due("b")] == [True, False, True, False]
    mark = tmp_path / "lake" / ".compacted-aaaaaaaa"
    os.utime(mark, (mark.stat().st_mtime - 61,) * 2)
    assert [is_due("a"), is_due("b")] == [True, False]


@pytest.mark.parametrize("repeats", [3, None])
def test_only_a_batch_that_a_run_before_began_is_held_against_what_that_run_left(
    tmp_path: Path, repeats: int | None
) -> None:
    hour = tmp_path / "date=2026-01-31" / "hour=07"
    hour.mkdir(parents=True)
    paths = [hour / file_name("q" * 36, 3, task) for task in range(3)]
    for path in paths:
        path.touch()
    files = [LakeFile(path.relative_to(tmp_path).as_posix(), "2026-01-31", 7, 0, 1) for path in paths[:2]]
    LakeWriter(tmp_path, PARQUET, None, repeats).commit([LakeMessage("q" * 36, files, b"")], 3)
    assert paths[2].exists() is (repeats is None) and paths[0].exists() and paths[1].exists()
