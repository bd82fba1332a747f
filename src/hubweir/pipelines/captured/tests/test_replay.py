"""Where history ends is noted once; what a replay cannot begin with is refused before Spark is asked for anything."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from hubweir.capture.avro import header, long
from hubweir.pipelines.captured.replay import history_end, start
from hubweir.pipelines.description import describe
from hubweir.pipelines.errors import IllegalDescription
from hubweir.pipelines.job import Job
from hubweir.spark.errors import IllegalCapture

TEXT = "Endpoint=sb://localhost;SharedAccessKeyName=r;SharedAccessKey=k;UseDevelopmentEmulator=true"
SYNC = bytes(16)
TIME = b"1/31/2026 12:00:00 PM"


def job(folder: Path, **sink: str) -> Job:
    raw = {
        "pipeline": "replay",
        "checkpoint": str(folder / "checkpoint"),
        "source": {"eventHub": "o", "connectionString": TEXT},
        "parameters": {"captured": str(folder / "captured")},
        "sink": sink,
    }
    return Job(None, describe(raw, "test"))  # type: ignore[arg-type]


def film(folder: Path, minute: int, numbers: list[int]) -> None:
    path = folder / f"captured/ns/o/0/2026/01/31/12/{minute:02}/00.avro"
    path.parent.mkdir(parents=True)
    records = b"".join(long(number) + long(1) + b"9" + long(len(TIME)) + TIME + b"\0" * 3 for number in numbers)
    block = long(len(numbers)) + long(len(records)) + records + SYNC if numbers else b""
    path.write_bytes(header(SYNC) + block)


@pytest.mark.parametrize("sink", [{}, {"path": "lake", "eventHub": "out"}])
def test_it_goes_to_a_table_or_to_a_hub(tmp_path: Path, sink: dict[str, Any]) -> None:
    with pytest.raises(IllegalDescription, match="pipeline replay: sink takes one of eventHub and path"):
        start(job(tmp_path, **sink))


def test_the_end_of_history_is_that_of_the_first_start(tmp_path: Path) -> None:
    film(tmp_path, 1, [5, 6, 7])
    one = job(tmp_path, path="lake")
    assert history_end(one, {}) == {"0": 8}
    film(tmp_path, 2, [8, 9])
    assert history_end(job(tmp_path, path="lake"), {}) == {"0": 8}
    shutil.rmtree(tmp_path / "captured")  # a restart does not look
    assert history_end(job(tmp_path, path="lake"), {}) == {"0": 8}


def test_a_place_without_events_is_refused_and_nothing_is_noted(tmp_path: Path) -> None:
    """Or a misspelt one would begin with what the hub has, and say nothing."""
    with pytest.raises(IllegalCapture, match="there is no folder"):
        history_end(job(tmp_path, path="lake"), {})
    film(tmp_path, 1, [])
    with pytest.raises(IllegalDescription, match="has no captured file with events; allowed: a place that has"):
        history_end(job(tmp_path, path="lake"), {})
    film(tmp_path, 2, [0])
    assert history_end(job(tmp_path, path="lake"), {}) == {"0": 1}
