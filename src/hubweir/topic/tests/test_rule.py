"""Descriptions that the catalog keeps, read as rules; and what they must not say."""

import pytest

from hubweir.errors import ARGUMENT_ERROR, ServiceError
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
from hubweir.topic.correlation_filter import SYSTEM_FIELDS, CorrelationFilter
from hubweir.topic.rule import FalseFilter, Filter, Rule, TrueFilter, read_rule
from hubweir.topic.sql_lexer import SqlError
from hubweir.topic.tests.given_messages import action, sql_filter

FIVE = NamedValue("@P", ValueType.LONG, "5")
TEXTS = {name: name.upper() for name in SYSTEM_FIELDS}


def test_a_new_subscription_s_rule_matches_everything() -> None:
    assert read_rule(SubscriptionRuleDescription()) == Rule("$Default", TrueFilter())


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        (TrueFilterDescription(), TrueFilter()),
        (FalseFilterDescription(), FalseFilter()),
        (SqlFilterDescription("a = 1"), sql_filter("a = 1")),
        (SqlFilterDescription("a = @p", (FIVE,)), sql_filter("a = 5")),
        (CorrelationFilterDescription(), CorrelationFilter()),
        (
            CorrelationFilterDescription(**TEXTS, properties=(FIVE, NamedValue("b", ValueType.BOOLEAN, "true"))),
            CorrelationFilter(**TEXTS, properties={"@P": 5, "b": True}),
        ),
    ],
)
def test_each_filter(description, expected: Filter) -> None:
    assert read_rule(SubscriptionRuleDescription("r", description)) == Rule("r", expected)


def test_an_action_with_its_parameters() -> None:
    does = SqlActionDescription("SET a = @p", (FIVE,))
    assert read_rule(SubscriptionRuleDescription("r", action=does)) == Rule("r", TrueFilter(), action("SET a = 5"))


def test_bad_sql_makes_no_rule() -> None:
    """SB-110: the condition of add-rule and of a PUT, which both doors show as 400."""
    with pytest.raises(SqlError, match="at character 5, near 'ADN'") as refused:
        read_rule(SubscriptionRuleDescription("r", SqlFilterDescription("a=1 ADN b=2")))
    assert refused.value.condition is ARGUMENT_ERROR
    assert (ARGUMENT_ERROR.management, ARGUMENT_ERROR.http) == (400, 400)
    with pytest.raises(SqlError, match="SET or REMOVE"):
        read_rule(SubscriptionRuleDescription("r", action=SqlActionDescription("a = 1")))


def test_a_value_that_is_none_of_its_type_makes_no_rule() -> None:
    bad = NamedValue("p", ValueType.INT, "five")
    for description in (
        SubscriptionRuleDescription("r", SqlFilterDescription("a = @p", (bad,))),
        SubscriptionRuleDescription("r", CorrelationFilterDescription(properties=(bad,))),
        SubscriptionRuleDescription("r", action=SqlActionDescription("SET a = @p", (bad,))),
    ):
        with pytest.raises(ServiceError, match="The value of 'p', 'five', is no int") as refused:
            read_rule(description)
        assert refused.value.condition is ARGUMENT_ERROR
