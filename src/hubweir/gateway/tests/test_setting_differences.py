"""setting_differences.py: what changed of an entity, for people: no key of it, and no name of the code."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from dataclasses import replace as replace_fields
from enum import Enum

import pytest
from msgspec.structs import replace

from hubweir.gateway.setting_differences import differences
from hubweir.messaging_store.log import Durability
from hubweir.namespace.capture_description import CaptureDescription, CaptureDestination
from hubweir.namespace.entity import Availability, EntityDescription
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.iso_duration import HOUR_MS, UNLIMITED, WrittenDuration, written_duration
from hubweir.namespace.namespace_description import NamespaceDescription, UnitsDescription
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.rights import Rights
from hubweir.namespace.rule_description import AuthorizationRuleDescription
from hubweir.namespace.secret import Secret
from hubweir.namespace.subscription_description import SubscriptionDescription
from hubweir.namespace.topic_description import TopicDescription

HUB = EventHubDescription(name="orders", partition_count=2)
QUEUE = QueueDescription(name="orders")
RULE = AuthorizationRuleDescription("r", Rights.SEND, Secret("a key"), Secret(""))
DESCRIPTIONS = (HUB, QUEUE, TopicDescription(name="t"), SubscriptionDescription(name="t/Subscriptions/s"))


def test_each_setting_that_differs_is_told_with_both_values() -> None:
    delivery = replace_fields(QUEUE.delivery, max_delivery_count=3, lock_duration=written_duration("PT30S"))
    told = differences(QUEUE, replace(QUEUE, delivery=delivery, changed_at_ms=7))
    assert told == "lock duration 1 minute → 30 seconds, max delivery count 10 → 3"
    assert differences(QUEUE, replace(QUEUE, changed_at_ms=7)) == ""


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"retention_ms": 2 * HOUR_MS}, "retention 1 day → 2 hours"),
        ({"durability": Durability.RELAXED}, "durability durable → relaxed"),
        ({"availability": Availability.SEND_DISABLED}, "status Active → SendDisabled"),
        ({"consumer_groups": ("$Default", "spark")}, "consumer groups $Default → $Default, spark"),
        ({"revoked_publishers": ("p1",)}, "revoked publishers none → p1"),
    ],
)
def test_values_are_told_as_people_write_them(changes: dict[str, object], told: str) -> None:
    assert differences(HUB, replace(HUB, **changes)) == told


def test_a_duration_without_end_is_unlimited() -> None:
    limited = replace(QUEUE, default_time_to_live=written_duration("PT1H"))
    assert differences(limited, replace(QUEUE, default_time_to_live=UNLIMITED)) == (
        "default time to live 1 hour → unlimited"
    )


def test_capture_that_was_never_set_is_told_against_its_defaults() -> None:
    capture = CaptureDescription(enabled=True, interval_s=60, destination=CaptureDestination.AZURE_BLOCK_BLOB)
    assert differences(HUB, replace(HUB, capture=capture)) == (
        "capture: switched on no → yes, interval 5 minutes → 1 minute, "
        "destination EventHubArchive.LocalFolder → EventHubArchive.AzureBlockBlob"
    )
    assert differences(HUB, replace(HUB, capture=CaptureDescription())) == "capture: set"
    assert differences(replace(HUB, capture=CaptureDescription(enabled=True)), HUB) == "capture: switched on yes → no"
    larger = replace_fields(capture, size_limit_bytes=20_000_000)
    assert differences(replace(HUB, capture=capture), replace(HUB, capture=larger)) == (
        "capture: size limit 314572800 bytes → 20000000 bytes"
    )


def test_of_rules_and_of_user_metadata_only_the_name_is_told() -> None:
    changed = replace(QUEUE, rules=(RULE,), user_metadata="mine")
    assert differences(QUEUE, changed) == "user metadata, authorization rules"
    other = AuthorizationRuleDescription("r", Rights.SEND, Secret("another key"), Secret(""))
    assert differences(changed, replace(changed, rules=(other,))) == "authorization rules"


def test_a_namespace_tells_of_its_units() -> None:
    before = NamespaceDescription("ns", rules=(RULE,))
    told = differences(before, replace_fields(before, units=UnitsDescription(held=2, maximum=4)))
    assert told == "throughput units 0 → 2, auto-inflate up to 0 → 4"


def _other(value: object) -> object:
    """Another value of a setting."""
    match value:
        case bool():
            return not value
        case Enum():
            return next(each for each in type(value) if each is not value)
        case WrittenDuration():
            return WrittenDuration(value.ms - 1, "PT1S")
        case int():
            return value + 1
        case str():
            return value + "x"
        case tuple():
            return (*value, "x")
    return CaptureDescription(enabled=True)


def _changed_in_turn(description: object) -> list[object]:
    """The description with each of its settings another, one at a time; those within groups too."""
    if isinstance(description, EntityDescription):
        names, change = description.__struct_fields__, replace
    else:
        names, change = tuple(each.name for each in fields(description)), replace_fields  # type: ignore[arg-type]
    found = []
    for name in names:
        if name == "first_rule":  # nobody changes it
            continue
        value = getattr(description, name)
        is_group = is_dataclass(value) and not isinstance(value, WrittenDuration)
        inside = _changed_in_turn(value) if is_group else [_other(value)]
        found += [change(description, **{name: each}) for each in inside]  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize(
    "description", [*DESCRIPTIONS, NamespaceDescription("ns")], ids=lambda each: type(each).__name__
)
def test_no_setting_is_told_by_its_name_in_the_code(description: object) -> None:
    changed = _changed_in_turn(description)
    told = [differences(description, each) for each in changed]
    assert len(changed) > 8
    assert not [text for text in told if re.search(r"[a-z]_[a-z]|\w\(|<", text)]
    # A name, and when it was made and changed, are no settings; of everything else something is told.
    own = {"name", "created_at_ms", "changed_at_ms"}
    names = getattr(description, "__struct_fields__", None) or [each.name for each in fields(description)]  # type: ignore[arg-type]
    assert told.count("") == len(own & set(names))
