"""What the rules of one subscription make of a message: SB-104 to SB-112, rule by rule."""

import pytest

from hubweir.amqp.types.values import Int
from hubweir.topic.correlation_filter import CorrelationFilter
from hubweir.topic.filtered_message import EncodedMessage
from hubweir.topic.rule import FalseFilter, Rule, TrueFilter
from hubweir.topic.rule_action import MessageChanges
from hubweir.topic.rule_matching import ACTION_FAILED, FILTER_FAILED, ChangedCopy, RuleFailure
from hubweir.topic.tests.given_messages import action, message, new_id, rule
from hubweir.topic.tests.plain_copies import Copies, copies_of

BLUE = message({"color": "blue", "quantity": Int(11)}, subject="order")
DEFAULT = Rule("$Default", TrueFilter())
NOTHING = Copies(False, (), ())
PLAIN = Copies(True, (), ())


def copies(*rules: Rule, seen: EncodedMessage = BLUE) -> Copies:
    return copies_of(rules, seen, new_id)


def test_the_default_rule_lets_everything_in_and_no_rule_nothing() -> None:
    """SB-104."""
    assert copies(DEFAULT) == PLAIN
    assert copies() == NOTHING


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("color='blue' AND quantity > 10", PLAIN),
        ("color='red'", NOTHING),
        ("shape='round'", NOTHING),
        ("NOT (shape='round')", NOTHING),
        ("shape IS NULL", PLAIN),
        ("sys.Label LIKE 'or%'", PLAIN),
    ],
)
def test_a_rule_matches_when_its_filter_is_true_and_not_when_it_is_unknown(text: str, expected: Copies) -> None:
    """SB-105, SB-106."""
    assert copies(rule("r", text)) == expected


def test_correlation_filters_match() -> None:
    """SB-107."""
    assert copies(Rule("r", CorrelationFilter(label="order", properties={"color": "blue"}))) == PLAIN
    assert copies(Rule("r", CorrelationFilter(label="Order", properties={"color": "blue"}))) == NOTHING


def test_matching_rules_without_an_action_make_one_copy() -> None:
    assert copies(rule("a", "1=1"), rule("b", "color='blue'"), rule("c", "color='red'"), rule("d", "1=1")) == PLAIN


def test_two_actions_and_three_plain_rules_make_three_copies() -> None:
    """SB-108."""
    rules = [rule(f"plain {i}", "1=1") for i in range(3)]
    rules[1:1] = [rule("first", "1=1", "SET color = 'red'"), rule("second", "color = 'blue'", "SET n = color")]
    found = copies(*rules)
    assert found.plain and not found.failed
    assert found.changed == (
        ChangedCopy("first", MessageChanges({"color": "red", "quantity": 11, "RuleName": "first"}, {})),
        # It sees the message as it came, not what the first made of it.
        ChangedCopy("second", MessageChanges({"color": "blue", "quantity": 11, "n": "blue", "RuleName": "second"}, {})),
    )


def test_only_rules_that_match_act() -> None:
    assert copies(rule("a", "color='red'", "SET n = 1")) == NOTHING


def test_the_name_of_the_rule_stands_whatever_message_and_action_say() -> None:
    seen = message({"RuleName": "mine", "rulename": 5})
    (copy,) = copies(rule("a", "1=1", "SET RuleName = 'other'"), seen=seen).changed
    assert copy.changes.application_properties == {"RuleName": "a", "rulename": 5}
    (copy,) = copies(rule("b", "1=1", "REMOVE RuleName"), seen=seen).changed
    assert copy.changes.application_properties == {"RuleName": "b"}


def test_an_action_changes_system_properties() -> None:
    """SB-109."""
    (copy,) = copies(rule("a", "1=1", "SET sys.Label = 'x'; REMOVE color")).changed
    assert copy.changes == MessageChanges({"quantity": 11, "RuleName": "a"}, {"label": "x"})


def test_a_filter_that_fails_is_told_and_leaves_the_others_alone() -> None:
    """SB-111: the subscription dead-letters the message for it, or it is as if the rule did not match."""
    failure = RuleFailure(
        "bad", FILTER_FAILED, "The filter of the rule 'bad' failed: there is no system property 'Nothing'."
    )
    bad = rule("bad", "sys.Nothing = 1", "SET n = 1")
    assert copies(bad) == Copies(False, (), (failure,))
    assert copies(bad, DEFAULT) == Copies(True, (), (failure,))


def test_an_action_that_fails_is_told_and_makes_no_copy() -> None:
    failure = RuleFailure("bad", ACTION_FAILED, "The action of the rule 'bad' failed: an integer is divided by zero.")
    found = copies(rule("bad", "1=1", "SET n = 1 SET m = n / 0"), rule("good", "1=1", "SET n = 2"))
    assert found.failed == (failure,) and not found.plain
    assert [copy.rule_name for copy in found.changed] == ["good"]


def test_a_false_filter_never_matches() -> None:
    """SB-112."""
    acts = action("SET n = 1")
    assert copies(Rule("a", FalseFilter()), Rule("b", FalseFilter(), acts)) == NOTHING
    assert [copy.rule_name for copy in copies(Rule("c", TrueFilter(), acts)).changed] == ["c"]


def test_a_message_that_cannot_be_read_fails_rules_that_read_it() -> None:
    torn = EncodedMessage(b"\x00\x53\x74\xc1\x03\x02\xa1\x05")
    found = copies(
        DEFAULT,
        rule("a", "color = 'x'"),
        rule("b", "1=1"),
        Rule("c", CorrelationFilter(properties={"a": 1})),
        Rule("d", TrueFilter(), action("SET n = 1")),
        seen=torn,
    )
    assert found.plain and not found.changed
    assert [(failure.rule_name, failure.reason) for failure in found.failed] == [
        ("a", FILTER_FAILED), ("c", FILTER_FAILED), ("d", ACTION_FAILED),
    ]  # fmt: skip
