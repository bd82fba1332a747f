import json

import pytest

from hubweir.cli.tests.typed_commands import Typed, condition_of
from hubweir.errors import ARGUMENT_OUT_OF_RANGE, ENTITY_EXISTS, NOT_ALLOWED, NOT_FOUND
from hubweir.testing.running_namespace import RunningNamespace

RULE = "authorization-rule"


@pytest.mark.parametrize("level", [(), ("--eventhub", "ruled")])
def test_a_rule_lives_from_create_to_delete(
    namespace: RunningNamespace, type_command: Typed, level: tuple[str]
) -> None:
    where = "the namespace"
    if level:
        type_command("eventhub", "create", "ruled")
        where = "event hub ruled"
    made = type_command(RULE, "create", "Mine", "--rights", "send,Listen", *level)
    assert made.output == f"created authorization rule Mine of {where} with Listen, Send\n"
    listed = json.loads(type_command(RULE, "list", "--json", *level).stdout)
    assert {"name": "Mine", "rights": ["Listen", "Send"]} in listed
    assert "Mine" in type_command(RULE, "list", *level).output
    changed = type_command(RULE, "update", "mine", "--rights", "Send", *level)
    assert changed.output == f"authorization rule Mine of {where} has Send\n"
    assert type_command(RULE, "show", "MINE", *level).output == "Mine: Send\n"
    assert type_command(RULE, "delete", "mine", *level, stdin="n\n").exit_code == 1
    deleted = type_command(RULE, "delete", "mine", "--yes", *level)
    assert deleted.output == f"deleted authorization rule mine of {where}\n"
    assert condition_of(type_command(RULE, "show", "mine", *level)) is NOT_FOUND


def test_keys_are_shown_renewed_and_good_to_connect_with(type_command: Typed) -> None:
    type_command("eventhub", "create", "keyed")
    level = ("--eventhub", "keyed", "--json")
    type_command(RULE, "create", "sender", "--rights", "Send", "--eventhub", "keyed")
    first = json.loads(type_command(RULE, "keys", "list", "sender", *level).stdout)
    connection_string = first["primaryConnectionString"]
    assert "EntityPath=keyed" in connection_string
    sent = type_command("send", "keyed", "hello", "--connection-string", connection_string)
    assert sent.exit_code == 0, sent.output
    renewed = json.loads(type_command(RULE, "keys", "renew", "SENDER", "--key", "PrimaryKey", *level).stdout)
    assert renewed["secondaryKey"] == first["secondaryKey"]
    assert renewed["primaryKey"] != first["primaryKey"]
    assert type_command("send", "keyed", "no", "--connection-string", connection_string).exit_code == 1
    given = ("--key", "secondary", "--key-value", "my-own")
    assert "secondary  my-own" in type_command(RULE, "keys", "renew", "sender", *given, *level[:2]).output


@pytest.mark.parametrize(
    ("arguments", "condition"),
    [
        (("create", "r", "--rights", "manage"), ARGUMENT_OUT_OF_RANGE),
        (("create", "RootManageSharedAccessKey", "--rights", "send"), ENTITY_EXISTS),
        (("update", "RootManageSharedAccessKey", "--rights", "send"), NOT_ALLOWED),
        (("keys", "renew", "RootManageSharedAccessKey", "--key", "primary"), NOT_ALLOWED),
        (("list", "--eventhub", "nowhere"), NOT_FOUND),
    ],
)
def test_refusals_are_told(type_command: Typed, arguments: tuple[str, ...], condition: object) -> None:
    assert condition_of(type_command(RULE, *arguments)) is condition


def test_a_right_that_is_none_is_a_wrong_command(type_command: Typed) -> None:
    result = type_command(RULE, "create", "r", "--rights", "read")
    assert result.exit_code == 2
    assert "'read' is no right" in result.output


def test_the_same_commands_stand_below_eventhub_and_namespace_as_az_has_them(type_command: Typed) -> None:
    type_command("eventhub", "create", "levels", "--partitions", "1")
    of_hub = ("eventhub", "authorization-rule")
    of_namespace = ("namespace", "authorization-rule")
    hub = ("--eventhub-name", "levels")
    made = type_command(*of_hub, "create", "--rights", "Listen", "Send", "--name", "below", *hub)
    assert made.exit_code == 0 and "Listen, Send" in made.output, made.output
    assert type_command(*of_hub, "create", "--name", "nowhere", "--rights", "Send").exit_code == 2  # of which hub?
    assert type_command(*of_namespace, "create", "-n", "above", "--rights", "send", *hub).exit_code == 2
    assert type_command(*of_namespace, "create", "-n", "above", "--rights", "send").exit_code == 0
    below = json.loads(type_command(*of_hub, "list", *hub, "--json").stdout)
    above = json.loads(type_command(*of_namespace, "list", "--json").stdout)
    assert [rule["name"] for rule in below] == ["below"]
    assert "above" in [rule["name"] for rule in above] and "below" not in [rule["name"] for rule in above]
    before = json.loads(type_command(*of_hub, "keys", "list", "-n", "below", *hub, "--json").stdout)
    renew = ("keys", "renew", "--authorization-rule-name", "below", *hub, "--key", "PrimaryKey", "--json")
    after = json.loads(type_command(*of_hub, *renew).stdout)
    assert after["primaryKey"] != before["primaryKey"] and after["secondaryKey"] == before["secondaryKey"]
    assert type_command(*of_namespace, "show", "above").output == "above: Send\n"
    assert type_command(*of_namespace, "update", "above", "--rights", "listen").exit_code == 0
    assert type_command(*of_namespace, "update", "above", "--rights", "Manage", "Send", "Listen").exit_code == 0
    assert type_command(*of_namespace, "show", "above").output == "above: Listen, Manage, Send\n"
    assert type_command(*of_namespace, "update", "above", "--rights", "Send", "Own").exit_code == 2
    assert type_command(*of_namespace, "delete", "above", "--yes").exit_code == 0
    assert type_command(*of_hub, "delete", "below", *hub, "--yes").exit_code == 0


@pytest.mark.parametrize("noun", ["queue", "topic"])
def test_rules_of_a_queue_and_of_a_topic(type_command: Typed, noun: str) -> None:
    type_command(noun, "create", f"ruled-{noun}")
    of = (f"--{noun}-name", f"ruled-{noun}")
    made = type_command(noun, RULE, "create", "own", "--rights", "Send", *of)
    assert made.output == f"created authorization rule own of {noun} ruled-{noun} with Send\n"
    keys = json.loads(type_command(noun, RULE, "keys", "list", "own", *of, "--json").stdout)
    assert f"EntityPath=ruled-{noun}" in keys["primaryConnectionString"]
    shown = json.loads(type_command(noun, "show", f"ruled-{noun}", "--json").stdout)
    assert shown["AuthorizationRules"] == [{"KeyName": "own", "Rights": ["Send"]}]
    assert type_command(noun, RULE, "delete", "own", *of, "--yes").exit_code == 0
    assert "has no authorization rules" in type_command(noun, RULE, "list", *of).output
    assert type_command(noun, RULE, "list").exit_code == 2
