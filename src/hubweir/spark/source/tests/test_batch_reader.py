import json
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql.datasource import InputPartition

from hubweir.client.blocking import BlockingEventHubClient
from hubweir.errors import ServiceError
from hubweir.spark.errors import IllegalOption
from hubweir.spark.source import range_reader
from hubweir.spark.source.batch_reader import EventHubReader
from hubweir.spark.source.read_options import parse_options

NewHub = Callable[..., str]
OptionsOf = Callable[..., dict[str, str]]
ClientOf = Callable[[str], BlockingEventHubClient]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(range_reader, "freeze_garbage", lambda: None)


@pytest.fixture
def rows_of(options_of: OptionsOf) -> Callable[..., list[list[tuple[str, int]]]]:
    """rows_of(hub, startingPosition="3"): for each task its rows, as (partition, sequence number)."""

    def read(hub: str, **more: str) -> list[list[tuple[str, int]]]:
        reader = EventHubReader(
            parse_options(options_of(hub, **more), is_stream=False), ("partition", "sequenceNumber")
        )
        return [
            [(row["partition"], row["sequenceNumber"]) for batch in reader.read(task) for row in batch.to_pylist()]
            for task in reader.partitions()
        ]

    return read


RowsOf = Callable[..., list[list[tuple[str, int]]]]


def test_events_between_two_positions_are_read(new_hub: NewHub, rows_of: RowsOf, client_of: ClientOf) -> None:
    hub = new_hub(partition_count=2)
    for partition_id in "01":
        client_of(hub).sender(partition_id=partition_id).send([b"x"] * 6)
    assert rows_of(hub) == [[("0", number) for number in range(6)] + [("1", number) for number in range(6)]]
    some = rows_of(
        hub,
        startingPositions=json.dumps({"0": 4, "1": {"seqNo": 2, "isInclusive": False}}),
        endingPositions=json.dumps({"1": 5}),
    )
    assert some == [[("0", 4), ("0", 5), ("1", 3), ("1", 4)]]
    assert rows_of(hub, startingPosition="5", endingPosition="2") == []


def test_more_tasks_are_made_when_asked_for(new_hub: NewHub, rows_of: RowsOf, client_of: ClientOf) -> None:
    hub = new_hub()
    client_of(hub).sender().send([b"x"] * 10)
    tasks = rows_of(hub, minPartitions="4")
    assert [len(task) for task in tasks] == [2, 3, 2, 3]
    assert [row for task in tasks for row in task] == [("0", number) for number in range(10)]


def test_empty_hub_has_no_task_and_a_task_of_nothing_no_rows(
    new_hub: NewHub, rows_of: RowsOf, options_of: OptionsOf
) -> None:
    assert rows_of(new_hub()) == []
    reader = EventHubReader(parse_options(options_of("orders"), is_stream=False), ("body",))
    nothing: Any = InputPartition(None)
    assert list(reader.read(nothing)) == []


def test_a_consumer_group_that_is_not_there_is_an_error_also_where_there_is_nothing_to_read(
    new_hub: NewHub, rows_of: RowsOf, client_of: ClientOf
) -> None:
    hub = new_hub(partition_count=2)
    for more in ({}, {"startingPosition": "latest"}):
        with pytest.raises(ServiceError, match=f"consumerGroup 'nobody' of event hub '{hub}' cannot be read: .*found"):
            rows_of(hub, consumerGroup="nobody", **more)
        client_of(hub).sender().send([b"x"])


def test_a_group_without_room_is_no_matter_where_there_is_nothing_to_read(
    new_hub: NewHub, rows_of: RowsOf, client_of: ClientOf
) -> None:
    hub = new_hub()
    readers = [client_of(hub).receiver("0") for _ in range(5)]
    for reader in readers:
        reader.open()
    assert rows_of(hub) == []
    for reader in readers:
        reader.close()


def test_position_that_the_hub_cannot_have_is_refused(new_hub: NewHub, rows_of: RowsOf) -> None:
    with pytest.raises(IllegalOption, match="endingPosition is sequence number 8"):
        rows_of(new_hub(), endingPosition="8")
