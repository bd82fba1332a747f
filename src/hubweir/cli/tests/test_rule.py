"""hubweir subscription and hubweir rule: made, listed, shown, changed and deleted."""

from __future__ import annotations

import json

import pytest

from hubweir.cli.tests.typed_commands import Typed, condition_of
from hubweir.errors import NOT_FOUND

OF = ("--topic-name", "news", "--subscription-name", "all")


@pytest.fixture
def news(type_command: Typed) -> Typed:
    type_command("topic", "delete", "news", "--yes")
    type_command("topic", "create", "news")
    type_command("subscription", "create", "all", "--topic-name", "news")
    return type_command


def test_a_subscription_is_created_listed_shown_changed_and_deleted(news: Typed) -> None:
    made = news("subscription", "create", "some", "--topic-name", "news", "--enable-session", "true")
    assert made.output == "created subscription some of topic news\n"
    rows = json.loads(news("subscription", "list", "--topic", "news", "--json").stdout)
    assert [(row["Name"], row["RequiresSession"]) for row in rows] == [("all", "false"), ("some", "true")]
    changed = news(
        "subscription", "update", "some", "--topic-name", "news", "--dead-letter-on-filter-exceptions", "false"
    )
    assert changed.output == "changed subscription some of topic news\n"
    shown = json.loads(news("subscription", "show", "some", "--topic-name", "news", "--json").stdout)
    assert shown["DeadLetteringOnFilterEvaluationExceptions"] == "false"
    gone = news("subscription", "delete", "some", "--topic-name", "news", "--yes")
    assert gone.output == "deleted subscription some of topic news\n"
    assert condition_of(news("subscription", "show", "some", "--topic-name", "news")) is NOT_FOUND


def test_rules_of_both_sorts(news: Typed) -> None:
    sql = news(
        "rule", "create", "blue", *OF, "--filter-sql-expression", "color = 'blue' AND n < 3",
        "--action-sql-expression", "SET seen = 'yes'",
    )  # fmt: skip
    assert sql.output == "created rule blue: color = 'blue' AND n < 3\n"
    same = news(
        "rule", "create", "same", *OF, "--label", "x<y", "--correlation-filter-property", "a=b=c",
        "--correlation-filter-property", "d=",
    )  # fmt: skip
    assert same.output == "created rule same: Label = x<y, a = b=c, d = \n"
    listed = json.loads(news("rule", "list", *OF, "--json").stdout)
    assert [rule["Name"] for rule in listed] == ["$Default", "blue", "same"]
    assert listed[1]["Filter"]["SqlExpression"] == "color = 'blue' AND n < 3"
    assert listed[1]["Action"] == {"SqlExpression": "SET seen = 'yes'"} and "Action" not in listed[2]
    assert listed[2]["Filter"]["Values"] == {"a": "b=c", "d": ""}
    assert "color = 'blue'" in news("rule", "show", "blue", *OF).output
    for name in ("$Default", "blue", "same"):
        assert news("rule", "delete", name, *OF, "--yes").output == f"deleted rule {name}\n"
    assert "gets no message" in news("rule", "list", *OF).output


def test_an_update_changes_what_is_given_and_all_else_of_the_rule_stays(news: Typed) -> None:
    def shown() -> tuple[dict[str, object], object]:
        rule = json.loads(news("rule", "show", "blue", *OF, "--json").stdout)
        return rule["Filter"], rule.get("Action", {}).get("SqlExpression")

    news("rule", "create", "blue", *OF, "--filter-sql-expression", "n < 3", "--action-sql-expression", "SET a = 1")
    changed = news("rule", "update", "blue", *OF, "--filter-sql-expression", "n < 4")
    assert changed.output == "changed rule blue: n < 4\n"
    assert (shown()[0]["SqlExpression"], shown()[1]) == ("n < 4", "SET a = 1")
    assert news("rule", "update", "blue", *OF, "--action-sql-expression", "SET a = 2").exit_code == 0
    assert (shown()[0]["SqlExpression"], shown()[1]) == ("n < 4", "SET a = 2")
    news("rule", "update", "blue", *OF, "--label", "x", "--to", "y")
    news("rule", "update", "blue", *OF, "--label", "z")
    assert (shown()[0]["Type"], shown()[0]["Label"], "To" in shown()[0], shown()[1]) == (
        "CorrelationFilter", "z", False, "SET a = 2",
    )  # fmt: skip
    news("rule", "update", "blue", *OF, "--action-sql-expression", "")
    assert (shown()[0]["Label"], shown()[1]) == ("z", None)
    news("rule", "update", "blue", *OF, "--filter-sql-expression", "1=1", "--action-sql-expression", "SET b = 1")
    assert (shown()[0]["SqlExpression"], shown()[1]) == ("1=1", "SET b = 1")
    nothing = news("rule", "update", "blue", *OF)
    assert nothing.exit_code == 2 and "nothing to change" in nothing.output
    assert condition_of(news("rule", "update", "none", *OF, "--label", "x")) is NOT_FOUND


@pytest.mark.parametrize(
    "options",
    [(), ("--label", "x", "--filter-sql-expression", "1=1"), ("--correlation-filter-property", "nothing"),
     ("--action-sql-expression", "SET a = 1")],
)  # fmt: skip
def test_a_rule_has_one_filter(news: Typed, options: tuple[str, ...]) -> None:
    assert news("rule", "create", "r", *OF, *options).exit_code == 2
