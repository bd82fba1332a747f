"""Changes of single rules on both levels, on a real log. (`process`: conftest.py)"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hubweir.errors import (
    ARGUMENT_OUT_OF_RANGE,
    ENTITY_EXISTS,
    NOT_FOUND,
    RESOURCE_LIMIT,
    Condition,
    ServiceError,
)
from hubweir.namespace.descriptions import RULES_PER_LEVEL_MAX, AuthorizationRuleDescription
from hubweir.namespace.rights import Rights
from hubweir.namespace.rule_changes import RuleKey
from hubweir.namespace.secret import Secret

LEVELS = [None, "Hub"]


@pytest.fixture
def namespace(process: Any) -> Any:
    process.create("Hub")
    return process.namespace


def rule(name: str, rights: Rights = Rights.SEND) -> AuthorizationRuleDescription:
    return AuthorizationRuleDescription(name, rights, Secret("first"), Secret("second"))


def seen(rule: AuthorizationRuleDescription) -> tuple[str, Rights, str, str]:
    return rule.name, rule.rights, rule.primary.reveal(), rule.secondary.reveal()


def refused(process: Any, change: Callable[[Callable[[object], None]], None], condition: Condition) -> None:
    version = process.namespace.version
    with pytest.raises(ServiceError) as refusal:
        process.ask(change)
    assert refusal.value.condition is condition
    assert process.namespace.version == version


@pytest.mark.parametrize("hub", LEVELS)
def test_a_rule_is_created_changed_and_renewed_and_keeps_its_name(process: Any, namespace: Any, hub: str) -> None:
    made = process.ask(lambda done: namespace.create_rule(hub, rule("Policy"), done))
    assert seen(made) == ("Policy", Rights.SEND, "first", "second")
    process.ask(lambda done: namespace.change_rule(hub, "pOLICY", Rights.LISTEN, done))
    process.ask(lambda done: namespace.renew_key(hub, "policy", RuleKey.PRIMARY, Secret("third"), done))
    assert seen(namespace.rule(hub, "POLICY")) == ("Policy", Rights.LISTEN, "third", "second")
    process.ask(lambda done: namespace.renew_key(hub, "policy", RuleKey.SECONDARY, Secret("fourth"), done))
    assert seen(process.restarted().namespace.rule(hub, "policy")) == ("Policy", Rights.LISTEN, "third", "fourth")


@pytest.mark.parametrize("hub", LEVELS)
def test_what_cannot_be_is_refused_and_nothing_changes(process: Any, namespace: Any, hub: str) -> None:
    process.ask(lambda done: namespace.create_rule(hub, rule("one"), done))
    refused(process, lambda done: namespace.create_rule(hub, rule("ONE"), done), ENTITY_EXISTS)
    send_and_manage = Rights.SEND | Rights.MANAGE
    refused(process, lambda done: namespace.change_rule(hub, "one", send_and_manage, done), ARGUMENT_OUT_OF_RANGE)
    refused(process, lambda done: namespace.change_rule(hub, "two", Rights.SEND, done), NOT_FOUND)
    long = Secret("k" * 257)
    refused(process, lambda done: namespace.renew_key(hub, "one", RuleKey.PRIMARY, long, done), ARGUMENT_OUT_OF_RANGE)
    refused(process, lambda done: namespace.create_rule("nowhere", rule("r"), done), NOT_FOUND)
    with pytest.raises(ServiceError):
        namespace.rule(hub, "two")


@pytest.mark.parametrize("hub", LEVELS)
def test_the_thirteenth_rule_of_a_level_is_refused(process: Any, namespace: Any, hub: str) -> None:
    for number in range(12):
        process.ask(lambda done, number=number: namespace.create_rule(hub, rule(f"r{number}"), done))
    refused(process, lambda done: namespace.create_rule(hub, rule("r12"), done), RESOURCE_LIMIT)
    process.ask(lambda done: namespace.change_rule(hub, "r3", Rights.ALL, done))
    names = [known.name for known in namespace.rules_at(() if hub is None else (hub,))[0]]
    assert names == [f"r{number}" for number in range(12)]


@pytest.mark.parametrize("hub", LEVELS)
def test_a_rule_that_is_set_takes_the_place_of_its_name_and_a_level_has_so_many(
    process: Any, namespace: Any, hub: str
) -> None:
    for number in range(RULES_PER_LEVEL_MAX):
        process.ask(lambda done, number=number: namespace.set_rule(hub, rule(f"r{number}"), done))
    process.ask(lambda done: namespace.set_rule(hub, rule("R0", Rights.LISTEN), done))
    assert seen(namespace.rule(hub, "r0"))[:2] == ("R0", Rights.LISTEN)
    refused(process, lambda done: namespace.set_rule(hub, rule("one-more"), done), RESOURCE_LIMIT)
    process.ask(lambda done: namespace.remove_rule(hub, "R3", done))
    process.ask(lambda done: namespace.set_rule(hub, rule("one-more"), done))
    refused(process, lambda done: namespace.remove_rule(hub, "r3", done), NOT_FOUND)


CHANGES: list[Callable[[Any, Any], None]] = [
    lambda namespace, done: namespace.set_rule("Hub", rule("r"), done),
    lambda namespace, done: namespace.set_hub_rules("Hub", (), done),
    lambda namespace, done: namespace.remove_rule("Hub", "r", done),
    lambda namespace, done: namespace.create_rule("Hub", rule("other"), done),
    lambda namespace, done: namespace.change_rule("Hub", "r", Rights.LISTEN, done),
    lambda namespace, done: namespace.renew_key("Hub", "r", RuleKey.PRIMARY, Secret("new"), done),
]


@pytest.mark.parametrize("change", CHANGES)
def test_rules_of_a_hub_that_is_being_deleted_are_not_found(
    process: Any, namespace: Any, change: Callable[[Any, Any], None]
) -> None:
    process.ask(lambda done: namespace.create_rule("Hub", rule("r"), done))
    process.ask(lambda done: namespace.begin_delete_hub("Hub", done))
    refused(process, lambda done: change(namespace, done), NOT_FOUND)


def test_a_rule_that_was_changed_is_answered_though_its_hub_is_deleted_next(process: Any, namespace: Any) -> None:
    process.ask(lambda done: namespace.create_rule("Hub", rule("r"), done))
    answers: list[object] = []
    namespace.change_rule("Hub", "r", Rights.LISTEN, answers.append)
    process.ask(lambda done: namespace.begin_delete_hub("Hub", done))
    (changed,) = answers
    assert isinstance(changed, AuthorizationRuleDescription) and changed.rights == Rights.LISTEN
