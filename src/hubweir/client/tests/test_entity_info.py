"""Answers of `$management` as values: those of hubweir, and those of a service that says less."""

from __future__ import annotations

from typing import Any

import pytest

from hubweir.amqp.types.values import Array, Long, Timestamp
from hubweir.client.entity_info import GroupInfo, HubInfo, NamespaceInfo, PartitionState

# As the documentation of the service has it: nothing but these.
FOREIGN_HUB: dict[str, Any] = {"name": "orders", "created_at": Timestamp(7), "partition_ids": ["0", "1"]}


def test_a_hub_of_a_service_that_says_less_has_nothing_made_up() -> None:
    assert HubInfo.of(FOREIGN_HUB) == HubInfo("orders", 7, ("0", "1"), (), None, None)


def test_partition_ids_are_text_whether_they_come_as_a_list_or_as_an_array() -> None:
    for ids in (["0", "1"], Array(0xA1, ("0", "1"))):
        assert HubInfo.of({**FOREIGN_HUB, "partition_ids": ids}).partition_ids == ("0", "1")


def test_everything_that_hubweir_says_of_a_hub_is_kept() -> None:
    capture = {"enabled": True, "interval_s": 60}
    said = {
        **FOREIGN_HUB, "consumer_groups": ["$Default", "one"], "retention_ms": Long(3_600_000), "durability": "relaxed",
        "revoked_publishers": ["device-7"], "status": "Disabled", "user_metadata": None, "updated_at": Timestamp(9),
        "capture": capture,
    }  # fmt: skip
    assert HubInfo.of(said) == HubInfo(
        "orders", 7, ("0", "1"), ("$Default", "one"), 3_600_000, "relaxed", ("device-7",), "Disabled", "", 9, capture
    )


def test_a_partition_a_group_and_a_namespace_are_read_by_the_names_on_the_wire() -> None:
    partition = {
        "partition": "3", "begin_sequence_number": 5, "last_enqueued_sequence_number": 9, "last_enqueued_offset": "90",
        "last_enqueued_time_utc": Timestamp(11), "is_partition_empty": False,
    }  # fmt: skip
    assert PartitionState.of(partition) == PartitionState("3", 5, 9, "90", 11, False)
    group = {"name": "one", "eventhub": "orders", "created_at": 1, "updated_at": 2, "user_metadata": "mine"}
    assert GroupInfo.of(group) == GroupInfo("one", "orders", 1, 2, "mine")
    namespace = {
        "name": "ns", "created_at": 1, "partition_count": 4, "throughput_units": 2, "maximum_throughput_units": 0,
        "warning": "", "profile": "basic", "host_names": ["a", "b"],
    }  # fmt: skip
    assert NamespaceInfo.of(namespace) == NamespaceInfo("ns", 1, 4, 2, 0, "", "basic", ("a", "b"))
    for lacking in (partition, group, namespace):
        of = {"partition": PartitionState.of, "eventhub": GroupInfo.of, "profile": NamespaceInfo.of}
        (read,) = [read for mark, read in of.items() if mark in lacking]
        with pytest.raises(KeyError):
            read({key: value for key, value in lacking.items() if key != "name" and key != "is_partition_empty"})
