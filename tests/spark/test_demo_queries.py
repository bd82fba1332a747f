"""What the demo compares with the CSV: each way in which events could be wrong must show, and right ones must not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "demo"))

from delays import different, digests, key_digest, live_delays, read_delays, week_of
from tests.spark.live_hub import Hub, until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "partitionKey string, sequenceNumber long, body binary"
# Two keys in two partitions, and events without a key in both.
STORED: list[tuple[str | None, int, bytes]] = [
    ("N1", 0, b"a"), ("N1", 1, b"b"), ("N2", 0, b"c"), (None, 2, b"e"), (None, 1, b"d"),
]  # fmt: skip
EXPECTED = {"N1": key_digest("N1", [b"a", b"b"]), "N2": key_digest("N2", [b"c"]), None: key_digest(None, [b"d", b"e"])}


def test_what_was_stored_in_order_has_the_digests_of_what_was_sent(spark: SparkSession) -> None:
    assert digests(spark.createDataFrame(STORED, SCHEMA)) == EXPECTED


@pytest.mark.parametrize(
    "stored",
    [
        pytest.param(STORED[1:], id="one lost"),
        pytest.param([*STORED, ("N2", 7, b"c")], id="one twice"),
        pytest.param([("N1", 1, b"a"), ("N1", 0, b"b"), *STORED[2:]], id="out of order"),
        pytest.param([*STORED[:2], ("N2", 0, b"x"), *STORED[3:]], id="another body"),
        pytest.param([*STORED[:3], ("N9", 2, b"e"), STORED[4]], id="under another key"),
    ],
)
def test_an_event_that_is_wrong_shows(spark: SparkSession, stored: list[Any]) -> None:
    assert different("keys", EXPECTED, digests(spark.createDataFrame(stored, SCHEMA)))


def test_live_delays_are_those_of_the_events_by_week_airport_and_carrier(
    spark: SparkSession, hub: Hub, tmp_path: Path
) -> None:
    def flight(origin: str, delay: int | None, hour: str) -> bytes:
        delayed = "null" if delay is None else str(delay)
        return f'{{"origin":"{origin}","carrier":"UA","dep_delay":{delayed},"time_hour":"{hour}"}}'.encode()

    early, late = "2013-01-01T10:00:00Z", "2013-07-04T23:00:00Z"
    hub.client.sender().send(
        [flight("EWR", 5, early), flight("EWR", 7, early), flight("JFK", -3, early), flight("EWR", None, early)]
    )
    query = (
        live_delays(spark, hub.options(startingPosition="earliest"))
        .writeStream.outputMode("complete")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .foreachBatch(lambda table, batch: table.write.mode("overwrite").parquet(str(tmp_path / "delays")))
        .start()
    )
    until(lambda: (tmp_path / "delays" / "_SUCCESS").exists(), "the first table")
    hub.client.sender().send([flight("EWR", 60, late)])
    query.processAllAvailable()
    query.stop()
    week, summer = week_of(early), week_of(late)
    assert summer > week
    assert read_delays(spark, tmp_path / "delays") == {
        ("EWR", "UA", week): (2, 12), ("JFK", "UA", week): (1, -3), ("EWR", "UA", summer): (1, 60),
    }  # fmt: skip


def test_equal_tables_have_no_difference_and_a_difference_names_its_place() -> None:
    assert different("weeks", {1: 2}, {1: 2}) == []
    assert different("weeks", {1: 2}, {1: 3}) == ["1 weeks differ, such as 1: 2 became 3"]
