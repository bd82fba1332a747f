"""The pipelines that write into hubs: dead letters, windowed aggregates, state by key; over restarts and repeats."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hubweir.pipelines.description import describe
from hubweir.pipelines.errors import PipelineFailed
from hubweir.pipelines.runner import PipelineRun
from tests.spark.live_hub import Hub
from tests.spark.pipeline_runs import bodies, repeat_last_batch, run_once, send_json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FLIGHT = "origin string, carrier string, dep_delay int, time_hour timestamp"


# The state's first batch starts several processes of Spark.
ALERT_S = 180.0


def flight(number: int, **other: Any) -> dict[str, Any]:
    """Flights ten minutes apart, six an hour, of two airports in turn."""
    hour = f"2013-01-01T{number // 6:02}:{number % 6 * 10:02}:00Z"
    return {"origin": ("EWR", "JFK")[number % 2], "carrier": "UA", "dep_delay": number, "time_hour": hour, **other}


@pytest.mark.parametrize("exactly_once", ["require", pytest.param("off", marks=pytest.mark.slow)])
def test_what_does_not_parse_goes_to_its_own_hub_with_the_reason_once(
    spark: SparkSession, hub: Hub, hubs: Any, tmp_path: Path, exactly_once: str
) -> None:
    """A batch is repeated as after a crash. The control: without numbered events it doubles what it wrote."""
    good, dead = hubs(2)
    sink = {"eventHub": good.name, "deadLetterHub": dead.name, "exactlyOnce": exactly_once}
    parameters = {"schema": FLIGHT, "required": "origin"}
    wrong: dict[bytes, str] = {
        b"no json": "the body is no JSON",
        b"[1]": "the body is no JSON object",
        json.dumps(flight(1, dep_delay="late")).encode(): "dep_delay is no int",
        json.dumps(flight(1, dep_delay=1.5)).encode(): "dep_delay is no int",
        json.dumps(flight(1, dep_delay="1")).encode(): "dep_delay is no int",
        b'{"carrier": "UA"}': "origin is missing",
    }
    for run in range(2):
        hub.client.sender().send(list(wrong), partition_key=f"k{run}")
        send_json(hub, [flight(number) for number in range(20 * run, 20 * run + 20)])
        if run:
            repeat_last_batch(tmp_path / "checkpoint-dead-letters")
        run_once(spark, "dead-letters", hub, tmp_path, parameters=parameters, sink=sink)
    times = Counter(row["dep_delay"] for row in bodies(spark, good))
    letters = spark.read.format("eventhubs").options(**dead.options()).load().collect()
    if exactly_once == "off":
        assert set(times) == set(range(40)) and max(times.values()) == 2
        return
    assert times == Counter(range(40))
    found = [(bytes(row.body), row.properties["dead-letter-reason"], row.partitionKey) for row in letters]
    assert sorted(found) == sorted((body, why, f"k{run}") for body, why in wrong.items() for run in range(2))
    places = {
        (row.properties["dead-letter-partition"], row.properties["dead-letter-sequence-number"]) for row in letters
    }
    assert len(places) == 12 and {row.properties["dead-letter-hub"] for row in letters} == {hub.name}


@pytest.mark.slow
def test_a_dead_hub_that_refuses_stops_the_pipeline_and_the_next_run_goes_on_and_doubles_nothing(
    spark: SparkSession, hub: Hub, hubs: Any, tmp_path: Path
) -> None:
    """And a dead letter that is too large with its reason is cut, or goes without its own properties: one event must
    not stop this pipeline for good.
    """
    good, dead = hubs(2)
    sink = {"eventHub": good.name, "deadLetterHub": f"{dead.name}-later", "exactlyOnce": "require"}
    send_json(hub, [flight(number) for number in range(20)])
    largest = b"x" * (2**20 - 100)
    hub.client.sender().send([largest], partition_key="k")
    many = {f"{number:02}": "v" * 1_000 for number in range(64)}  # as much as an event may have
    wide = spark.createDataFrame([(bytearray(b"wide"), many)], "body binary, properties map<string,string>")
    wide.write.format("eventhubs").options(**hub.options()).mode("append").save()
    parameters = {"schema": FLIGHT}
    with pytest.raises(PipelineFailed, match=f"^pipeline dead-letters: .*{dead.name}-later.* could not be found"):
        run_once(spark, "dead-letters", hub, tmp_path, parameters=parameters, sink=sink)
    later = Hub(hub.namespace, sink["deadLetterHub"], hub.client)
    hub.namespace.create_event_hub(later.name, partition_count=2)
    run_once(spark, "dead-letters", hub, tmp_path, parameters=parameters, sink=sink)
    assert Counter(row["dep_delay"] for row in bodies(spark, good)) == Counter(range(20))
    letters = spark.read.format("eventhubs").options(**later.options()).load().orderBy("partitionKey").collect()
    told, letter = letters
    assert bytes(told.body) == b"wide" and told.properties["dead-letter-properties-size"] == str(64 * 1_002)
    assert "00" not in told.properties and told.properties["dead-letter-reason"] == "the body is no JSON"
    assert "dead-letter-properties-size" not in letter.properties
    assert letter.properties["dead-letter-body-size"] == str(len(largest)) and letter.partitionKey == "k"
    assert bytes(letter.body) == largest[: len(letter.body)] and len(letter.body) > 2**20 - 5_000


@pytest.mark.parametrize(
    "window",
    ["tumbling", pytest.param("sliding", marks=pytest.mark.slow), pytest.param("session", marks=pytest.mark.slow)],
)
def test_windows_are_written_once_when_the_watermark_has_passed_them(
    spark: SparkSession, hub: Hub, hubs: Any, tmp_path: Path, window: str
) -> None:
    """Two runs over one checkpoint; the last flight closes every window before it."""
    (out,) = hubs(1)
    parameters = {
        "schema": FLIGHT, "keys": "origin", "time": "time_hour", "window": window, "watermark": "10m",
        "aggregates": "count(*) AS flights, sum(dep_delay) AS minutes", "slide": "30m",
        "size": "15m" if window == "session" else "1h",
    }  # fmt: skip
    numbers = [number for number in range(36) if window != "session" or number % 6 < 4]
    for half in (numbers[:18], [*numbers[18:], 90]):
        send_json(hub, [flight(number) for number in half], key="one-partition")
        run_once(spark, "windowed-aggregates", hub, tmp_path, parameters=parameters, sink={"eventHub": out.name})
    found = {(row["start"][11:16], row["origin"]): (row["flights"], row["minutes"]) for row in bodies(spark, out)}
    assert len(found) == len(bodies(spark, out))
    assert found == expected_windows(window, numbers)


def expected_windows(window: str, numbers: list[int]) -> dict[tuple[str, str], tuple[int, int]]:
    """The same in plain Python: (start, airport) -> (flights, minutes). Minutes since midnight are ten a number."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    last: dict[str, tuple[int, int]] = {}
    for number in numbers:
        airport, at = ("EWR", "JFK")[number % 2], 10 * number
        if window == "session":
            begun, before = last.get(airport, (at, at))
            starts = [begun if at - before < 15 else at]
            last[airport] = (starts[0], at)
        elif window == "sliding":
            starts = [at // 30 * 30, at // 30 * 30 - 30]
        else:
            starts = [at // 60 * 60]
        for start in starts:
            key = (f"{start % 1440 // 60:02}:{start % 60:02}", airport)
            flights, minutes = found.get(key, (0, 0))
            found[key] = (flights + 1, minutes + number)
    return found


@pytest.mark.timeout(2 * ALERT_S + 60)
def test_a_key_that_falls_silent_makes_one_alert_and_one_word_when_it_is_back(
    spark: SparkSession, hub: Hub, hubs: Any, tmp_path: Path
) -> None:
    """The state outlives a restart: the second run knows what the first one saw.

    It takes seconds to end where the machine is busy, in which the key is not to fall silent once more.
    """
    (out,) = hubs(1)
    raw = {
        "pipeline": "per-key-state", "checkpoint": str(tmp_path / "checkpoint"), "source": hub.options(),
        "parameters": {"silentAfter": "5s"}, "sink": {"eventHub": out.name}, "trigger": "200ms",
    }  # fmt: skip
    hub.client.sender().send([b"1", b"2"], partition_key="meter-1")
    for states in (["silent"], ["silent", "back"]):
        limit_s = time.monotonic() + ALERT_S

        def is_over(wanted: list[str] = states, limit_s: float = limit_s) -> bool:
            return count(out) >= len(wanted) or time.monotonic() > limit_s

        if len(states) > 1:
            hub.client.sender().send([b"3"], partition_key="meter-1")
        PipelineRun(describe(raw, "test"), lambda line: None).run(spark, once=False, is_over=is_over)
        assert [(row["key"], row["state"]) for row in bodies(spark, out)] == [("meter-1", state) for state in states]
    assert [row["events"] for row in bodies(spark, out)] == [2, 3]


def count(hub: Hub) -> int:
    """How many events a hub of two partitions has."""
    return sum(hub.high(partition_id) for partition_id in "01")
