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
from hubweir.namespace.rights import Rights
from hubweir.namespace.rule_changes import RuleKey, RuleLevel
from hubweir.namespace.rule_description import RULES_PER_LEVEL_LIMIT, AuthorizationRuleDescription
from hubweir.namespace.secret import Secret

LEVELS = [None, "Hub"]


@pytest.fixture
def writer(process: Any) -> Any:
    process.create("Hub")
    return process.writer


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
def test_a_rule_is_created_changed_and_renewed_and_keeps_its_name(process: Any, writer: Any, hub: str) -> None:
    level = process.ask(lambda done: writer.change_rules(hub, lambda level: level.create(rule("Policy")), done))
    assert seen(level.rule("policy")) == ("Policy", Rights.SEND, "first", "second")
    process.ask(lambda done: writer.change_rules(hub, lambda level: level.change("pOLICY", Rights.LISTEN), done))
    process.ask(
        lambda done: writer.change_rules(
            hub, lambda level: level.renew("policy", RuleKey.PRIMARY, Secret("third")), done
        )
    )
    assert seen(writer.namespace.rule(hub, "POLICY")) == ("Policy", Rights.LISTEN, "third", "second")
    process.ask(
        lambda done: writer.change_rules(
            hub, lambda level: level.renew("policy", RuleKey.SECONDARY, Secret("fourth")), done
        )
    )
    assert seen(process.restarted().namespace.rule(hub, "policy")) == ("Policy", Rights.LISTEN, "third", "fourth")


@pytest.mark.parametrize("hub", LEVELS)
def test_what_cannot_be_is_refused_and_nothing_changes(process: Any, writer: Any, hub: str) -> None:
    process.ask(lambda done: writer.change_rules(hub, lambda level: level.create(rule("one")), done))
    refused(
        process, lambda done: writer.change_rules(hub, lambda level: level.create(rule("ONE")), done), ENTITY_EXISTS
    )
    send_and_manage = Rights.SEND | Rights.MANAGE
    refused(
        process,
        lambda done: writer.change_rules(hub, lambda level: level.change("one", send_and_manage), done),
        ARGUMENT_OUT_OF_RANGE,
    )
    refused(
        process, lambda done: writer.change_rules(hub, lambda level: level.change("two", Rights.SEND), done), NOT_FOUND
    )
    long = Secret("k" * 257)
    refused(
        process,
        lambda done: writer.change_rules(hub, lambda level: level.renew("one", RuleKey.PRIMARY, long), done),
        ARGUMENT_OUT_OF_RANGE,
    )
    refused(
        process, lambda done: writer.change_rules("nowhere", lambda level: level.create(rule("r")), done), NOT_FOUND
    )
    with pytest.raises(ServiceError) as refusal:
        writer.namespace.rule(hub, "two")
    path = "authorizationrules/two" if hub is None else "hub/authorizationrules/two"
    assert f"'sb://ns.local/{path}' could not be found" in refusal.value.text


@pytest.mark.parametrize("hub", LEVELS)
def test_the_thirteenth_rule_of_a_level_is_refused(process: Any, writer: Any, hub: str) -> None:
    for number in range(12):
        process.ask(
            lambda done, number=number: writer.change_rules(hub, lambda level: level.create(rule(f"r{number}")), done)
        )
    refused(
        process, lambda done: writer.change_rules(hub, lambda level: level.create(rule("r12")), done), RESOURCE_LIMIT
    )
    process.ask(lambda done: writer.change_rules(hub, lambda level: level.change("r3", Rights.ALL), done))
    names = [known.name for known in writer.namespace.rules_at(() if hub is None else (hub,))[0]]
    assert names == [f"r{number}" for number in range(12)]


@pytest.mark.parametrize("hub", LEVELS)
def test_a_rule_that_is_set_takes_the_place_of_its_name_and_a_level_has_so_many(
    process: Any, writer: Any, hub: str
) -> None:
    for number in range(RULES_PER_LEVEL_LIMIT):
        process.ask(
            lambda done, number=number: writer.change_rules(hub, lambda level: level.set(rule(f"r{number}")), done)
        )
    process.ask(lambda done: writer.change_rules(hub, lambda level: level.set(rule("R0", Rights.LISTEN)), done))
    assert seen(writer.namespace.rule(hub, "r0"))[:2] == ("R0", Rights.LISTEN)
    refused(
        process, lambda done: writer.change_rules(hub, lambda level: level.set(rule("one-more")), done), RESOURCE_LIMIT
    )
    process.ask(lambda done: writer.change_rules(hub, lambda level: level.remove("R3"), done))
    process.ask(lambda done: writer.change_rules(hub, lambda level: level.set(rule("one-more")), done))
    refused(process, lambda done: writer.change_rules(hub, lambda level: level.remove("r3"), done), NOT_FOUND)


CHANGES: list[Callable[[Any, Any], None]] = [
    lambda writer, done: writer.change_rules("Hub", lambda level: level.set(rule("r")), done),
    lambda writer, done: writer.change_rules("Hub", lambda level: level.remove("r"), done),
    lambda writer, done: writer.change_rules("Hub", lambda level: level.create(rule("other")), done),
    lambda writer, done: writer.change_rules("Hub", lambda level: level.change("r", Rights.LISTEN), done),
    lambda writer, done: writer.change_rules(
        "Hub", lambda level: level.renew("r", RuleKey.PRIMARY, Secret("new")), done
    ),
]


@pytest.mark.parametrize("change", CHANGES)
def test_rules_of_a_hub_that_is_being_deleted_are_not_found(
    process: Any, writer: Any, change: Callable[[Any, Any], None]
) -> None:
    process.ask(lambda done: writer.change_rules("Hub", lambda level: level.create(rule("r")), done))
    process.begin_delete("Hub")
    refused(process, lambda done: change(writer, done), NOT_FOUND)


def test_a_rule_that_was_changed_is_answered_though_its_hub_is_deleted_next(process: Any, writer: Any) -> None:
    process.ask(lambda done: writer.change_rules("Hub", lambda level: level.create(rule("r")), done))
    answers: list[object] = []
    writer.change_rules("Hub", lambda level: level.change("r", Rights.LISTEN), answers.append)
    process.begin_delete("Hub")
    (changed,) = answers
    assert isinstance(changed, RuleLevel) and changed.rule("r").rights == Rights.LISTEN
