"""The maps of $management, key by key: what goes out in which type, what comes in as what, and what is refused."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from hubweir.amqp.messaging.message import DataBody, Message, ValueBody
from hubweir.amqp.types.format_codes import AmqpType
from hubweir.amqp.types.values import Array, Int, Long, Timestamp
from hubweir.broker.commands.partition import PartitionInfo
from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.gateway.amqp.management_forms import (
    PARTITION_COUNT_DEFAULT,
    YEAR_ONE_MS,
    hub_map,
    hub_summary,
    namespace_map,
    new_hub,
    partition_map,
    usage_map,
    wanted_changes,
    wanted_units,
)
from hubweir.messaging_store.log import Durability
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.namespace_description import NamespaceDescription
from hubweir.throughput_unit.usage import HOUR_MS, HourUsage

HUB = EventHubDescription("Hub", 3, created_at_ms=1_700_000_000_000)


def asking(body: object) -> Message:
    return Message(body=ValueBody(body))


def refused(body: object) -> str:
    """The text with which both forms of a hub refuse a body."""
    texts = set()
    for read in (lambda: new_hub("Hub", asking(body)), lambda: wanted_changes(HUB, asking(body))):
        with pytest.raises(ServiceError) as refusal:
            read()
        assert refusal.value.condition is ARGUMENT_ERROR
        texts.add(refusal.value.text)
    assert len(texts) == 1
    return texts.pop()


def test_a_hub_has_exactly_the_keys_and_types_that_clients_read() -> None:
    found = hub_map(HUB)
    assert list(found) == [
        "name", "type", "created_at", "partition_count", "partition_ids", "georeplication_factor",
    ]  # fmt: skip
    assert found["partition_ids"] == Array(AmqpType.STRING, ("0", "1", "2"))
    assert [type(found[key]) for key in ("created_at", "partition_count", "georeplication_factor")] == [
        Timestamp, Int, Int,
    ]  # fmt: skip
    assert hub_summary(HUB).items() > {key: found[key] for key in ("name", "type", "created_at")}.items()


def test_an_empty_partition_starts_in_the_year_one_and_a_filled_one_has_its_time() -> None:
    empty = PartitionInfo("log", -1, -1, -1, None, True, 0)
    assert partition_map("Hub", "2", empty)["last_enqueued_time_utc"] == YEAR_ONE_MS
    filled = partition_map("Hub", "2", PartitionInfo("log", 3, 9, 4_096, 1_700_000_000_000, False, 512))
    assert filled == {
        "name": "Hub",
        "type": "com.microsoft:partition",
        "partition": "2",
        "begin_sequence_number": 3,
        "last_enqueued_sequence_number": 9,
        "last_enqueued_offset": "4096",
        "last_enqueued_time_utc": 1_700_000_000_000,
        "is_partition_empty": False,
    }
    types = {key: type(value) for key, value in filled.items()}
    assert types["begin_sequence_number"] is types["last_enqueued_sequence_number"] is Long
    assert types["last_enqueued_offset"] is str and types["last_enqueued_time_utc"] is Timestamp


def test_a_warning_that_is_not_there_is_an_empty_string() -> None:
    for warning, told in ((None, ""), ("too many", "too many")):
        found = namespace_map(NamespaceDescription("contoso"), 7, warning, profile="basic", host_names=["a", "b"])
        assert found["warning"] == told
        assert (found["profile"], found["host_names"]) == ("basic", ["a", "b"])


def test_usage_has_a_name_for_every_column_and_the_hours_asked_for() -> None:
    width = len(HourUsage.__dataclass_fields__)
    hours = [tuple([hour * HOUR_MS] + [hour] * (width - 1)) for hour in range(5)]
    found = usage_map(hours, 3 * HOUR_MS)
    assert isinstance(found["hours"], list) and isinstance(found["columns"], list)
    assert [row[0] for row in found["hours"]] == [3 * HOUR_MS, 4 * HOUR_MS]
    assert {len(row) for row in found["hours"]} == {len(found["columns"])} == {width}
    assert {type(count) for row in found["hours"] for count in row} == {Long}


@pytest.mark.parametrize("message", [Message(), asking(None), asking({})], ids=["no body", "null", "an empty map"])
def test_what_is_not_said_has_its_default_or_stays(message: Message) -> None:
    assert new_hub("Hub", message) == EventHubDescription("Hub", PARTITION_COUNT_DEFAULT)
    assert wanted_changes(HUB, message) == HUB
    assert wanted_units(message) == (None, None)


def test_what_is_said_is_taken() -> None:
    body = {"partition_count": Int(3), "retention_ms": 7_200_000, "durability": "relaxed", "user_metadata": "ours"}
    made = new_hub("Hub", asking({**body, "consumer_groups": ["a", "b"]}))
    assert (made.partition_count, made.retention_ms, made.durability) == (3, 7_200_000, Durability.RELAXED)
    assert made.user_metadata == "ours" and {"a", "b"} <= set(made.consumer_groups)
    changed = wanted_changes(HUB, asking(body))
    assert changed == replace(HUB, retention_ms=7_200_000, durability=Durability.RELAXED, user_metadata="ours")
    assert wanted_units(asking({"throughput_units": Int(2), "maximum_throughput_units": 5})) == (2, 5)


@pytest.mark.parametrize(
    "body",
    [
        {"retention_ms": True}, {"retention_ms": "1"}, {"retention_ms": 1.0}, {"durability": "eternal"},
        {"durability": 1}, {"status": 3}, {"user_metadata": 3}, {"consumer_groups": "one"}, {"consumer_groups": [1]},
        {"unknown": 1}, {7: 1}, "no map", ["no map"], 7,
    ],
    ids=str,
)  # fmt: skip
def test_what_does_not_belong_there_is_refused_by_its_name(body: object) -> None:
    text = refused(body)
    if isinstance(body, dict):
        assert str(next(iter(body))) in text


@pytest.mark.parametrize("count", ["3", 3.0, True, None], ids=str)
def test_a_partition_count_is_an_integer(count: object) -> None:
    with pytest.raises(ServiceError, match="'partition_count' must be an integer"):
        new_hub("Hub", asking({"partition_count": count}))


@pytest.mark.parametrize("body", [{"partition_count": Int(4)}, {"consumer_groups": ["new"]}], ids=str)
def test_an_update_changes_neither_the_partitions_nor_the_groups(body: dict[str, object]) -> None:
    with pytest.raises(ServiceError, match="never changes|one by one"):
        wanted_changes(HUB, asking(body))


@pytest.mark.parametrize("body", [{"throughput_units": True}, {"maximum_throughput_units": "3"}, {"units": 3}], ids=str)
def test_units_are_integers_under_their_own_names(body: dict[str, object]) -> None:
    with pytest.raises(ServiceError) as refusal:
        wanted_units(asking(body))
    assert next(iter(body)) in refusal.value.text


def test_a_body_of_bytes_is_no_map() -> None:
    with pytest.raises(ServiceError, match="one AMQP map"):
        new_hub("Hub", Message(body=DataBody((b"x",))))
