"""Progress in events, and the status file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hubweir.pipelines.errors import IllegalDescription
from hubweir.pipelines.run_status import (
    RUNNING,
    PartitionStatus,
    RunStatus,
    known_checkpoints,
    progress_of,
    read_status,
    status_path,
    write_status,
)

STATUS = RunStatus("orders", "to-lake", "hub", RUNNING, 17, 1_700_000_000, 4, 90, 12.5, {"0": PartitionStatus(7, 2)})


def entry(start: Any, end: Any, latest: Any) -> dict[str, Any]:
    source = {"startOffset": start, "endOffset": end, "latestOffset": latest}
    return {"batchId": 3, "durationMs": {"triggerExecution": 2000}, "sources": [source]}


def test_events_are_counted_by_offsets_in_either_form() -> None:
    found = progress_of(entry({"0": 5, "1": 0}, json.dumps({"0": 9, "1": 2}), {"0": 9, "1": 10}))
    assert (found.batch, found.events, found.events_per_s) == (3, 6, 3.0)
    assert found.partitions == {"0": PartitionStatus(9, 0), "1": PartitionStatus(2, 8)}


@pytest.mark.parametrize(
    ("start", "end", "events"),
    [
        (None, {"0": 9, "from": {"0": 4}}, 5),
        ({"0": 6, "initial": True}, {"0": 9, "from": {"0": 4}}, 5),
        (None, {"0": 9, "initial": True}, 0),
        ({"0": 9, "from": {"0": 4}}, {"0": 9, "from": {"0": 4}}, 0),
    ],
)
def test_the_first_batch_has_its_true_start_in_its_end(start: Any, end: Any, events: int) -> None:
    assert progress_of(entry(start, end, None)).events == events


def test_status_is_kept_beside_the_checkpoint_and_found_again(tmp_path: Path) -> None:
    write_status(tmp_path / "made" / "orders", STATUS)
    assert read_status(tmp_path / "made" / "orders") == STATUS and STATUS.behind == 2
    assert list(known_checkpoints(tmp_path / "made")) == [tmp_path / "made" / "orders"]
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["orders.status.json"]


def test_no_status_and_a_broken_one_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(IllegalDescription, match="no pipeline has run with the checkpoint"):
        read_status(tmp_path / "orders")
    for text in ("{", "[]", '{"partitions": {}}'):
        status_path(tmp_path / "orders").write_text(text)
        with pytest.raises(IllegalDescription, match="is no status of a pipeline"):
            read_status(tmp_path / "orders")
