"""SB-107: all given fields equal, case-sensitive; and numbers by value."""

import math

import pytest

from hubweir.amqp.types.values import Float, Int, Symbol, Timestamp, UInt
from hubweir.topic.correlation_filter import SYSTEM_FIELDS, CorrelationFilter
from hubweir.topic.filtered_message import PROPERTY_PLACES
from hubweir.topic.sql_values import Instant, Value
from hubweir.topic.tests.given_messages import message

FULL = {
    "correlation_id": "c", "message_id": "m", "to": "t", "reply_to": "r", "label": "l", "session_id": "s",
    "reply_to_session_id": "rs", "content_type": "ct",
}  # fmt: skip
SEEN = message(
    {"Color": "Red", "n": Int(5), "u": UInt(5), "half": Float(0.5), "on": True, "at": Timestamp(7), "none": None,
     "nan": math.nan},
    correlation_id="c", message_id="m", to="t", reply_to="r", subject="l", group_id="s", reply_to_group_id="rs",
    content_type=Symbol("ct"),
)  # fmt: skip


def test_a_filter_without_fields_matches_everything() -> None:
    assert CorrelationFilter().matches(SEEN)
    assert CorrelationFilter().matches(message())


def test_all_fields_together_match() -> None:
    assert CorrelationFilter(**FULL, properties={"Color": "Red", "n": 5}).matches(SEEN)
    assert sorted(FULL) == sorted(SYSTEM_FIELDS)


@pytest.mark.parametrize("field", FULL)
def test_each_field_alone_decides(field: str) -> None:
    assert CorrelationFilter(**{field: FULL[field]}).matches(SEEN)
    for other in ("x", FULL[field].upper(), ""):
        assert not CorrelationFilter(**{**FULL, field: other}).matches(SEEN)
    assert not CorrelationFilter(**{field: FULL[field]}).matches(message())
    assert field.replace("_", "") in PROPERTY_PLACES


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("Color", "Red", True),
        ("color", "Red", True),  # names have no case
        ("Color", "red", False),
        ("n", 5, True),
        ("n", 5.0, True),
        ("u", 5, True),
        ("n", "5", False),
        ("n", 6, False),
        ("half", 0.5, True),
        ("on", True, True),
        ("on", 1, False),
        ("at", Instant(70_000), True),
        ("at", 7, False),
        ("none", None, False),
        ("missing", None, False),
        ("missing", "x", False),
        ("nan", math.nan, False),
    ],
)
def test_application_properties_by_kind_and_value(name: str, value: Value, expected: bool) -> None:
    assert CorrelationFilter(properties={name: value}).matches(SEEN) is expected
    assert CorrelationFilter(label="l", properties={"Color": "Red", name: value}).matches(SEEN) is expected
    assert not CorrelationFilter(label="x", properties={name: value}).matches(SEEN)


def test_an_empty_text_is_a_field_that_is_given() -> None:
    assert not CorrelationFilter(session_id="").matches(message(subject="s"))
    assert CorrelationFilter(session_id="").matches(message(group_id=""))
