import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from hubweir.client.blocking import BlockingEventHubClient, BlockingNumberedSender
from hubweir.client.entity_info import HubInfo
from hubweir.errors import CONNECTION_FORCED, RESOURCE_LIMIT, ServiceError
from hubweir.spark.errors import ChangedRepeat, NotExactlyOnce
from hubweir.spark.sink import task_writer
from hubweir.spark.sink.producer_ids import Work
from hubweir.spark.sink.sink_columns import sink_columns
from hubweir.spark.sink.task_writer import TaskWriter, Written, write_rows
from hubweir.spark.sink.tests.sink_rows import COLUMNS, rows, stored
from hubweir.spark.sink.write_options import ExactlyOnce, WriteOptions, parse_write_options
from hubweir.testing.running_namespace import RunningNamespace, running_namespace

ClientOf = Callable[[str], BlockingEventHubClient]
WORK = Work("query", 0, 0)


@pytest.fixture
def hub(new_hub: Callable[..., str]) -> str:
    return new_hub(partition_count=2)


@pytest.fixture
def client(client_of: ClientOf, hub: str) -> BlockingEventHubClient:
    return client_of(hub)


@pytest.fixture
def options(options_of: Callable[..., dict[str, str]], hub: str) -> WriteOptions:
    return parse_write_options(options_of(hub))


@pytest.fixture(autouse=True)
def nothing_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_writer, "_told", set())


def test_a_task_that_is_repeated_stores_its_rows_once(client: BlockingEventHubClient, options: WriteOptions) -> None:
    batches = [rows(range(100)), rows([]), rows(range(100, 150))]
    assert write_rows(options, COLUMNS, WORK, batches[:1]) == Written(100, 0)
    assert write_rows(options, COLUMNS, WORK, batches) == Written(150, 100)
    # Cut in another way: the same rows.
    assert write_rows(options, COLUMNS, WORK, [rows(range(30)), rows(range(30, 150))]) == Written(150, 150)
    assert stored(client) == [list(range(0, 150, 2)), list(range(1, 150, 2))]
    write_rows(options, COLUMNS, replace(WORK, round=1), batches)
    assert sum(map(len, stored(client))) == 300


def test_rows_that_went_to_another_partition_the_first_time_are_missed(
    client: BlockingEventHubClient, options: WriteOptions
) -> None:
    both = [rows(range(10), partition="0"), rows(range(10), partition="1")]
    write_rows(options, COLUMNS, WORK, both)
    with pytest.raises(ChangedRepeat, match="made 0 rows, and 10 were stored, in partition 1"):
        write_rows(options, COLUMNS, WORK, both[:1])
    with pytest.raises(ChangedRepeat, match="in partition 1"):
        write_rows(options, COLUMNS, replace(WORK, attempt=1), both[:1])
    with pytest.raises(ChangedRepeat, match="made 0 rows"):
        write_rows(options, COLUMNS, replace(WORK, attempt=1), [])


def test_a_batch_that_another_run_may_have_begun_is_looked_for_in_all_partitions(
    client: BlockingEventHubClient, options: WriteOptions
) -> None:
    """The repeat has no row for the partition that the first time wrote to, so nothing else tells it from a new one."""
    write_rows(options, COLUMNS, WORK, [rows(range(10), partition="1")])
    repeat = replace(WORK, may_repeat=True)
    for batches in ([], [rows([], partition="0")]):
        with pytest.raises(ChangedRepeat, match="made 0 rows, and 10 were stored, in partition 1"):
            write_rows(options, COLUMNS, repeat, batches)
    assert write_rows(options, COLUMNS, repeat, [rows(range(10), partition="1")]) == Written(10, 10)
    assert write_rows(options, COLUMNS, replace(repeat, round=1), [rows([1], partition="0")]) == Written(1, 0)
    assert stored(client) == [[1], list(range(10))]


def test_a_partition_without_room_is_no_matter_to_a_repeat_that_has_no_rows_for_it(
    client: BlockingEventHubClient, options: WriteOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = client.numbered_sender

    def full(partition_id: str, **named: Any) -> BlockingNumberedSender:
        if partition_id == "1":
            raise ServiceError(RESOURCE_LIMIT, "partition 1 is full of producers")
        return opened(partition_id, **named)

    monkeypatch.setattr(client, "numbered_sender", full)
    writer = TaskWriter(options, COLUMNS, replace(WORK, may_repeat=True), client)
    writer.put(rows([1, 2], partition="0"))
    assert writer.finish() == Written(2, 0)
    with pytest.raises(NotExactlyOnce, match="some rows of task 0 were .* exactlyOnce to off"):
        writer.put(rows([3], partition="1"))
    writer.close()


def test_a_refusal_names_the_rows_and_the_partition(
    client: BlockingEventHubClient, options: WriteOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the service refuses although every row seemed right."""
    monkeypatch.setattr("hubweir.spark.sink.row_targets.check_limits", lambda *columns: None)
    work = replace(WORK, task=3)
    columns = sink_columns([("body", "string"), ("partition", "string"), ("partitionKey", "string")])
    batch = pa.record_batch(
        [pa.array(["a", "b"]), pa.array(["1", None]), pa.array([None, "k" * 40_000])],
        names=["body", "partition", "partitionKey"],
    )
    text = f"partition . of event hub '{options.event_hub}' takes no rows 2 to 2 of task 3: .* too large properties"
    for each in (ExactlyOnce.REQUIRE, ExactlyOnce.OFF):
        with pytest.raises(ServiceError, match=text):
            write_rows(replace(options, exactly_once=each), columns, work, [batch])


@pytest.mark.parametrize("exactly_once", [ExactlyOnce.REQUIRE, ExactlyOnce.OFF])
def test_a_hub_that_is_deleted_meanwhile_ends_the_task_at_once(
    namespace: RunningNamespace, options: WriteOptions, exactly_once: ExactlyOnce
) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield rows(range(100))
        namespace.delete_event_hub(options.event_hub)
        for start in range(100, 1_100, 100):
            yield rows(range(start, start + 100))

    found = f"partition . of event hub '{options.event_hub}' takes no .* of .*task.* could not be found"
    with pytest.raises(ServiceError, match=found) as refused:
        write_rows(replace(options, exactly_once=exactly_once), COLUMNS, WORK, batches())
    assert not refused.value.condition.retriable


def test_a_service_that_is_away_at_first_is_waited_for(
    client: BlockingEventHubClient, options: WriteOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    away, describe = [ServiceError(CONNECTION_FORCED, "away")], client.describe
    monkeypatch.setattr(client, "describe", lambda: describe() if not away else _raise(away.pop()))
    writer = TaskWriter(options, COLUMNS, WORK, client)
    writer.put(rows([1]))
    assert writer.finish() == Written(1, 0) and not away
    writer.close()


def _raise(error: ServiceError) -> HubInfo:
    raise error


def test_without_numbers_a_repeat_is_stored_again(client: BlockingEventHubClient, options: WriteOptions) -> None:
    plain = replace(options, exactly_once=ExactlyOnce.OFF)
    for _ in range(2):
        assert write_rows(plain, COLUMNS, WORK, [rows(range(10), partition="1")]) == Written(10, 0)
    assert stored(client) == [[], [*range(10), *range(10)]]


def test_publishers_are_written_at_least_once_and_that_is_said(
    client: BlockingEventHubClient, options: WriteOptions, caplog: pytest.LogCaptureFixture
) -> None:
    batches = [rows([1], publisher="p"), rows([2], publisher="p"), rows([3], publisher="q"), rows([4], partition="1")]
    with caplog.at_level(logging.WARNING):
        write_rows(options, COLUMNS, WORK, batches)
        write_rows(options, COLUMNS, WORK, batches)
    assert sorted(number for each in stored(client) for number in each) == [1, 1, 2, 2, 3, 3, 4]
    assert caplog.text.count("publishers' addresses take no numbered events") == 1
    with pytest.raises(NotExactlyOnce, match="a row has the publisher 'p'"):
        write_rows(replace(options, exactly_once=ExactlyOnce.REQUIRE), COLUMNS, WORK, batches)


def test_many_publishers_take_turns(
    client: BlockingEventHubClient, options: WriteOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_writer, "_PUBLISHERS_LIMIT", 2)
    writer = TaskWriter(options, COLUMNS, WORK, client)
    for number in range(12):
        writer.put(rows([number], publisher=f"p{number % 4}"))
    assert writer.finish() == Written(12, 0) and len(writer._publishers) == 2
    writer.close()
    assert sorted(number for each in stored(client) for number in each) == list(range(12))


def test_where_no_numbers_are_to_be_had_that_is_said_once_or_is_an_error(
    client: BlockingEventHubClient,
    options: WriteOptions,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(partition_id: str, **_: object) -> BlockingNumberedSender:
        raise ServiceError(RESOURCE_LIMIT, f"partition {partition_id} is full of producers")

    monkeypatch.setattr(client, "numbered_sender", full)
    required = TaskWriter(replace(options, exactly_once=ExactlyOnce.REQUIRE), COLUMNS, WORK, client)
    with pytest.raises(NotExactlyOnce, match="full of producers"):
        required.put(rows(range(4)))
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            writer = TaskWriter(options, COLUMNS, WORK, client)
            writer.put(rows(range(4)))
            writer.finish()
            writer.close()
    assert caplog.text.count("at least once, not exactly once: partition 0 is full") == 1
    assert stored(client) == [[0, 2, 0, 2], [1, 3, 1, 3]]


def test_a_repeat_does_not_go_on_without_numbers_where_some_were_given(
    client: BlockingEventHubClient, options: WriteOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert write_rows(options, COLUMNS, WORK, [rows([1, 2], partition="0")]) == Written(2, 0)
    real = client.numbered_sender

    def half_full(partition_id: str, **more: Any) -> BlockingNumberedSender:
        if partition_id == "1":
            raise ServiceError(RESOURCE_LIMIT, "partition 1 is full of producers")
        return real(partition_id, **more)

    monkeypatch.setattr(client, "numbered_sender", half_full)
    again = pa.concat_batches([rows([1, 2], partition="0"), rows([3], partition="1")])
    writer = TaskWriter(options, COLUMNS, replace(WORK, attempt=1), client)
    with pytest.raises(NotExactlyOnce, match="task 0 is repeated, .* partition 1 is full"):
        writer.put(again)
    writer.close()
    assert stored(client) == [[1, 2], []]


def test_a_busy_service_is_waited_for_and_nothing_is_stored_twice() -> None:
    with running_namespace(throughput_units=1) as namespace:
        namespace.create_event_hub("busy", partition_count=2)
        options = parse_write_options({"connectionString": namespace.connection_string(), "eventHub": "busy"})
        batches = [rows(range(start, start + 50)) for start in range(0, 2_200, 50)]
        assert write_rows(options, COLUMNS, WORK, batches) == Written(2_200, 0)
        with BlockingEventHubClient.from_connection_string(namespace.connection_string(), "busy") as client:
            assert stored(client) == [list(range(0, 2_200, 2)), list(range(1, 2_200, 2))]
