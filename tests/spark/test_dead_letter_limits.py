"""Dead letters: no event stops the pipeline, whatever is in its body or its properties; each is in one of the hubs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hubweir.client.event_batch import EventBatch
from hubweir.testing.running_namespace import running_namespace
from tests.spark.live_hub import Hub
from tests.spark.pipeline_runs import run_once

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "tea int, name string, at timestamp, deep array<array<int>>, much decimal(5,2)"
LARGEST = 2**20
HOSTILE = [
    b"",
    b" ",
    b"null",
    b"\xff\xfe{}",
    b'{"name": "\xff\xc0\x80"}',
    b'{"name": "\\ud800"}',
    b'{"tea": 1, "tea": 2}',
    b'{"a": ' * 600 + b"1" + b"}" * 600,
    b'{"deep": ' + b"[" * 5_000 + b"]" * 5_000 + b"}",
    b'{"tea": ' + b"9" * 5_000 + b"}",
    b'{"tea": 1e999999999}',
    b'{"much": 1e400}',
    b'{"much": 123456.789}',
    b'{"at": "99999999-01-01"}',
    b'{"at": {"tea": 1}}',
    b'{"tea": NaN}',
    b'{"tea": 1} {"tea": 2}',
    b'{"tea": 1}\x00',
    b'{"' + b"k" * 100_000 + b'": 1}',
    b'{"tea": tru',
    "{\"tea\": '1'}".encode("utf-16"),
]


def send(hub: Hub, body: bytes, properties: dict[str, object]) -> None:
    batch = EventBatch(LARGEST)
    assert batch.try_add(body, properties)
    hub.client.sender(partition_id="0").send_batch(batch)


def events_of(spark: SparkSession, hub: Hub) -> list[Any]:
    return spark.read.format("eventhubs").options(**hub.options()).load().collect()


def test_an_event_that_cannot_be_written_as_it_is_goes_to_the_dead_letters(
    spark: SparkSession, hub: Hub, hubs: Any, tmp_path: Path
) -> None:
    """Properties that are no texts are longer as texts, and an event that fills its batch has no room for numbers."""
    good, dead = hubs(2)
    fits = [b'{"tea": 1}', b'{"name": "' + b"x" * (LARGEST - 1_000) + b'"}']
    send(hub, fits[0], {"text": "v" * 32_000, "bytes": bytes(20_000)})
    send(hub, b'{"tea": 2}', {"bytes": bytes(30_000)})
    send(hub, b'{"tea": 3}', {f"{number}": bytes(2_900) for number in range(20)})
    send(hub, fits[1], {})
    send(hub, b'{"name": "' + b"x" * (LARGEST - 42) + b'"}', {})
    for body in HOSTILE:
        send(hub, body, {})
    sink = {"eventHub": good.name, "deadLetterHub": dead.name, "exactlyOnce": "require"}
    run_once(spark, "dead-letters", hub, tmp_path, parameters={"schema": SCHEMA}, sink=sink)
    went, letters = events_of(spark, good), events_of(spark, dead)
    assert len(went) + len(letters) == 5 + len(HOSTILE)
    bodies = {bytes(row.body) for row in went}
    assert set(fits) <= bodies
    why = {row.properties["dead-letter-sequence-number"]: row.properties["dead-letter-reason"] for row in letters}
    too_large = "with its properties as text it is larger than an event may be"
    assert why["1"] == why["2"] == why["4"] == too_large
    assert {row.properties.get("dead-letter-properties-size") for row in letters} > {None}


@pytest.mark.slow
def test_hubs_of_a_lower_tier_take_what_they_can_and_dead_letters_are_cut_for_theirs(
    spark: SparkSession, hub: Hub, tmp_path: Path
) -> None:
    """The basic tier takes a quarter of what others do at once."""
    with running_namespace(profile="basic") as basic:
        for name in ("good", "dead"):
            basic.create_event_hub(name, partition_count=1)
        small, large = b'{"tea": 1}', b'{"name": "' + b"x" * 300_000 + b'"}'
        send(hub, small, {})
        send(hub, large, {})
        connection = basic.connection_string()
        sink = {"eventHub": "good", "deadLetterHub": "dead", "connectionString": connection}
        run_once(spark, "dead-letters", hub, tmp_path, parameters={"schema": SCHEMA}, sink=sink)
        found = {}
        for name in ("good", "dead"):
            read = spark.read.format("eventhubs").options(connectionString=connection, eventHub=name)
            found[name] = [bytes(row.body) for row in read.load().collect()]
    assert found["good"] == [small]
    [letter] = found["dead"]
    assert letter == large[: len(letter)] and 250_000 < len(letter) < 2**18
