"""Windows in the offsets of a capture: when one ends, and which partitions make an empty file then."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyspark")
from pyspark.sql.streaming.datasource import ReadAllAvailable

from hubweir.pipelines.captured.blocks import CaptureBlocksReader, EmptyPartitions
from hubweir.pipelines.captured.windows import with_window, without_window
from hubweir.pipelines.run_status import progress_of
from hubweir.spark.source.offsets import PartitionBounds
from hubweir.spark.source.read_options import ReadOptions

ALL = ReadAllAvailable()


class Hub:
    """What the hub holds; partition 1 never has anything."""

    high = 5

    def bounds(self) -> dict[str, PartitionBounds]:
        return {"0": PartitionBounds(0, self.high), "1": PartitionBounds(0, 0)}

    def bounds_behind(self, numbers: Any, events: int) -> dict[str, PartitionBounds]:
        return self.bounds()

    def kept(self, wanted: Any, bounds: PartitionBounds) -> Any:
        return wanted


def reader(counts_windows: bool = True, **options: Any) -> tuple[CaptureBlocksReader, Hub]:
    made, hub = CaptureBlocksReader(ReadOptions("secret", "hub", **options), counts_windows), Hub()
    made._hub = hub  # type: ignore[assignment]
    return made, hub


def empty(one: CaptureBlocksReader, start: dict[str, Any], end: dict[str, Any]) -> list[tuple[str, ...]]:
    return [each.ids for each in one.partitions(start, end) if isinstance(each, EmptyPartitions)]


def test_each_trigger_ends_a_window_and_silent_partitions_make_a_file() -> None:
    one, hub = reader()
    first = one.latestOffset({"0": 0, "1": 0, "initial": True}, ALL)
    assert first == {"0": 5, "1": 0, "from": {"0": 0, "1": 0}, "window": 1}
    assert empty(one, {"0": 3, "1": 0, "initial": True}, first) == [("1",)]
    second = one.latestOffset(first, ALL)
    assert second == {"0": 5, "1": 0, "from": {"0": 0, "1": 0}, "window": 2}
    assert empty(one, first, second) == [("0", "1")]
    hub.high = 9
    third = one.latestOffset(second, ALL)
    assert third == {"0": 9, "1": 0, "window": 3} and empty(one, second, third) == [("1",)]


def test_the_first_look_of_a_run_ends_no_window_without_events() -> None:
    one, hub = reader()
    at = {"0": 5, "1": 0, "window": 7}
    assert one.latestOffset(at, ALL) is at
    assert one.latestOffset(at, ALL) == {"0": 5, "1": 0, "window": 8}


def test_a_run_of_once_is_one_window() -> None:
    one, hub = reader()
    one.prepareForTriggerAvailableNow()
    at = {"0": 5, "1": 0, "window": 7}
    end = one.latestOffset(at, ALL)
    assert end == {"0": 5, "1": 0, "window": 8}
    assert one.latestOffset(end, ALL) is end  # or the run would not end


def test_while_events_wait_for_more_the_window_goes_on() -> None:
    one, hub = reader(min_events_per_trigger=100, max_trigger_delay_s=1e9)
    at = {"0": 3, "1": 0}
    assert one.latestOffset(at, ALL) is at
    assert one.latestOffset(at, ALL) is at


def test_where_empty_files_are_not_wanted_nothing_is_counted() -> None:
    one, hub = reader(counts_windows=False)
    at = {"0": 5, "1": 0}
    assert one.latestOffset(at, ALL) is at and one.latestOffset(at, ALL) is at
    hub.high = 6
    assert one.latestOffset(at, ALL) == {"0": 6, "1": 0} and empty(one, at, {"0": 6, "1": 0}) == []
    # Switched off meanwhile: the count stays, or the checkpoint's offset would run backwards.
    assert one.latestOffset({**at, "window": 4}, ALL) == {"0": 6, "1": 0, "window": 4}


def test_the_progress_of_a_capture_is_of_events() -> None:
    assert without_window(with_window({"0": 1}, 3)) == {"0": 1} and with_window({"0": 1}, 0) == {"0": 1}
    source = {"startOffset": {"0": 5, "window": 1}, "endOffset": {"0": 7, "window": 2}, "latestOffset": {"0": 9}}
    found = progress_of({"batchId": 3, "durationMs": {"triggerExecution": 1000}, "sources": [source]})
    assert (found.events, found.partitions["0"].behind) == (2, 2)
