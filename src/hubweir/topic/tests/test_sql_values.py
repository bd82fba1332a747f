"""Values of every AMQP type, comparison by kinds, and arithmetic with its ends."""

import math
from uuid import UUID

import pytest

from hubweir.amqp.types.format_codes import AmqpType
from hubweir.amqp.types.values import (
    Array,
    Byte,
    Char,
    Decimal32,
    Decimal64,
    Decimal128,
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
from hubweir.topic.sql_values import (
    OPAQUE,
    TEXT_LIMIT,
    EvaluationFailed,
    Instant,
    TimeSpan,
    Value,
    amqp_of,
    calculate,
    compare,
    negated,
    text_of,
    value_of,
)

SPAN, OFFSET, URI = "com.microsoft:timespan", "com.microsoft:datetime-offset", "com.microsoft:uri"
SOME_ID = UUID(int=7)


@pytest.mark.parametrize(
    ("amqp", "expected"),
    [
        (None, None),
        (True, True),
        (7, 7),
        *((kind(7), 7) for kind in (UByte, UShort, UInt, ULong, Byte, Short, Int, Long)),
        (ULong(2**64 - 1), 2**64 - 1),
        (1.5, 1.5),
        (Float(0.5), 0.5),
        ("a", "a"),
        (Symbol("a"), "a"),
        (Char("a"), "a"),
        (SOME_ID, SOME_ID),
        (b"a", b"a"),
        (Timestamp(1_000), Instant(10_000_000)),
        (Timestamp(-1), Instant(-10_000)),
        (Described(Symbol(SPAN), 5), TimeSpan(5)),
        (Described(Symbol(SPAN), Int(5)), TimeSpan(5)),
        (Described(Symbol(OFFSET), 621_355_968_000_000_001), Instant(1)),
        (Described(Symbol(URI), "http://a"), "http://a"),
        (Described(Symbol(URI), 7), OPAQUE),
        (Described(Symbol(SPAN), "5"), OPAQUE),
        (Described(Symbol("other"), 5), OPAQUE),
        ([1], OPAQUE),
        ({"a": 1}, OPAQUE),
        (Array(AmqpType.INT, ()), OPAQUE),
    ],
)
def test_each_amqp_value_has_its_kind(amqp: object, expected: Value) -> None:
    found = value_of(amqp)
    assert found == expected and type(found) is type(expected)


# Encodings of the standard's tables: sign, exponent and coefficient written out.
@pytest.mark.parametrize(
    ("encoded", "expected"),
    [
        (Decimal32((101 << 23 | 15).to_bytes(4, "big")), 15.0),
        (Decimal32((100 << 23 | 15).to_bytes(4, "big")), 1.5),
        (Decimal32((1 << 31 | 101 << 23 | 9_999_999 & 0x7FFFFF).to_bytes(4, "big")), -(9_999_999 & 0x7FFFFF)),
        (Decimal32((0b11 << 29 | 101 << 21 | 9_999_999 & 0x1FFFFF).to_bytes(4, "big")), 9_999_999.0),
        (Decimal32((0b11 << 29 | 101 << 21 | 0x1FFFFF).to_bytes(4, "big")), 0.0),  # 10,485,759: more than 7 digits
        (Decimal64((398 << 53 | 42).to_bytes(8, "big")), 42.0),
        (Decimal64((1 << 63 | 396 << 53 | 4_250).to_bytes(8, "big")), -42.5),
        (Decimal128((6176 << 113 | 12_345).to_bytes(16, "big")), 12_345.0),
        (Decimal128((6174 << 113 | 12_345).to_bytes(16, "big")), 123.45),
        (Decimal128((6176 << 113 | 10**34 - 1).to_bytes(16, "big")), 1e34),
        (Decimal128((6176 << 113 | 10**34).to_bytes(16, "big")), 0.0),
        (Decimal128(((2**14 - 2**12 - 1) << 113 | 1).to_bytes(16, "big")), math.inf),  # 1E+6111
        (Decimal32((0b11110 << 26).to_bytes(4, "big")), math.inf),
        (Decimal64((0b111110 << 58).to_bytes(8, "big")), -math.inf),
    ],
)
def test_decimals_are_read_from_their_binary_encoding(encoded: bytes, expected: float) -> None:
    assert value_of(encoded) == expected


def test_a_decimal_that_is_no_number_equals_nothing() -> None:
    found = value_of(Decimal128((0b11111 << 122).to_bytes(16, "big")))
    assert isinstance(found, float) and math.isnan(found)
    assert compare("=", found, found) is False and compare("<>", found, found) is True


KINDS: list[Value] = [True, 1, 1.5, "a", Instant(1), TimeSpan(1), SOME_ID, b"a", OPAQUE, None]
NUMBERS = (int, float)


@pytest.mark.parametrize("left", KINDS, ids=repr)
@pytest.mark.parametrize("right", KINDS, ids=repr)
@pytest.mark.parametrize("symbol", ["=", "<>", "<", "<=", ">", ">="])
def test_only_values_of_one_kind_compare(left: Value, right: Value, symbol: str) -> None:
    alike = type(left) is type(right) or (type(left) in NUMBERS and type(right) in NUMBERS)
    known = alike and left is not None and left is not OPAQUE
    if type(left) in (bool, UUID, bytes):
        known = known and symbol in ("=", "<>")
    assert (compare(symbol, left, right) is not None) == known


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, 2),
        (-1, 1.5),
        (1.5, 2),
        ("a", "b"),
        ("B", "a"),
        ("", "a"),
        (Instant(1), Instant(2)),
        (TimeSpan(-1), TimeSpan(0)),
    ],
)
def test_order_and_equality_of_one_kind(left: Value, right: Value) -> None:
    signs = {"=": False, "<>": True, "<": True, "<=": True, ">": False, ">=": False}
    assert {symbol: compare(symbol, left, right) for symbol in signs} == signs
    assert compare("=", left, left) and compare("<=", left, left) and not compare("<", left, left)
    assert compare(">", right, left) and compare(">=", right, left)


def test_an_integer_compares_with_a_double_as_a_double() -> None:
    assert compare("=", 1, 1.0) is True
    assert compare("=", 2**53 + 1, float(2**53)) is True  # as C# does; as integers they differ
    assert compare("=", 2**53 + 1, 2**53) is False
    assert compare("<", 2**64 - 1, 1e30) is True


@pytest.mark.parametrize(
    ("left", "symbol", "right", "expected"),
    [
        (7, "+", 2, 9),
        (7, "-", 9, -2),
        (7, "*", -2, -14),
        (7, "/", 2, 3),
        (-7, "/", 2, -3),
        (7, "/", -2, -3),
        (-7, "/", -2, 3),
        (7, "%", 2, 1),
        (-7, "%", 2, -1),
        (7, "%", -2, 1),
        (7, "/", 2.0, 3.5),
        (7.5, "%", 2, 1.5),
        (-7.5, "%", 2, -1.5),
        (1.5, "+", 1, 2.5),
        (1.0, "/", 0, math.inf),
        (-1.0, "/", 0, -math.inf),
        (1.0, "/", -0.0, -math.inf),
        (1e308, "*", 10, math.inf),
        ("a", "+", "b", "ab"),
        ("a", "+", 1, "a1"),
        (1.5, "+", "a", "1.5a"),
        (True, "+", "a", "Truea"),
        (Instant(5), "-", Instant(3), TimeSpan(2)),
        (Instant(5), "+", TimeSpan(3), Instant(8)),
        (Instant(5), "-", TimeSpan(3), Instant(2)),
        (TimeSpan(5), "+", Instant(3), Instant(8)),
        (TimeSpan(5), "-", TimeSpan(3), TimeSpan(2)),
        (TimeSpan(5), "+", TimeSpan(3), TimeSpan(8)),
        # no result: unknown
        (None, "+", 1, None),
        (1, "+", None, None),
        (None, "+", "a", None),
        ("a", "-", "b", None),
        ("a", "*", 2, None),
        ("a", "+", b"b", None),
        (True, "+", 1, None),
        (Instant(5), "+", Instant(3), None),
        (TimeSpan(5), "-", Instant(3), None),
        (TimeSpan(5), "*", TimeSpan(3), None),
        (Instant(5), "+", 3, None),
        (3, "-", Instant(5), None),
        (3, "-", TimeSpan(5), None),
        (OPAQUE, "+", 1, None),
        (SOME_ID, "+", 1, None),
    ],
)
def test_arithmetic(left: Value, symbol: str, right: Value, expected: Value) -> None:
    found = calculate(symbol, left, right)
    assert found == expected and type(found) is type(expected)


@pytest.mark.parametrize(("left", "right"), [(0.0, 0), (math.nan, 0), (math.inf, math.inf)])
def test_a_double_without_a_result_is_no_number(left: float, right: float) -> None:
    for symbol in "/%":
        found = calculate(symbol, left, right)
        assert isinstance(found, float) and math.isnan(found)
    assert math.isnan(calculate("%", 5.0, 0.0))  # type: ignore[arg-type]
    assert calculate("%", 5.0, math.inf) == 5.0


@pytest.mark.parametrize(
    ("left", "symbol", "right", "why"),
    [
        (1, "/", 0, "divided by zero"),
        (1, "%", 0, "divided by zero"),
        (2**63 - 1, "+", 1, "64 bits"),
        (-(2**63), "-", 1, "64 bits"),
        (2**62, "*", 2, "64 bits"),
        (-(2**63), "/", -1, "64 bits"),
        (Instant(2**63 - 1), "+", TimeSpan(1), "ticks"),
        (TimeSpan(-(2**63)), "-", TimeSpan(1), "ticks"),
        ("a" * TEXT_LIMIT, "+", "b", "longer"),
    ],
)
def test_arithmetic_without_a_result_in_its_kind_fails(left: Value, symbol: str, right: Value, why: str) -> None:
    with pytest.raises(EvaluationFailed, match=why):
        calculate(symbol, left, right)


def test_the_ends_of_64_bits_are_results() -> None:
    assert calculate("+", 2**63 - 2, 1) == 2**63 - 1
    assert calculate("-", -(2**63) + 1, 1) == -(2**63)
    assert calculate("+", "a" * (TEXT_LIMIT - 1), "b") is not None


def test_a_sign_turns_numbers_and_spans() -> None:
    assert [negated(value) for value in (5, -1.5, TimeSpan(5))] == [-5, 1.5, TimeSpan(-5)]
    assert [negated(value) for value in (None, "a", True, Instant(5), OPAQUE)] == [None] * 5
    assert math.copysign(1, negated(0.0)) == -1  # type: ignore[arg-type]
    with pytest.raises(EvaluationFailed):
        negated(-(2**63))


@pytest.mark.parametrize(
    ("value", "text"),
    [(5, "5"), (5.0, "5"), (-0.25, "-0.25"), (1e20, "1e+20"), (math.nan, "nan"), (math.inf, "inf"), (True, "True")]
    + [("a", "a"), (SOME_ID, str(SOME_ID)), (None, None), (Instant(1), None), (b"a", None), (OPAQUE, None)]  # type: ignore[list-item]
    + [(1e15 - 1, "999999999999999"), (1 - 1e15, "-999999999999999")],
)
def test_text_of_values(value: Value, text: str | None) -> None:
    assert text_of(value) == text


def test_results_become_amqp_values() -> None:
    assert amqp_of(TimeSpan(5)) == Described(Symbol(SPAN), 5)
    moment = amqp_of(Instant(12_345_678))
    assert moment == 1_234 and type(moment) is Timestamp
    assert [amqp_of(value) for value in (None, 5, "a", SOME_ID)] == [None, 5, "a", SOME_ID]
