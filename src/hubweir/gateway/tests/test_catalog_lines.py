"""catalog_lines.py: what changed of an entity, for people, and no key of it."""

from __future__ import annotations

from dataclasses import replace as replace_fields

from msgspec.structs import replace

from hubweir.gateway.catalog_lines import differences
from hubweir.namespace.namespace_description import NamespaceDescription, UnitsDescription
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.rights import Rights
from hubweir.namespace.rule_description import AuthorizationRuleDescription
from hubweir.namespace.secret import Secret

QUEUE = QueueDescription(name="orders")
RULE = AuthorizationRuleDescription("r", Rights.SEND, Secret("a key"), Secret(""))


def test_each_setting_that_differs_is_told_with_both_values() -> None:
    delivery = replace_fields(QUEUE.delivery, max_delivery_count=3)
    assert differences(QUEUE, replace(QUEUE, delivery=delivery, changed_at_ms=7)) == "max_delivery_count 10 → 3"
    assert differences(QUEUE, replace(QUEUE, changed_at_ms=7)) == ""


def test_of_rules_and_of_user_metadata_only_the_name_is_told() -> None:
    changed = replace(QUEUE, rules=(RULE,), user_metadata="mine")
    assert differences(QUEUE, changed) == "user metadata, authorization rules"


def test_a_namespace_tells_of_its_units() -> None:
    before = NamespaceDescription("ns", rules=(RULE,))
    told = differences(before, replace_fields(before, units=UnitsDescription(held=2)))
    assert told == "held 0 → 2"
