"""A rule is what its form says, and what a form cannot hold is never changed by it."""

import pytest

from hubweir.errors import ServiceError
from hubweir.namespace.subscription_rule import (
    CorrelationFilterDescription,
    FalseFilterDescription,
    NamedValue,
    SqlActionDescription,
    SqlFilterDescription,
    SubscriptionRuleDescription,
    TrueFilterDescription,
    ValueType,
)
from hubweir.portal.subscription_rule_form import read_rule_form, rule_values

VALUES = (
    NamedValue("@n", ValueType.INT, "7"),
    NamedValue("when (now)", ValueType.DATE_TIME, "2026-01-01T00:00:00Z"),
    NamedValue("odd (int)", ValueType.STRING, "a: b"),
    NamedValue("empty", ValueType.STRING, ""),
)


@pytest.mark.parametrize(
    "filter",
    [
        TrueFilterDescription(),
        FalseFilterDescription(),
        SqlFilterDescription("colour = 'red'\nAND 1=1", VALUES),
        CorrelationFilterDescription(label="tea", content_type="x", properties=VALUES),
        CorrelationFilterDescription(properties=VALUES[:1]),
    ],
)
@pytest.mark.parametrize("action", [None, SqlActionDescription("SET a = @n", VALUES)])
def test_a_rule_comes_back_as_it_was(filter: object, action: SqlActionDescription | None) -> None:
    rule = SubscriptionRuleDescription("r", filter, action)  # type: ignore[arg-type]
    values = rule_values(rule)
    assert read_rule_form(values, "r") == rule
    sent = {name: text.replace("\n", "\r\n") for name, text in values.items()}
    assert read_rule_form(sent, "r") == rule, "as browsers end lines"


@pytest.mark.parametrize(
    "filter",
    [
        SqlFilterDescription("x = 1", (NamedValue("a", ValueType.STRING, "two\nlines"),)),
        SqlFilterDescription("x = 1", (NamedValue("a:b", ValueType.STRING, "x"),)),
        SqlFilterDescription("x = 1", (NamedValue("a", ValueType.STRING, " spaces "),)),
        SqlFilterDescription(" x = 1"),
        CorrelationFilterDescription(),
        CorrelationFilterDescription(label=""),
    ],
)
def test_what_a_form_cannot_hold_is_not_edited(filter: object) -> None:
    with pytest.raises(ServiceError):
        rule_values(SubscriptionRuleDescription("r", filter))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ({"kind": "sql"}, "needs a condition"),
        ({"kind": "correlation"}, "at least one"),
        ({"kind": "other"}, "must be one of"),
        ({"kind": "sql", "expression": "1=1", "parameters": "no colon"}, "lines such as"),
        ({"kind": "sql", "expression": "1=1", "parameters": "a: 1\na (int): 2"}, "each name once"),
        ({"kind": "true", "action_parameters": "a: 1"}, "there is no action"),
    ],
)
def test_what_cannot_be_is_told(form: dict[str, str], told: str) -> None:
    with pytest.raises(ServiceError) as refused:
        read_rule_form(form, "r")
    assert told in refused.value.text


def test_fields_of_another_sort_of_filter_do_not_count() -> None:
    form = {"kind": "true", "expression": "x = 1", "label": "tea", "properties": "a: 1"}
    assert read_rule_form(form, "r") == SubscriptionRuleDescription("r", TrueFilterDescription())
