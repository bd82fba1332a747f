"""messaging_display.py: queues, topics, subscriptions and rules as people and programs see them."""

from __future__ import annotations

import json

import pytest

from hubweir.cli.messaging_display import part_text, print_entities, print_entity, print_rules
from hubweir.client.atom_documents import EntityInfo, RulePart
from hubweir.namespace.rights import Rights
from hubweir.namespace.rule_description import AuthorizationRuleDescription
from hubweir.namespace.secret import Secret

COUNTS = {"ActiveMessageCount": 3, "DeadLetterMessageCount": 2, "ScheduledMessageCount": 1, "TransferMessageCount": 9}
RULE = AuthorizationRuleDescription("reader", Rights.LISTEN, Secret("secret-key"), Secret(""))
ORDERS = EntityInfo("orders", {"Status": "Active", "LockDuration": "PT1M"}, COUNTS, (RULE,))
CORRELATED = RulePart("CorrelationFilter", {"Label": "x"}, {"kind": "big", "n": 7})
SQL = RulePart("SqlFilter", {"SqlExpression": "a = @p", "CompatibilityLevel": "20"}, {"p": 1.5})
RULES = [
    EntityInfo("$Default", {"CreatedAt": "2026-01-31"}, filter=RulePart("TrueFilter", {"SqlExpression": "1=1"}, {})),
    EntityInfo("r", {}, filter=SQL, action=RulePart("SqlRuleAction", {"SqlExpression": "SET b = 1"}, {})),
]


FRAGMENTS = [
    EntityInfo("0", {"Broker": "1", "Store": "2", "Status": "Available", "SizeInBytes": "77"}, COUNTS),
    EntityInfo("1", {"Broker": "0", "Store": "0", "Status": "Unavailable", "Reason": "its disk is gone"}),
]


def rows(capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    return [line.split() for line in capsys.readouterr().out.splitlines() if line.strip("─ ")]


def test_a_list_has_a_row_an_entity_with_its_messages(capsys: pytest.CaptureFixture[str]) -> None:
    print_entities("queue", [ORDERS, EntityInfo("new", {})], as_json=False)
    assert rows(capsys) == [
        ["queue", "status", "active", "dead", "letters", "scheduled"],
        ["orders", "Active", "3", "2", "1"],
        ["new", "0", "0", "0"],
    ]


def test_no_entities_are_said_to_be_none(capsys: pytest.CaptureFixture[str]) -> None:
    print_entities("subscription", [], as_json=False)
    assert capsys.readouterr().out == "no subscriptions\n"
    print_entities("subscription", [], as_json=True)
    assert json.loads(capsys.readouterr().out) == []
    print_rules([], as_json=False)
    assert capsys.readouterr().out == "no rules: the subscription gets no message\n"


def test_an_entity_is_a_line_a_setting_and_a_line_a_rule_without_its_keys(capsys: pytest.CaptureFixture[str]) -> None:
    print_entity("queue", ORDERS, (), as_json=False)
    printed = capsys.readouterr().out
    assert [line.split() for line in printed.splitlines() if line.strip("─ ")] == [
        ["queue", "orders"], ["setting", "value"], ["Status", "Active"], ["LockDuration", "PT1M"],
        *([name, str(count)] for name, count in COUNTS.items()), ["authorization", "rule", "reader:", "Listen"],
    ]  # fmt: skip
    assert "secret-key" not in printed


def test_fragments_have_a_row_each_with_store_state_and_counts_and_one_that_is_away_says_why(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_entity("queue", EntityInfo("orders", {"Status": "Active"}), FRAGMENTS, as_json=False)
    assert rows(capsys)[3:] == [
        ["fragment", "broker", "store", "state", "active", "dead", "letters", "scheduled", "bytes"],
        ["0", "1", "store-2", "Available", "3", "2", "1", "77"],
        ["1", "0", "store-0", "Unavailable"],
        ["fragment", "1:", "its", "disk", "is", "gone"],
    ]


def test_a_document_has_all_of_it_in_the_service_s_words_but_keys(capsys: pytest.CaptureFixture[str]) -> None:
    print_entity("queue", ORDERS, FRAGMENTS, as_json=True)
    assert json.loads(capsys.readouterr().out) == {
        "Name": "orders", "Status": "Active", "LockDuration": "PT1M", "CountDetails": COUNTS,
        "AuthorizationRules": [{"KeyName": "reader", "Rights": ["Listen"]}],
        "Fragments": [{**FRAGMENTS[0].members, "CountDetails": COUNTS}, FRAGMENTS[1].members],
    }  # fmt: skip
    print_entities("queue", [EntityInfo("new", {"Status": "Active"})], as_json=True)
    assert json.loads(capsys.readouterr().out) == [{"Name": "new", "Status": "Active"}]


def test_rules_have_a_row_each_with_their_filter_and_their_action(capsys: pytest.CaptureFixture[str]) -> None:
    print_rules(RULES, as_json=False)
    assert rows(capsys) == [
        ["rule", "filter", "action"],
        ["$Default", "1=1"],
        ["r", "a", "=", "@p", "SET", "b", "=", "1"],
    ]


def test_a_document_of_a_rule_has_its_types_and_values(capsys: pytest.CaptureFixture[str]) -> None:
    print_rules([*RULES, EntityInfo("bare", {})], as_json=True)
    assert json.loads(capsys.readouterr().out) == [
        {
            "Name": "$Default", "CreatedAt": "2026-01-31",
            "Filter": {"Type": "TrueFilter", "SqlExpression": "1=1", "Values": {}},
        },
        {
            "Name": "r", "CreatedAt": "",
            "Filter": {
                "Type": "SqlFilter", "SqlExpression": "a = @p", "CompatibilityLevel": "20", "Values": {"p": 1.5},
            },
            "Action": {"SqlExpression": "SET b = 1"},
        },
        {"Name": "bare", "CreatedAt": ""},
    ]  # fmt: skip


def test_a_filter_is_one_line() -> None:
    assert part_text(None) == ""
    assert part_text(SQL) == "a = @p"
    assert part_text(CORRELATED) == "Label = x, kind = big, n = 7"
