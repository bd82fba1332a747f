"""Who gets a copy of every message without a look at it: known while no rule of the topic has to look."""

from __future__ import annotations

import pytest

from hubweir.topic.correlation_filter import CorrelationFilter
from hubweir.topic.rule import FalseFilter, Rule, TrueFilter
from hubweir.topic.tests.given_messages import action, new_id, rule
from hubweir.topic.topic_rules import TopicRules

DEFAULT = Rule("$Default", TrueFilter())
LOOKS = [
    rule("r", "color = 'blue'"), rule("r", "sys.Label = 'order'"), rule("r", "quantity + 1 > 2"),
    rule("r", "color LIKE 'b%'"), Rule("r", TrueFilter(), action("SET a = 1")),
    Rule("r", CorrelationFilter(label="order")),
]  # fmt: skip


@pytest.mark.parametrize("looks", LOOKS)
def test_who_gets_all_is_known_while_no_rule_has_to_look_at_a_message(looks: Rule) -> None:
    rules = TopicRules[str](new_id)
    assert rules.who_gets_all == ()
    for name in ("a", "b"):
        rules.put(name, DEFAULT)
    rules.put("nobody", Rule("no", FalseFilter()))
    assert rules.who_gets_all == ("a", "b")
    rules.put("c", looks)
    assert rules.who_gets_all is None
    rules.remove("c", looks.name)
    assert rules.who_gets_all == ("a", "b")
