"""What a rule's texts have to be before the catalog keeps it, whichever door it comes by."""

import pytest

from hubweir.errors import ARGUMENT_ERROR, ARGUMENT_OUT_OF_RANGE, Condition, ServiceError
from hubweir.gateway.subscription_rule_management import check_rule
from hubweir.namespace.subscription_rule import (
    CorrelationFilterDescription,
    NamedValue,
    SqlActionDescription,
    SqlFilterDescription,
    SubscriptionRuleDescription,
    ValueType,
)

WRONG = NamedValue("p", ValueType.INT, "five")


def test_a_rule_that_means_something_is_itself() -> None:
    rule = SubscriptionRuleDescription("r", SqlFilterDescription("a = 1"), SqlActionDescription("SET b = 2"), 7)
    assert check_rule(rule) is rule


@pytest.mark.parametrize(
    ("rule", "condition", "why"),
    [
        (SubscriptionRuleDescription("r", SqlFilterDescription("a =")), ARGUMENT_ERROR, "at character 4, at its end"),
        (SubscriptionRuleDescription("r", action=SqlActionDescription("a = 1")), ARGUMENT_ERROR, "SET or REMOVE"),
        (
            SubscriptionRuleDescription("r", CorrelationFilterDescription(properties=(WRONG,))),
            ARGUMENT_ERROR,
            "'five', is no int",
        ),
        (SubscriptionRuleDescription("r", SqlFilterDescription("a" * 1_025)), ARGUMENT_OUT_OF_RANGE, "1025 characters"),
        (SubscriptionRuleDescription("r" * 51), ARGUMENT_OUT_OF_RANGE, "51 characters"),
    ],
)
def test_one_that_means_nothing_is_refused(rule: SubscriptionRuleDescription, condition: Condition, why: str) -> None:
    with pytest.raises(ServiceError, match=why) as refused:
        check_rule(rule)
    assert refused.value.condition is condition
