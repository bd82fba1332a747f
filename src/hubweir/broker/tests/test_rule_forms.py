"""Rules travel to a broker and mean there what they say."""

from __future__ import annotations

import pytest

from hubweir.broker.rule_forms import encode_rules, read_rules
from hubweir.errors import DECODE_ERROR, ServiceError
from hubweir.namespace.subscription_rule import (
    CorrelationFilterDescription,
    FalseFilterDescription,
    NamedValue,
    SqlActionDescription,
    SqlFilterDescription,
    SubscriptionRuleDescription,
    ValueType,
)
from hubweir.topic.rule import read_rule

VALUE = NamedValue("@n", ValueType.INT, "7")
RULES = (
    SubscriptionRuleDescription(),
    SubscriptionRuleDescription("sql", SqlFilterDescription("n = @n", (VALUE,)), SqlActionDescription("SET n = 1")),
    SubscriptionRuleDescription("none", FalseFilterDescription(), created_at_ms=5),
    SubscriptionRuleDescription("c", CorrelationFilterDescription(label="l", properties=(VALUE,))),
)


def test_every_kind_of_rule_arrives_as_it_was_sent() -> None:
    assert read_rules(encode_rules(RULES)) == tuple(map(read_rule, RULES))
    assert read_rules(encode_rules([])) == ()


@pytest.mark.parametrize("data", [b"", b"\xff", b"\x91\x01", encode_rules(RULES)[:-1], b"\x91\x81\xa4name\xa1\xff"])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ServiceError) as refused:
        read_rules(data)
    assert refused.value.condition is DECODE_ERROR
