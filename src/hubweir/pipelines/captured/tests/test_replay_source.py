"""Where a replay's batches end and which task reads what, without Spark running."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyspark")
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from hubweir.pipelines.captured.history import HistoryFile
from hubweir.pipelines.captured.replay_source import History, HistoryPartition, ReplayReader, gaps
from hubweir.spark.errors import DataLoss, IllegalCapture, IllegalOffset
from hubweir.spark.source.offsets import EventRange, PartitionBounds
from hubweir.spark.source.read_options import ReadOptions
from hubweir.spark.source.read_tasks import ReadTask

# Partition 0 has three files up to 300; the hub has 250 to 400. Partition 1 has no file; the hub has 0 to 50.
ENDS = {"0": 300}


class Captured(History):
    """Files that are nowhere."""

    def of(self, partition_id: str) -> list[HistoryFile]:
        files = [HistoryFile(f"f{start}", 1, "0", start, start + 100) for start in (0, 100, 200, 300)]
        return files if partition_id == "0" else []


class Hub:
    """What the hub holds, and that its consumer group is there."""

    def check_group(self) -> None:
        pass

    def bounds(self) -> dict[str, PartitionBounds]:
        return {"0": PartitionBounds(250, 400), "1": PartitionBounds(0, 50)}

    def bounds_behind(self, numbers: Any, events: int) -> dict[str, PartitionBounds]:
        return self.bounds()

    def resolve(self, positions: Any, *, option: str) -> dict[str, int]:
        return {"0": 250, "1": 0}

    def kept(self, wanted: Any, bounds: PartitionBounds) -> Any:
        assert wanted.start >= bounds.low, "what is history must not be asked of the hub"
        return wanted


def reader() -> ReplayReader:
    made = ReplayReader(ReadOptions("secret", "hub"), ("body",), Captured("", "", {}), ENDS)
    made._hub = Hub()  # type: ignore[assignment]
    return made


def tasks(start: dict[str, Any], end: dict[str, Any], one: ReplayReader | None = None) -> list[tuple[str, int, int]]:
    """(files or partition, first, end) of each task."""
    found = []
    for each in (one or reader()).partitions(start, end):
        if isinstance(each, HistoryPartition):
            names = [f"hub {one.start}-{one.end}" if isinstance(one, EventRange) else one.path for one in each.parts]
            found.append(("+".join(names), each.start, each.end))
        else:
            assert isinstance(each, ReadTask)
            found += [(one.partition_id, one.start, one.end) for one in each.ranges]
    return found


def test_a_replay_starts_with_the_oldest_file_or_where_the_hub_starts() -> None:
    assert reader().initialOffset() == {"0": 0, "1": 0, "initial": True}


def test_files_of_partitions_that_the_hub_lacks_are_no_history_to_leave_out_in_silence() -> None:
    made = reader()
    made._history_end = {**ENDS, "2": 5, "10": 5}
    for _ in range(2):  # Spark asks twice
        with pytest.raises(IllegalCapture, match="partition 2, 10, which event hub 'hub' .* give it 11 partitions"):
            made.initialOffset()


def test_a_hub_that_was_made_anew_with_fewer_partitions_is_told_as_that() -> None:
    gone = {"0": 0, "1": 0, "2": 0}
    with pytest.raises(IllegalOffset, match="no partition 2"):
        reader().latestOffset(gone, ReadAllAvailable())
    made = reader()
    made._history_end = {"2": 5}
    with pytest.raises(IllegalOffset, match="no partition 2"):
        made.partitions(gone, {**gone, "2": 5})


@pytest.mark.parametrize(
    ("at", "limit", "end"),
    [
        (0, ReadAllAvailable(), 300),
        (0, ReadMaxRows(200), 200),
        (0, ReadMaxRows(7), 100),
        (100, ReadMaxRows(199), 200),
        (250, ReadMaxRows(7), 300),
    ],
)
def test_batches_of_history_are_whole_files_and_the_live_ones_wait(at: int, limit: Any, end: int) -> None:
    assert reader().latestOffset({"0": at, "1": 0}, limit) == {"0": end, "1": 0}


def test_behind_history_the_hub_goes_on() -> None:
    assert reader().latestOffset({"0": 300, "1": 0}, ReadAllAvailable()) == {"0": 400, "1": 50}


def test_history_is_read_from_files_and_the_rest_from_the_hub() -> None:
    assert tasks({"0": 0, "1": 0}, {"0": 200, "1": 0}) == [("f0+f100", 0, 200)]
    assert tasks({"0": 200, "1": 0}, {"0": 310, "1": 5}) == [("f200", 200, 300), ("0", 300, 310), ("1", 0, 5)]
    # What was captured behind the noted end is read from the hub all the same: a repeated batch has the same tasks.
    assert tasks({"0": 300, "1": 0}, {"0": 400, "1": 0}) == [("0", 300, 400)]


def test_the_first_batch_has_its_true_start_in_its_end() -> None:
    end = {"0": 100, "1": 0, "from": {"0": 0, "1": 0}}
    assert tasks({"0": 50, "1": 9, "initial": True}, end) == [("f0", 0, 100)]


class Holey(Captured):
    """The file from 0 is gone, and the one from 200."""

    def of(self, partition_id: str) -> list[HistoryFile]:
        return [file for file in super().of(partition_id) if file.start in (100, 300)]


def holey(low: int, **options: Any) -> ReplayReader:
    made = ReplayReader(ReadOptions("secret", "hub", **options), ("body",), Holey("", "", {}), {"0": 400})

    class Holding(Hub):
        def bounds(self) -> dict[str, PartitionBounds]:
            return {"0": PartitionBounds(low, 500)}

        def resolve(self, positions: Any, *, option: str) -> dict[str, int]:
            return {"0": low}

    made._hub = Holding()  # type: ignore[assignment]
    return made


def test_what_no_file_has_is_read_from_the_hub_in_its_place_when_it_is_there() -> None:
    assert holey(0).initialOffset() == {"0": 0, "initial": True}
    assert holey(150).initialOffset() == {"0": 100, "initial": True}
    assert tasks({"0": 0}, {"0": 400}, holey(0)) == [("hub 0-100+f100+hub 200-300+f300", 0, 400)]


def test_what_neither_has_is_loss_and_only_that() -> None:
    with pytest.raises(DataLoss, match="50 events of partition 0 .* sequence numbers 200 to 249: no captured file"):
        holey(250).partitions({"0": 100}, {"0": 400})
    lenient = holey(250, fail_on_data_loss=False)
    assert tasks({"0": 100}, {"0": 400}, lenient) == [("f100+hub 250-300+f300", 100, 400)]


def test_gaps_are_the_numbers_that_are_left_out() -> None:
    assert gaps(np.array([3, 4, 5]), 3) == []
    assert gaps(np.array([5, 6, 9, 12]), 3) == [(3, 5), (7, 9), (10, 12)]
