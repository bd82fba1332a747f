"""What an operator may set, at its limits."""

import pytest

from hubweir.errors import ARGUMENT_OUT_OF_RANGE, ServiceError
from hubweir.namespace.change_context import ChangeContext
from hubweir.namespace.event_hub_description import (
    GROUPS_PER_HUB_LIMIT,
    PARTITIONS_LIMIT,
    RAISED_PARTITIONS_LIMIT,
    RETENTION_DEFAULT_MS,
    RETENTION_LIMIT_MS,
    RETENTION_MIN_MS,
    EventHubDescription,
    check_groups,
)
from hubweir.namespace.tiers import DEVELOPMENT, MESSAGE_SIZE_LIMIT_BYTES

HUB = EventHubDescription("h", 1)


def check(hub: EventHubDescription, partitions_limit: int = PARTITIONS_LIMIT) -> EventHubDescription:
    return hub.checked((), ChangeContext(DEVELOPMENT, "ns.local", partitions_limit, "", 0))


@pytest.mark.parametrize(
    "hub",
    [
        EventHubDescription("h", 1),
        EventHubDescription("h", 32),
        EventHubDescription("h", 4, retention_ms=RETENTION_MIN_MS),
        EventHubDescription("h", 4, retention_ms=RETENTION_LIMIT_MS),
    ],
)
def test_values_at_the_limits_are_legal(hub: EventHubDescription) -> None:
    assert check(hub) == hub


@pytest.mark.parametrize(
    ("hub", "needle"),
    [
        (EventHubDescription("h", 0), "0 partitions are asked for; 1 to 32"),
        (EventHubDescription("h", 33), "33 partitions are asked for; 1 to 32"),
        (EventHubDescription("h", -1), "-1 partitions are asked for"),
        (
            EventHubDescription("h", 4, retention_ms=RETENTION_MIN_MS - 1),
            "for 3599999 ms; 1 hour to 90 days",
        ),
        (EventHubDescription("h", 4, retention_ms=1_800_000), "events would be kept for 30 minutes; 1 hour to"),
        (EventHubDescription("h", 4, retention_ms=RETENTION_LIMIT_MS + 1), "1 hour to 90 days are allowed"),
        (EventHubDescription("h/", 4), "event hub"),
        (EventHubDescription("h", 4, consumer_groups=("a b",)), "consumer group"),
    ],
)
def test_values_over_the_limits_are_refused_with_hub_value_and_range(hub: EventHubDescription, needle: str) -> None:
    with pytest.raises(ServiceError) as refused:
        check(hub)
    assert refused.value.condition is ARGUMENT_OUT_OF_RANGE
    assert needle in refused.value.text


def test_more_partitions_are_legal_where_they_are_allowed_and_the_refusal_says_how() -> None:
    many = EventHubDescription("h", RAISED_PARTITIONS_LIMIT)
    assert check(many, RAISED_PARTITIONS_LIMIT) == many
    for count, allowed, way_out in ((1_024, 32, True), (1_025, 32, False), (1_025, 1_024, False)):
        with pytest.raises(
            ServiceError, match=f"{count} partitions are asked for; 1 to {allowed} are allowed"
        ) as refused:
            check(EventHubDescription("h", count), allowed)
        assert ("up to 1024 when the service runs with --allow-more-partitions" in refused.value.text) is way_out


def test_the_defaults_are_those_of_the_service() -> None:
    hub = EventHubDescription("h", 2)
    assert RETENTION_DEFAULT_MS == 86_400_000
    assert hub.retention_ms == RETENTION_DEFAULT_MS
    assert hub.consumer_groups == ("$Default",)
    assert hub.partition_ids == ("0", "1")
    assert MESSAGE_SIZE_LIMIT_BYTES == 1_048_576


def test_default_is_always_a_group_and_each_group_is_there_once() -> None:
    assert check_groups(HUB, ()) == ("$Default",)
    assert check_groups(HUB, ("B", "$DEFAULT", "a", "b")) == ("$Default", "B", "a")
    assert len(check_groups(HUB, tuple(f"g{n}" for n in range(GROUPS_PER_HUB_LIMIT - 1)))) == GROUPS_PER_HUB_LIMIT
    with pytest.raises(ServiceError):
        check_groups(HUB, tuple(f"g{n}" for n in range(GROUPS_PER_HUB_LIMIT)))


def test_groups_are_found_in_any_case_and_partitions_by_their_exact_id() -> None:
    hub = EventHubDescription("h", 11, consumer_groups=("$Default", "Reports"))
    assert hub.find_group("$DEFAULT") == "$Default"
    assert hub.find_group("reports") == "Reports"
    assert hub.find_group("other") is None
    assert [
        text
        for text in ("0", "10", "11", "-1", "01", "+1", " 1", "1_0", "٣", "", "-", "XYZ")
        if hub.has_partition(text)
    ] == [
        "0",
        "10",
    ]
