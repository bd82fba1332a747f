"""What keeps the type of a property, and what a system property can hold."""

import math
from uuid import UUID

import pytest

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
from hubweir.topic.property_types import converted, encoded_size, system_text, time_to_live
from hubweir.topic.sql_values import EvaluationFailed, Instant, TimeSpan, Value

AN_ID = UUID("01234567-89ab-cdef-0123-456789abcdef")


@pytest.mark.parametrize(
    ("value", "existing", "expected"),
    [
        (7, Int(1), Int(7)),
        (7.0, Int(1), Int(7)),
        (7.5, Int(1), Int(8)),
        (6.5, Int(1), Int(6)),
        (-7.4, Int(1), Int(-7)),
        ("7", Int(1), Int(7)),
        ("-7", Int(1), Int(-7)),
        ("+7", 1, 7),
        (7, ULong(1), ULong(7)),
        (7, 1, 7),
        (7, Long(1), Long(7)),
        (7, 0.5, 7.0),
        (7, Float(0.5), Float(7.0)),
        ("7.5", 0.5, 7.5),
        ("1e3", 0.5, 1000.0),
        (7, "a", "7"),
        (7.0, "a", "7"),
        ("é", "a", "é"),
        (0.5, "a", "0.5"),
        (True, "a", "True"),
        (AN_ID, "a", str(AN_ID)),
        ("b", Symbol("a"), Symbol("b")),
        (7, Symbol("a"), Symbol("7")),
        ("b", Char("a"), Char("b")),
        (7, Char("a"), Char("7")),
        (False, True, False),
        ("TRUE", False, True),
        ("false", True, False),
        (str(AN_ID).upper(), UUID(int=1), AN_ID),
        (AN_ID, UUID(int=1), AN_ID),
        # no counterpart
        ("x", Int(1), None),
        ("7.5", Int(1), None),
        ("٧", Int(1), None),
        (" 7", Int(1), None),
        ("7" * 21, Int(1), None),
        (True, Int(1), None),
        (math.nan, Int(1), None),
        (math.inf, Int(1), None),
        (None, Int(1), None),
        (Instant(1), Int(1), None),
        ("1_0", 0.5, None),
        ("nan", 0.5, None),
        (True, 0.5, None),
        (None, "a", None),
        (b"x", "a", None),
        (Instant(1), "a", None),
        ("é", Symbol("a"), None),
        ("bc", Char("a"), None),
        ("", Char("a"), None),
        (1, True, None),
        ("yes", True, None),
        ("0123456789abcdef0123456789abcdef", UUID(int=1), None),
        (7, UUID(int=1), None),
        (7, None, None),
        (7, Timestamp(1), None),
        (7, b"x", None),
        (7, Described(Symbol("com.microsoft:timespan"), 1), None),
    ],
)
def test_what_keeps_its_type(value: Value, existing: object, expected: object) -> None:
    found = converted(value, existing)
    assert found == expected and type(found) is type(expected)


@pytest.mark.parametrize(
    ("kind", "least", "most"),
    [
        (UByte, 0, 2**8 - 1), (UShort, 0, 2**16 - 1), (UInt, 0, 2**32 - 1), (ULong, 0, 2**64 - 1),
        (Byte, -(2**7), 2**7 - 1), (Short, -(2**15), 2**15 - 1), (Int, -(2**31), 2**31 - 1),
        (int, -(2**63), 2**63 - 1), (Long, -(2**63), 2**63 - 1),
    ],
)  # fmt: skip
def test_integers_keep_their_type_in_its_range(kind: type[int], least: int, most: int) -> None:
    for value in (least, most):
        assert converted(value, kind(1)) == value and converted(str(value), kind(1)) == value
    for value in (least - 1, most + 1):
        assert converted(value, kind(1)) is None and converted(str(value), kind(1)) is None


def test_system_texts() -> None:
    assert system_text("label", "x") == "x"
    assert system_text("label", 5) == "5"
    assert system_text("label", True) == "True"
    assert system_text("messageid", AN_ID) == str(AN_ID)
    assert system_text("label", None) is None
    assert system_text("sessionid", "") == ""


@pytest.mark.parametrize("name", ["messageid", "sessionid", "replytosessionid", "partitionkey"])
def test_ids_have_128_characters_at_most(name: str) -> None:
    assert system_text(name, "é" * 128)
    with pytest.raises(EvaluationFailed, match="129 characters; at most 128"):
        system_text(name, "é" * 129)
    assert system_text("label", "é" * 129)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("label", Instant(1)),
        ("label", b"x"),
        ("label", "x" * 32 * 1024),
        ("label", "\ud800"),
        ("contenttype", "é"),
    ],
)
def test_system_texts_that_no_message_can_hold_fail(name: str, value: Value) -> None:
    with pytest.raises(EvaluationFailed):
        system_text(name, value)


@pytest.mark.parametrize(
    ("value", "ticks"),
    [
        (TimeSpan(10_000), 10_000),
        (TimeSpan(2**62), (2**32 - 1) * 10_000),
        ("00:05:00", 300 * 10**7),
        ("1.02:03:04.5", (((24 + 2) * 60 + 3) * 60 + 4) * 10**7 + 5_000_000),
        ("0:00:00.0010000", 10_000),
        ("23:59:59", 86_399 * 10**7),
        ("PT5M", 300 * 10**7),
        ("P10675199DT2H48M5.4775807S", (2**32 - 1) * 10_000),
    ],
)
def test_times_to_live(value: Value, ticks: int) -> None:
    assert time_to_live(value) == TimeSpan(ticks)


def test_no_time_to_live_takes_it_away() -> None:
    assert time_to_live(None) is None


@pytest.mark.parametrize(
    "value",
    [
        TimeSpan(9_999), TimeSpan(0), TimeSpan(-(10**9)), 5, 5.0, "5", "24:00:00", "00:60:00", "-00:00:01", "P", "x",
        Instant(5),
    ],
)  # fmt: skip
def test_what_is_no_time_to_live_fails(value: Value) -> None:
    with pytest.raises(EvaluationFailed, match="'00:05:00'"):
        time_to_live(value)


def test_the_size_of_a_value_is_its_encoding() -> None:
    assert encoded_size("abc") == 5
    for unfit in (object(), "\ud800", 2**63):
        with pytest.raises(EvaluationFailed, match="no message can carry"):
            encoded_size(unfit)
