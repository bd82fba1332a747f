"""Rules on the wire of $management: every byte of the descriptors, every entry of add-rule."""

import pytest

from hubweir.amqp.types.decode import decode
from hubweir.amqp.types.encode import encode
from hubweir.amqp.types.values import Described, Int, Symbol, Timestamp, ULong
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
from hubweir.topic import rule_wire
from hubweir.topic.rule_wire import described_rule, read_new_rule

# As clients have them in decimal.
DESCRIPTORS = {
    "RULE_DESCRIPTION": 1335734829060,
    "EMPTY_RULE_ACTION": 1335734829061,
    "SQL_RULE_ACTION": 1335734829062,
    "SQL_FILTER": 83483426822,
    "TRUE_FILTER": 83483426823,
    "FALSE_FILTER": 83483426824,
    "CORRELATION_FILTER": 83483426825,
}


@pytest.mark.parametrize("name", DESCRIPTORS)
def test_descriptors_are_those_that_clients_look_up(name: str) -> None:
    code = getattr(rule_wire, name)
    assert code == DESCRIPTORS[name]
    # Written in full: a descriptor of eight bytes.
    assert encode(Described(code, [])) == b"\x00\x80" + DESCRIPTORS[name].to_bytes(8, "big") + b"\x45"


def written(rule: SubscriptionRuleDescription) -> Described:
    value, _ = decode(encode(described_rule(rule)))
    assert isinstance(value, Described)
    return value


TEXTS = {
    "correlation_id": "c", "message_id": "m", "to": "t", "reply_to": "r", "label": "l", "session_id": "s",
    "reply_to_session_id": "rs", "content_type": "ct",
}  # fmt: skip


@pytest.mark.parametrize(
    ("chosen", "code", "fields"),
    [
        (TrueFilterDescription(), 83483426823, []),
        (FalseFilterDescription(), 83483426824, []),
        (SqlFilterDescription(" a = @p "), 83483426822, [" a = @p ", Int(20)]),
        (CorrelationFilterDescription(), 83483426825, [None] * 8 + [{}]),
        (
            CorrelationFilterDescription(**TEXTS, properties=(NamedValue("p", ValueType.INT, "5"),)),
            83483426825,
            ["c", "m", "t", "r", "l", "s", "rs", "ct", {"p": Int(5)}],
        ),
    ],
)
def test_a_rule_is_a_described_list(chosen, code: int, fields: list[object]) -> None:
    found = written(SubscriptionRuleDescription("Some", chosen, None, 1_700_000_000_000))
    assert found.descriptor == 1335734829060 and type(found.descriptor) is ULong
    made, action, name, created_at = found.value
    assert made == Described(ULong(code), fields)
    assert list(map(type, made.value)) == list(map(type, fields))
    assert action == Described(ULong(1335734829061), [])
    assert (name, type(name)) == ("Some", str)
    assert (created_at, type(created_at)) == (1_700_000_000_000, Timestamp)


def test_an_action_is_echoed_as_it_was_sent() -> None:
    text = "SET MessageID=@a SET MessageID=@b"
    found = written(SubscriptionRuleDescription("r", action=SqlActionDescription(text)))
    assert found.value[1] == Described(ULong(1335734829062), [text, Int(20)])


def read(description: object, name: object = "r") -> SubscriptionRuleDescription:
    return read_new_rule(name, description)


ACTION = SqlActionDescription("SET a=1")


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        ({"sql-filter": {"expression": "a = 1"}}, (SqlFilterDescription("a = 1"),)),
        (
            {"sql-filter": {"expression": "a = 1"}, "sql-rule-action": None, "rule-name": "other"},
            (SqlFilterDescription("a = 1"),),
        ),
        ({"true-filter": {}}, (TrueFilterDescription(),)),
        ({"false-filter": {}}, (FalseFilterDescription(),)),
        ({"true-filter": {}, "sql-rule-action": {"expression": "SET a=1"}}, (TrueFilterDescription(), ACTION)),
        ({"correlation-filter": {}}, (CorrelationFilterDescription(),)),
        ({"correlation-filter": {"properties": None, "to": None}}, (CorrelationFilterDescription(),)),
        (
            {
                Symbol("correlation-filter"): {
                    **{name.replace("_", "-"): text for name, text in TEXTS.items()},
                    "content-type": Symbol("ct"),
                    "properties": {"p": Int(5), Symbol("q"): "x"},
                }
            },
            (
                CorrelationFilterDescription(
                    **TEXTS,
                    properties=(NamedValue("p", ValueType.INT, "5"), NamedValue("q", ValueType.STRING, "x")),
                ),
            ),
        ),
    ],
)
def test_the_maps_of_add_rule(description: object, expected: tuple) -> None:
    assert read(description) == SubscriptionRuleDescription("r", *expected)


@pytest.mark.parametrize(
    ("description", "why"),
    [
        (None, "rule-description is a null; it is a map"),
        ("a = 1", "rule-description is a string"),
        ({}, "has 0 filters"),
        ({"sql-filter": None}, "has 0 filters"),
        ({"sql-filter": {"expression": "a=1"}, "true-filter": {}}, "has 2 filters"),
        ({"sql-filter": "a = 1"}, "sql-filter is a string; it is a map"),
        ({"sql-filter": {}}, "the expression of sql-filter is a null"),
        ({"sql-filter": {"expression": 5}}, "the expression of sql-filter is a long"),
        ({"sql-filter": {5: "x"}}, "a key of sql-filter is no string"),
        ({"true-filter": [1]}, "true-filter is a list"),
        ({"correlation-filter": {"label": Int(5)}}, "label of the correlation filter is a int"),
        ({"correlation-filter": {"properties": [1]}}, "properties is a list"),
        ({"correlation-filter": {"properties": {1: 2}}}, "a key of properties is no string"),
        ({"correlation-filter": {"properties": {"p": [1]}}}, "The property 'p' of a rule is a list"),
        ({"true-filter": {}, "sql-rule-action": {}}, "the expression of sql-rule-action is a null"),
        ({"true-filter": {}, "sql-rule-action": "x"}, "sql-rule-action is a string"),
    ],
)
def test_what_is_missing_or_of_another_type_is_refused(description: object, why: str) -> None:
    with pytest.raises(ServiceError, match=why) as refused:
        read(description)
    assert refused.value.condition is ARGUMENT_ERROR


def test_a_name_is_a_string() -> None:
    with pytest.raises(ServiceError, match="rule-name is a null"):
        read({"true-filter": {}}, name=None)
    assert type(read({"true-filter": {}}, name=Symbol("a")).name) is str


def test_a_rule_that_was_added_is_listed_as_it_was_sent() -> None:
    sent = {"sql-filter": {"expression": " a=1 "}, "sql-rule-action": {"expression": "SET a=1;"}}
    chosen, action, name, _ = written(read(sent, name="Mixed Case")).value
    assert (chosen.value[0], action.value[0], name) == (" a=1 ", "SET a=1;", "Mixed Case")
