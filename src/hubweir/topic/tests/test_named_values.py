"""Values of rules in their three forms: kept, compared, on the wire."""

import math
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubweir.amqp.types.encode import encode
from hubweir.amqp.types.values import (
    Byte,
    Char,
    Described,
    Float,
    Int,
    Long,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)
from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.namespace.subscription_rule import NamedValue, ValueType
from hubweir.topic.named_values import amqp_of_named, named_of_amqp, value_of_named, values_by_name
from hubweir.topic.sql_values import Instant, TimeSpan, Value, value_of

SPAN = Symbol("com.microsoft:timespan")
DAY = 24 * 3_600 * 10_000_000


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (ValueType.STRING, "", ""),
        (ValueType.STRING, "1", "1"),
        (ValueType.INT, "-5", -5),
        (ValueType.LONG, "9223372036854775807", 2**63 - 1),
        (ValueType.DOUBLE, "1.5", 1.5),
        (ValueType.DOUBLE, "5", 5.0),
        (ValueType.DOUBLE, "-1e3", -1000.0),
        (ValueType.DOUBLE, "INF", math.inf),
        (ValueType.DOUBLE, "-INF", -math.inf),
        (ValueType.BOOLEAN, "true", True),
        (ValueType.BOOLEAN, "false", False),
        (ValueType.DATE_TIME, "1970-01-01T00:00:01Z", Instant(10_000_000)),
        (ValueType.DATE_TIME, "1970-01-01T00:00:01", Instant(10_000_000)),
        (ValueType.DATE_TIME, "1970-01-02T00:00:00.0000001Z", Instant(DAY + 1)),
        (ValueType.DATE_TIME, "1970-01-02T00:00:00.5Z", Instant(DAY + 5_000_000)),
        (ValueType.DATE_TIME, "1970-01-02T02:00:00+02:00", Instant(DAY)),
        (ValueType.DATE_TIME, "1970-01-01T18:30:00-05:30", Instant(DAY)),
        (ValueType.DATE_TIME, "1969-12-31T23:59:59Z", Instant(-10_000_000)),
        (ValueType.DATE_TIME, "0001-01-01T00:00:00Z", Instant(-621_355_968_000_000_000)),
        (ValueType.DURATION, "PT1.5S", TimeSpan(15_000_000)),
        (ValueType.DURATION, "-P1D", TimeSpan(-DAY)),
        (ValueType.DURATION, "P10675199DT2H48M5.4775807S", TimeSpan(10_675_199 * DAY)),
    ],
)
def test_texts_have_the_values_of_their_types(kind: ValueType, text: str, expected: Value) -> None:
    found = value_of_named(NamedValue("p", kind, text))
    assert found == expected and type(found) is type(expected)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (ValueType.INT, ""), (ValueType.INT, "1.5"), (ValueType.INT, " 1"), (ValueType.INT, "1_0"),
        (ValueType.INT, "١"),
        (ValueType.LONG, "9223372036854775808"), (ValueType.LONG, "9" * 5_000), (ValueType.DOUBLE, ""),
        (ValueType.DOUBLE, "1_0"), (ValueType.DOUBLE, "one"), (ValueType.DOUBLE, "١"), (ValueType.BOOLEAN, "True"),
        (ValueType.BOOLEAN, "1"), (ValueType.DATE_TIME, "1970-01-01"), (ValueType.DATE_TIME, "1970-13-01T00:00:00Z"),
        (ValueType.DATE_TIME, "1970-01-01T25:00:00Z"), (ValueType.DATE_TIME, "1970-01-01T00:00:00.12345678Z"),
        (ValueType.DURATION, ""), (ValueType.DURATION, "5"), (ValueType.DURATION, "--PT1S"),
    ],
)  # fmt: skip
def test_texts_that_are_none_of_their_type_are_refused(kind: ValueType, text: str) -> None:
    with pytest.raises(ServiceError, match=f"The value of 'p', .*, is no {kind.value}") as refused:
        value_of_named(NamedValue("p", kind, text))
    assert refused.value.condition is ARGUMENT_ERROR and len(refused.value.text) < 200


@pytest.mark.parametrize(
    ("amqp", "kind", "text"),
    [
        ("a", ValueType.STRING, "a"),
        (Symbol("a"), ValueType.STRING, "a"),
        (Char("a"), ValueType.STRING, "a"),
        *((kind(5), ValueType.INT, "5") for kind in (Int, Short, UShort, Byte, UByte)),
        *((kind(5), ValueType.LONG, "5") for kind in (int, Long, UInt, ULong)),
        (1.5, ValueType.DOUBLE, "1.5"),
        (Float(0.5), ValueType.DOUBLE, "0.5"),
        (math.nan, ValueType.DOUBLE, "NaN"),
        (math.inf, ValueType.DOUBLE, "INF"),
        (-math.inf, ValueType.DOUBLE, "-INF"),
        (True, ValueType.BOOLEAN, "true"),
        (False, ValueType.BOOLEAN, "false"),
        (Timestamp(1_500), ValueType.DATE_TIME, "1970-01-01T00:00:01.500Z"),
        (Timestamp(-1), ValueType.DATE_TIME, "1969-12-31T23:59:59.999Z"),
        (Described(SPAN, 15_000_000), ValueType.DURATION, "PT1.5S"),
        (Described(SPAN, -DAY), ValueType.DURATION, "-P1D"),
        (Described(SPAN, 0), ValueType.DURATION, "PT0S"),
        (Described(SPAN, 2**63 - 1), ValueType.DURATION, "P10675199DT2H48M5.4775807S"),
    ],
)
def test_what_the_catalog_keeps_of_an_amqp_value(amqp: object, kind: ValueType, text: str) -> None:
    assert named_of_amqp("p", amqp) == NamedValue("p", kind, text)


@pytest.mark.parametrize(
    "amqp", [None, b"a", UUID(int=1), [1], {"a": 1}, ULong(2**63), Timestamp(2**62), Described(Symbol("x"), 1)]
)
def test_an_amqp_value_of_another_type_is_refused(amqp: object) -> None:
    with pytest.raises(ServiceError, match="The property 'p' of a rule is a") as refused:
        named_of_amqp("p", amqp)
    assert refused.value.condition is ARGUMENT_ERROR


@pytest.mark.parametrize(
    "amqp",
    [
        "a", Int(5), 5, 1.5, math.inf, True, Timestamp(1_500), Timestamp(-62_135_596_800_000),
        Described(SPAN, 15_000_000),
    ],
)  # fmt: skip
def test_values_go_back_as_they_came(amqp: object) -> None:
    found = amqp_of_named(named_of_amqp("p", amqp))
    assert found == amqp and type(found) is type(amqp)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2147483647", Int(2**31 - 1)), ("-2147483648", Int(-(2**31))),
        ("2147483648", Long(2**31)), ("-2147483649", Long(-(2**31) - 1)), ("9223372036854775807", Long(2**63 - 1)),
    ],
)  # fmt: skip
def test_an_int_that_has_more_than_32_bits_is_a_long_on_amqp(text: str, expected: int) -> None:
    assert encode(amqp_of_named(NamedValue("p", ValueType.INT, text))) == encode(expected)


@given(
    st.text() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.booleans()
    | st.integers(-62_135_596_800_000, 253_402_300_799_999).map(Timestamp)
    | st.integers(-(10**14), 10**14).map(lambda ms: Described(SPAN, ms * 10_000))
)  # fmt: skip
def test_what_is_kept_compares_as_what_came(amqp: object) -> None:
    named = named_of_amqp("p", amqp)
    assert value_of_named(named) == value_of(amqp)
    try:
        encode(amqp)
    except Exception:
        return  # a lone surrogate
    assert encode(amqp_of_named(named)) == encode(amqp)


def test_values_by_name() -> None:
    named = (NamedValue("@a", ValueType.INT, "1"), NamedValue("b", ValueType.BOOLEAN, "true"))
    assert values_by_name(named) == {"@a": 1, "b": True}
