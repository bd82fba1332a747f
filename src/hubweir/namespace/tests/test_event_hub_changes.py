"""Changes of an event hub: another description, or a refusal that says why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from hubweir.errors import (
    ARGUMENT_ERROR,
    ARGUMENT_OUT_OF_RANGE,
    ENTITY_EXISTS,
    NOT_ALLOWED,
    NOT_FOUND,
    RESOURCE_LIMIT,
    Condition,
    ServiceError,
)
from hubweir.messaging_store.log import Durability
from hubweir.namespace.capture_description import CaptureDescription, CaptureDestination
from hubweir.namespace.change_context import ChangeContext
from hubweir.namespace.entity import USER_METADATA_LIMIT, Availability
from hubweir.namespace.event_hub_changes import (
    REVOKED_PUBLISHERS_LIMIT,
    add_group,
    change_group,
    remove_group,
    restore_publisher,
    revoke_publisher,
    set_settings,
)
from hubweir.namespace.event_hub_description import EventHubDescription, GroupDetails
from hubweir.namespace.names import DEFAULT_GROUP
from hubweir.namespace.rights import Rights
from hubweir.namespace.rule_description import AuthorizationRuleDescription
from hubweir.namespace.secret import Secret
from hubweir.namespace.tiers import DAY_MS, DEVELOPMENT, HOUR_MS, PROFILES

NOW = 1_000
HUB = EventHubDescription("orders", 2, created_at_ms=7)
CONTEXT = ChangeContext(DEVELOPMENT, "ns.local", 32, "films", NOW)
BASIC = ChangeContext(PROFILES["basic"], "ns.local", 32, "", NOW)
RULE = AuthorizationRuleDescription("r", Rights.SEND, Secret("key"), Secret(""))


def refusal(change: Callable[[], object]) -> Condition:
    with pytest.raises(ServiceError) as refused:
        change()
    return refused.value.condition


def test_settings_change_and_nothing_else_does() -> None:
    known = replace(HUB, consumer_groups=("$Default", "g"), revoked_publishers=("p",), rules=(RULE,))
    capture = CaptureDescription(enabled=True)
    wanted = EventHubDescription(
        "other", 2, 2 * DAY_MS, Durability.RELAXED, capture=capture,
        availability=Availability.DISABLED, user_metadata="mine", created_at_ms=1,
    )  # fmt: skip
    changed = set_settings(known, CONTEXT, wanted)
    assert changed == replace(
        known,
        retention_ms=2 * DAY_MS,
        durability=Durability.RELAXED,
        capture=capture,
        availability=Availability.DISABLED,
        user_metadata="mine",
        changed_at_ms=NOW,
    )
    assert set_settings(changed, CONTEXT, replace(wanted, capture=None)).capture == capture, "it was not named"
    assert set_settings(changed, CONTEXT, wanted, rules=()).rules == ()


def test_what_nobody_asked_for_stays_as_somebody_else_set_it_meanwhile() -> None:
    seen = replace(HUB, capture=CaptureDescription(enabled=True), user_metadata="old")
    by_now = replace(
        seen, retention_ms=2 * DAY_MS, durability=Durability.RELAXED, capture=None, user_metadata="theirs",
        availability=Availability.SEND_DISABLED,
    )  # fmt: skip
    assert set_settings(by_now, CONTEXT, seen, seen=seen) == replace(by_now, changed_at_ms=NOW)
    ours: list[dict[str, Any]] = [
        {"retention_ms": 3 * DAY_MS}, {"user_metadata": ""}, {"availability": Availability.DISABLED},
        {"capture": CaptureDescription(interval_s=60)}, {"user_metadata": "ours", "retention_ms": HOUR_MS},
    ]  # fmt: skip
    for wanted in ours:
        changed = set_settings(by_now, CONTEXT, replace(seen, **wanted), seen=seen)
        assert changed == replace(by_now, **wanted, changed_at_ms=NOW)
    relaxed = replace(seen, durability=Durability.RELAXED)
    assert set_settings(seen, CONTEXT, relaxed, seen=seen) == replace(relaxed, changed_at_ms=NOW)


def test_partitions_are_refused_only_where_they_were_asked_for() -> None:
    again = replace(HUB, partition_count=5)  # it was deleted, and made anew, since somebody looked
    assert set_settings(again, CONTEXT, replace(HUB, user_metadata="x"), seen=HUB).partition_count == 5
    assert refusal(lambda: set_settings(again, CONTEXT, replace(HUB, partition_count=3), seen=HUB)) is ARGUMENT_ERROR


@pytest.mark.parametrize(
    ("context", "condition", "settings"),
    [
        (CONTEXT, ARGUMENT_ERROR, {"partition_count": 3}),
        (CONTEXT, ARGUMENT_OUT_OF_RANGE, {"retention_ms": HOUR_MS - 1}),
        (CONTEXT, ARGUMENT_OUT_OF_RANGE, {"user_metadata": "x" * (USER_METADATA_LIMIT + 1)}),
        (CONTEXT, ARGUMENT_OUT_OF_RANGE, {"capture": CaptureDescription(interval_s=1)}),
        (
            CONTEXT,
            ARGUMENT_ERROR,
            {
                "capture": CaptureDescription(
                    True, 60, 10_485_760, CaptureDestination.AZURE_BLOCK_BLOB, "ccc", "elsewhere"
                )
            },
        ),
        (BASIC, RESOURCE_LIMIT, {"retention_ms": 2 * DAY_MS}),
        (BASIC, RESOURCE_LIMIT, {"capture": CaptureDescription(enabled=True)}),
    ],
)
def test_settings_that_cannot_be_are_refused(
    context: ChangeContext, condition: Condition, settings: dict[str, Any]
) -> None:
    assert refusal(lambda: set_settings(HUB, context, replace(HUB, **settings))) is condition


def test_rules_are_set_whole_when_they_are_legal() -> None:
    assert set_settings(HUB, CONTEXT, HUB, rules=(RULE,)).rules == (RULE,)
    twice = (RULE, AuthorizationRuleDescription("R", Rights.SEND, Secret("key"), Secret("")))
    assert refusal(lambda: set_settings(HUB, CONTEXT, HUB, rules=twice)) is ARGUMENT_OUT_OF_RANGE


def test_groups_are_found_in_any_case_and_the_default_one_stays() -> None:
    hub = add_group(HUB, CONTEXT, "Billing", "mine")
    assert (hub.consumer_groups, hub.details_of("Billing")) == (
        (DEFAULT_GROUP, "Billing"),
        GroupDetails("Billing", NOW, 0, "mine"),
    )
    assert refusal(lambda: add_group(hub, CONTEXT, "BILLING")) is ENTITY_EXISTS
    assert refusal(lambda: add_group(hub, CONTEXT, "$DEFAULT")) is ENTITY_EXISTS
    assert refusal(lambda: add_group(hub, CONTEXT, "a/b")) is ARGUMENT_OUT_OF_RANGE
    assert refusal(lambda: add_group(hub, CONTEXT, "g", "x" * (USER_METADATA_LIMIT + 1))) is ARGUMENT_OUT_OF_RANGE
    assert refusal(lambda: remove_group(hub, CONTEXT, "$default")) is NOT_ALLOWED
    assert refusal(lambda: remove_group(hub, CONTEXT, "none")) is NOT_FOUND
    assert refusal(lambda: change_group(hub, CONTEXT, "none", "x")) is NOT_FOUND
    assert remove_group(hub, CONTEXT, "bILLING") == HUB


def test_a_group_has_another_text_and_its_details_go_with_it_and_not_with_another() -> None:
    hub = add_group(add_group(HUB, CONTEXT, "a", "one"), CONTEXT, "b", "two")
    later = ChangeContext(DEVELOPMENT, "ns.local", 32, "", NOW + 5)
    hub = change_group(hub, later, "A", "other")
    assert hub.details_of("a") == GroupDetails("a", NOW, NOW + 5, "other")
    assert change_group(hub, later, "b", None).details_of("b") == GroupDetails("b", NOW, NOW + 5, "two")
    hub = remove_group(hub, CONTEXT, "a")
    assert hub.group_details == (GroupDetails("b", NOW, 0, "two"),)
    named = change_group(HUB, later, "$default", "text").details_of("$Default")
    assert named == GroupDetails("$Default", 7, NOW + 5, "text"), "it is as old as the hub"
    over = "x" * (USER_METADATA_LIMIT + 1)
    assert refusal(lambda: change_group(hub, CONTEXT, "b", over)) is ARGUMENT_OUT_OF_RANGE


def test_the_quota_of_groups_holds() -> None:
    assert refusal(lambda: add_group(HUB, BASIC, "more")) is RESOURCE_LIMIT


def test_a_publisher_is_revoked_once_in_any_case_and_up_to_the_limit() -> None:
    hub = revoke_publisher(HUB, CONTEXT, "Device")
    assert revoke_publisher(hub, CONTEXT, "DEVICE") == hub and hub.revoked_publishers == ("Device",)
    assert refusal(lambda: revoke_publisher(hub, CONTEXT, "a/b")) is ARGUMENT_OUT_OF_RANGE
    full = replace(HUB, revoked_publishers=tuple(f"d{number}" for number in range(REVOKED_PUBLISHERS_LIMIT)))
    assert refusal(lambda: revoke_publisher(full, CONTEXT, "one-more")) is RESOURCE_LIMIT
    assert revoke_publisher(full, CONTEXT, "D0") == full
    left = restore_publisher(full, CONTEXT, "D1")
    assert "d1" not in left.revoked_publishers and len(left.revoked_publishers) == REVOKED_PUBLISHERS_LIMIT - 1
    assert refusal(lambda: restore_publisher(left, CONTEXT, "d1")) is NOT_FOUND
