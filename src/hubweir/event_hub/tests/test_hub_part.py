"""The parts of an event hub that an address names, in any case of its keywords."""

from __future__ import annotations

import pytest

from hubweir.event_hub.hub_part import (
    ConsumerPart,
    GroupPart,
    HubPart,
    PartitionPart,
    PublisherPart,
    WholeHub,
    parse_hub_part,
)


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ("", WholeHub()),
        ("Partitions/1", PartitionPart("1")),
        ("partitions/1", PartitionPart("1")),
        ("Partitions/-1", PartitionPart("-1")),
        ("Partitions/XYZ", PartitionPart("XYZ")),
        ("PUBLISHERS/dev a", PublisherPart("dev a")),
        ("ConsumerGroups/G1", GroupPart("G1")),
        ("consumergroups/$DEFAULT/partitions/0", ConsumerPart("$DEFAULT", "0")),
    ],
)
def test_a_part_is_told_by_its_keywords(part: str, expected: HubPart) -> None:
    assert parse_hub_part(tuple(part.split("/")) if part else ()) == expected


@pytest.mark.parametrize(
    "part",
    [
        "Partitions",
        "Publishers",
        "Publishers/a/b",
        "ConsumerGroups/g/Partitions",
        "ConsumerGroups/g/Partitions/0/1",
        "ConsumerGroups/g/Publishers/0",
        "Partitions/0/ConsumerGroups/g",
        "Subscriptions/s",
        "$cbs",
        "x",
        "\uff50artitions/0",
    ],
)
def test_what_is_no_part_of_a_hub_is_none(part: str) -> None:
    assert parse_hub_part(tuple(part.split("/"))) is None
