"""Columns that the table has already; and the batch that a run before left."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from hubweir.pipelines.errors import IllegalDescription
from hubweir.pipelines.lake.to_lake import check_columns, unfinished_batch


def test_a_column_that_would_hide_another_is_named() -> None:
    check_columns(["tea", "coffee"], ["body", "hour"])
    with pytest.raises(IllegalDescription, match="a column Hour itself; allowed: others than body, hour"):
        check_columns(["tea", "Hour"], ["body", "hour"])


def test_a_batch_that_was_planned_and_not_ended_is_the_one_that_is_repeated(tmp_path: Path) -> None:
    assert unfinished_batch(tmp_path) is None
    for log, batches in (("offsets", ("9", "10", ".10.crc")), ("commits", ("9",))):
        (tmp_path / log).mkdir()
        for name in batches:
            (tmp_path / log / name).touch()
    assert unfinished_batch(tmp_path) == 10
    (tmp_path / "commits" / "10").touch()
    assert unfinished_batch(tmp_path) is None
