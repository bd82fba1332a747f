"""What is asked of a keeper in another process travels as bytes, and does there what it does here."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from hubweir.errors import DecodeError
from hubweir.namespace import change_forms
from hubweir.namespace.capture_description import CaptureDescription
from hubweir.namespace.change_context import ChangeContext
from hubweir.namespace.change_forms import (
    decode_change,
    decode_description,
    decode_subscription_rule,
    encode_change,
    encode_description,
    encode_subscription_rule,
    kind_of,
)
from hubweir.namespace.entity import EntityDescription, EntityKind
from hubweir.namespace.event_hub_changes import (
    add_group,
    change_group,
    remove_group,
    restore_publisher,
    revoke_publisher,
    set_settings,
)
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.iso_duration import written_duration
from hubweir.namespace.kinds import Description
from hubweir.namespace.messaging_changes import replace_settings
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.rights import Rights
from hubweir.namespace.rule_changes import RuleKey, RuleLevel
from hubweir.namespace.rule_description import AuthorizationRuleDescription
from hubweir.namespace.secret import Secret
from hubweir.namespace.subscription_description import SubscriptionDescription
from hubweir.namespace.subscription_rule import SqlFilterDescription, SubscriptionRuleDescription
from hubweir.namespace.tiers import DEVELOPMENT
from hubweir.namespace.topic_description import TopicDescription

CONTEXT = ChangeContext(DEVELOPMENT, "ns.local", 32, "", now_ms=5_000)
RULE = AuthorizationRuleDescription("sender", Rights.SEND | Rights.LISTEN, Secret("first"), Secret("second"))
HUB = EventHubDescription(
    "hub", 4, rules=(RULE,), consumer_groups=("$Default", "mine"), revoked_publishers=("eve",), user_metadata="text"
)
QUEUE = QueueDescription("orders", rules=(RULE,), auto_delete_on_idle=written_duration("PT5M"))
TOPIC, SUBSCRIPTION = TopicDescription("news"), SubscriptionDescription("news/Subscriptions/tea")
OTHER_HUB = EventHubDescription("hub", 4, retention_ms=7_200_000, capture=CaptureDescription(interval_s=60))

CHANGES: list[tuple[Any, EntityDescription]] = [
    (partial(set_settings, wanted=OTHER_HUB), HUB),
    (partial(set_settings, wanted=OTHER_HUB, seen=HUB), HUB),
    (partial(set_settings, wanted=OTHER_HUB, seen=EventHubDescription("hub", 4, retention_ms=7_200_000)), HUB),
    (partial(set_settings, wanted=OTHER_HUB, rules=()), HUB),
    (partial(set_settings, wanted=OTHER_HUB, rules=(RULE,)), HUB),
    (partial(add_group, name="other"), HUB),
    (partial(add_group, name="other", user_metadata="of mine"), HUB),
    (partial(change_group, name="mine", user_metadata="changed"), HUB),
    (partial(change_group, name="mine", user_metadata=None), HUB),
    (partial(remove_group, name="mine"), HUB),
    (partial(revoke_publisher, publisher="mallory"), HUB),
    (partial(restore_publisher, publisher="eve"), HUB),
    (partial(replace_settings, wanted=QueueDescription("orders", user_metadata="x")), QUEUE),
    (partial(replace_settings, wanted=QueueDescription("orders"), rules=(RULE,)), QUEUE),
    (partial(replace_settings, wanted=QueueDescription("orders", user_metadata="x"), seen=QueueDescription("orders")),
     QUEUE),
    (partial(replace_settings, wanted=TopicDescription("news", user_metadata="x")), TOPIC),
    (partial(replace_settings, wanted=SubscriptionDescription(SUBSCRIPTION.name, user_metadata="x")), SUBSCRIPTION),
]  # fmt: skip
LEVEL_CHANGES = [
    partial(RuleLevel.create, rule=AuthorizationRuleDescription("more", Rights.ALL, Secret("k"), Secret(""))),
    partial(RuleLevel.change, name="sender", rights=Rights.ALL),
    partial(RuleLevel.renew, name="sender", key=RuleKey.SECONDARY, secret=Secret("third")),
    partial(RuleLevel.renew, name="sender", key=RuleKey.PRIMARY, secret=Secret("fourth")),
    partial(RuleLevel.remove, name="sender"),
]


@pytest.mark.parametrize(
    ("change", "known"), CHANGES, ids=lambda value: getattr(value, "func", value).__class__.__name__
)
def test_a_change_of_an_entity_does_the_same_behind_its_bytes(
    change: Callable[..., EntityDescription], known: EntityDescription
) -> None:
    made = decode_change(encode_change(change))(known, CONTEXT)
    expected = change(known, CONTEXT)
    assert encode_description(made) == encode_description(expected) != encode_description(known)


@pytest.mark.parametrize("change", LEVEL_CHANGES, ids=lambda change: change.func.__name__)
@pytest.mark.parametrize("of", [HUB, QUEUE], ids=["hub", "queue"])
def test_a_change_of_authorization_rules_does_the_same_behind_its_bytes(change: Any, of: EntityDescription) -> None:
    level = RuleLevel(of, "ns.local")
    made, expected = decode_change(encode_change(change))(level), change(level)

    def told(rules: Any) -> list[tuple[object, ...]]:
        return [(rule.name, rule.rights, rule.primary.reveal(), rule.secondary.reveal()) for rule in rules]

    assert told(made) == told(expected) != told(level.rules)


def test_every_change_of_the_table_is_tried_above() -> None:
    tried = {change.func for change, _ in CHANGES} | {change.func for change in LEVEL_CHANGES}
    assert tried == set(change_forms._CHANGES)
    assert len(change_forms._FUNCTIONS) == len(change_forms._CHANGES)


@pytest.mark.parametrize(
    "change",
    [lambda known, context: known, partial(add_group, "hub"), partial(print, name="x")],
    ids=["a lambda", "without names", "another function"],
)
def test_a_change_without_a_form_is_a_mistake_of_ours(change: Any) -> None:
    with pytest.raises(AssertionError, match="no form"):
        encode_change(change)


@pytest.mark.parametrize("description", [HUB, QUEUE, TOPIC, SUBSCRIPTION, OTHER_HUB], ids=lambda each: each.name)
def test_a_description_of_every_kind_comes_back_as_it_went(description: Description) -> None:
    back = decode_description(encode_description(description))
    assert type(back) is type(description)
    assert encode_description(back) == encode_description(description)


def test_a_rule_of_a_subscription_comes_back_as_it_went() -> None:
    rule = SubscriptionRuleDescription("morning", SqlFilterDescription("hour < 12"), created_at_ms=7)
    assert decode_subscription_rule(encode_subscription_rule(rule)) == rule


def test_every_kind_is_found_by_its_value_and_no_other() -> None:
    assert {kind_of(kind.value).kind for kind in EntityKind} == set(EntityKind)
    with pytest.raises(DecodeError, match="no kind of entities 'topics'"):
        kind_of("topics")


@pytest.mark.parametrize("decode", [decode_change, decode_description, decode_subscription_rule])
@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x81\xa4name\x05"], ids=["nothing", "no value", "of another type"])
def test_bytes_that_are_none_of_it_are_refused(decode: Callable[[bytes], object], data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode(data)
