"""Joining the files of an hour that is over: every row once, whatever a kill leaves."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from hubweir.pipelines.lake.compaction import compact, file_name, recover, remove_left
from hubweir.pipelines.lake.folder_exchange import exchange

HOUR_ENDS_MS = 1_769_846_400_000  # 2026-01-31T08:00:00Z
QUERY, ANOTHER = "0f8fad5b-d9cb-469f-a165-70867728950e", "7c9e6679-7425-40de-944b-e07fc1f90ae7"


def table_of(folder: Path, batches: int) -> Path:
    """Batches 0 … of ten rows each in the hour from 7 o'clock."""
    hour = folder / "date=2026-01-31" / "hour=07"
    hour.mkdir(parents=True)
    for batch in range(batches):
        numbers = list(range(10 * batch, 10 * batch + 10))
        pq.write_table(pa.table({"n": numbers}), hour / file_name(QUERY, batch, 0))
    return hour


def numbers(folder: Path) -> list[int]:
    return sorted(ds.dataset(folder, format="parquet", partitioning="hive").to_table()["n"].to_pylist())


def test_files_of_batches_that_are_over_become_one_and_later_ones_stay(tmp_path: Path) -> None:
    hour = table_of(tmp_path, 4)
    assert compact(tmp_path, query=QUERY, before_batch=3, now_ms=HOUR_ENDS_MS, after_ms=0) == 3
    first = set(os.listdir(hour))
    assert len(first) == 2 and file_name(QUERY, 3, 0) in first
    assert numbers(tmp_path) == list(range(40))
    assert compact(tmp_path, query=QUERY, before_batch=4, now_ms=HOUR_ENDS_MS, after_ms=0) == 2
    # None of the names that a reader may know: it would find other rows behind one.
    assert len(os.listdir(hour)) == 1 and not first & set(os.listdir(hour)) and numbers(tmp_path) == list(range(40))
    assert compact(tmp_path, query=QUERY, before_batch=9, now_ms=HOUR_ENDS_MS, after_ms=0) == 0


def test_an_hour_that_is_not_over_long_enough_stays(tmp_path: Path) -> None:
    hour = table_of(tmp_path, 3)
    assert compact(tmp_path, query=QUERY, before_batch=3, now_ms=HOUR_ENDS_MS + 59_999, after_ms=60_000) == 0
    assert len(list(hour.iterdir())) == 3
    assert compact(tmp_path, query=QUERY, before_batch=3, now_ms=HOUR_ENDS_MS + 60_000, after_ms=60_000) == 3


class Killed(BaseException):
    """The process is gone."""


@pytest.mark.parametrize(
    ("in_one_step", "calls"), [*((True, calls) for calls in range(3)), *((False, calls) for calls in range(4))]
)
def test_a_kill_between_two_steps_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_one_step: bool, calls: int
) -> None:
    """Killed before the step number `calls` of: link, exchange, remove; or of: link, rename, rename, remove."""
    table_of(tmp_path, 3)
    done = 0

    def step(function: Callable[..., object]) -> Callable[..., object]:
        def run(*arguments: object, **more: object) -> object:
            nonlocal done
            if done == calls:
                raise Killed
            done += 1
            return function(*arguments, **more)

        return run

    with monkeypatch.context() as patched:
        patched.setattr(os, "link", step(os.link))
        swap = step(exchange) if in_one_step else lambda first, second: False
        patched.setattr("hubweir.pipelines.lake.compaction.exchange", swap)
        if not in_one_step:
            patched.setattr(Path, "rename", step(Path.rename))
        patched.setattr("hubweir.pipelines.lake.compaction.shutil.rmtree", step(lambda path: None))
        with pytest.raises(Killed):
            compact(tmp_path, query=QUERY, before_batch=2, now_ms=HOUR_ENDS_MS, after_ms=0)
    recover(tmp_path)
    assert numbers(tmp_path) == list(range(30))
    assert not list(tmp_path.glob("date=*/.hour*"))
    compact(tmp_path, query=QUERY, before_batch=3, now_ms=HOUR_ENDS_MS, after_ms=0)
    assert numbers(tmp_path) == list(range(30)) and len(list(tmp_path.glob("date=*/hour=*/*"))) == 1


def test_files_that_were_written_into_a_half_swapped_hour_stay(tmp_path: Path) -> None:
    """Killed between the two renames; then a task made the hour's folder anew, and put a file into it."""
    hour = table_of(tmp_path, 3)
    hour.rename(hour.with_name(".hour=07.old"))
    fresh = hour.with_name(".hour=07.new")
    fresh.mkdir()
    pq.write_table(pa.table({"n": list(range(30))}), fresh / "joined-events-0f8fad5b-0000000002-00000.parquet")
    hour.mkdir()
    pq.write_table(pa.table({"n": [30, 31]}), hour / file_name(QUERY, 3, 0))
    recover(tmp_path)
    assert numbers(tmp_path) == list(range(32))
    assert not list(tmp_path.glob("date=*/.hour*"))


def test_files_with_other_columns_stay_as_they_are(tmp_path: Path) -> None:
    hour = table_of(tmp_path, 3)
    pq.write_table(pa.table({"n": [30], "more": ["x"]}), hour / file_name(QUERY, 3, 0))
    assert compact(tmp_path, query=QUERY, before_batch=9, now_ms=HOUR_ENDS_MS, after_ms=0) == 3
    assert sorted(len(pq.read_schema(path)) for path in hour.iterdir()) == [1, 2] and numbers(tmp_path) == list(
        range(31)
    )


def test_files_of_another_query_stay_whatever_their_batch(tmp_path: Path) -> None:
    """Its checkpoint says that the batch is not over: it is repeated, and its rows would be there twice."""
    hour = table_of(tmp_path, 3)
    unfinished = hour / file_name(ANOTHER, 1, 0)
    pq.write_table(pa.table({"n": [30, 31]}), unfinished)
    assert compact(tmp_path, query=QUERY, before_batch=3, now_ms=HOUR_ENDS_MS, after_ms=0) == 3
    assert unfinished.exists()
    pq.write_table(pa.table({"n": [30, 31, 32]}), unfinished)  # the batch again
    assert numbers(tmp_path) == list(range(33))
    assert compact(tmp_path, query=ANOTHER, before_batch=2, now_ms=HOUR_ENDS_MS, after_ms=0) == 2
    assert numbers(tmp_path) == list(range(33)) and len(list(hour.iterdir())) == 1


@pytest.mark.parametrize("in_one_step", [True, False])
def test_a_file_that_another_query_writes_while_files_are_joined_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_one_step: bool
) -> None:
    hour = table_of(tmp_path, 3)

    def late(first: Path, second: Path) -> bool:
        pq.write_table(pa.table({"n": [30, 31]}), hour / file_name(ANOTHER, 0, 0))
        return exchange(first, second) if in_one_step else False

    monkeypatch.setattr("hubweir.pipelines.lake.compaction.exchange", late)
    assert compact(tmp_path, query=QUERY, before_batch=3, now_ms=HOUR_ENDS_MS, after_ms=0) == 3
    assert numbers(tmp_path) == list(range(32))


def test_an_hour_of_one_file_is_not_read_again_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table_of(tmp_path, 3)
    assert compact(tmp_path, query=QUERY, before_batch=3, now_ms=HOUR_ENDS_MS, after_ms=0) == 3
    monkeypatch.setattr(pq, "read_schema", None)
    assert compact(tmp_path, query=QUERY, before_batch=4, now_ms=HOUR_ENDS_MS, after_ms=0) == 0


def test_what_an_attempt_with_other_tasks_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    hour = table_of(tmp_path, 2)
    names = [file_name(QUERY, 2, task) for task in range(3)]
    for name in (*names, file_name(ANOTHER, 2, 2), file_name(QUERY, 12, 2)):
        pq.write_table(pa.table({"n": [20]}), hour / name)
    before = set(os.listdir(hour))
    remove_left(tmp_path, QUERY, 2, {f"date=2026-01-31/hour=07/{name}" for name in names[:2]})
    assert before - set(os.listdir(hour)) == {names[2]}
