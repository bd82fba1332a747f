"""Values of the filter language, and what its operators do with them.

| AMQP                                                       | in a filter           |
|------------------------------------------------------------|-----------------------|
| null                                                       | None                  |
| boolean                                                    | bool                  |
| every integer                                              | int                   |
| float, double, decimal32, decimal64, decimal128            | float                 |
| string, symbol, char, described `com.microsoft:uri`        | str                   |
| timestamp, described `com.microsoft:datetime-offset`       | Instant               |
| described `com.microsoft:timespan`                         | TimeSpan              |
| uuid, binary                                               | UUID, bytes           |
| anything else                                              | Opaque                |

The exact Python type of a value is its kind. Values of one kind compare with one another, and int with float, as
double; everything else, None first, gives None, which is *unknown*. So does arithmetic on kinds that have none.
Arithmetic that has no result in its kind raises EvaluationFailed: integers divide by zero, or leave 64 bits.
("Subscription Rule SQL Filter Syntax", "Subscription Rule SQL Action Syntax")
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from hubweir.amqp.types.values import (
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
from hubweir.errors import HubweirError


class EvaluationFailed(HubweirError):
    """A filter or an action cannot be evaluated for a message: what the service calls a FilterException."""


@dataclass(frozen=True, slots=True, order=True)
class Instant:
    """A point in time, in ticks of 100 ns since 1970-01-01T00:00:00Z."""

    ticks: int


@dataclass(frozen=True, slots=True, order=True)
class TimeSpan:
    """A length of time, in ticks of 100 ns."""

    ticks: int


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value that is there and that no operator knows."""


Value = bool | int | float | str | Instant | TimeSpan | UUID | bytes | Opaque | None

OPAQUE: Final = Opaque()
TICKS_OF_MS: Final = 10_000
# Of a described datetime-offset, which counts from the year 1.
EPOCH_TICKS: Final = 621_355_968_000_000_000
URI: Final = Symbol("com.microsoft:uri")
TIME_SPAN: Final = Symbol("com.microsoft:timespan")
DATE_TIME_OFFSET: Final = Symbol("com.microsoft:datetime-offset")

_INT64: Final = range(-(2**63), 2**63)
# Concatenation may not make a text longer than a property may be.
TEXT_LIMIT: Final = 32 * 1024


def value_of(amqp: object) -> Value:
    """The value of the language that an AMQP value is."""
    return _READ.get(type(amqp), _opaque)(amqp)


def _same(amqp: object) -> Value:
    return amqp  # type: ignore[return-value]  # the table below says of which types


def _opaque(amqp: object) -> Value:
    return OPAQUE


def _decimal(exponent_bits: int) -> Callable[[bytes], float]:
    """Reads a decimal of IEEE 754-2008 in its binary integer encoding: AMQP has no other (part 1, section 1.6)."""

    def read(encoded: bytes) -> float:
        width = 8 * len(encoded)
        word = int.from_bytes(encoded, "big")
        sign = "-" if word >> (width - 1) else ""
        if word >> (width - 5) & 0b1111 == 0b1111:
            return math.nan if word >> (width - 6) & 1 else float(f"{sign}inf")
        trailing = width - 1 - exponent_bits
        coefficient = word & ((1 << trailing) - 1)
        exponent = word >> trailing
        if word >> (width - 3) & 0b11 == 0b11:
            # The wide form: two bits that say so, the exponent, and a coefficient that begins with 100.
            trailing -= 2
            coefficient = word & ((1 << trailing) - 1) | 0b100 << trailing
            exponent = word >> trailing
        # Digits beyond the precision stand for zero.
        digits = (width // 32) * 9 - 2
        if coefficient >= 10**digits:
            coefficient = 0
        bias = (3 << (exponent_bits - 3)) + digits - 2
        return float(f"{sign}{coefficient}e{(exponent & ((1 << exponent_bits) - 1)) - bias}")

    return read


def _described(amqp: Described) -> Value:
    descriptor, value = amqp.descriptor, amqp.value
    if descriptor == URI and type(value) is str:
        return value
    if descriptor == TIME_SPAN and type(value) in _INTEGERS:
        return TimeSpan(int(value))  # type: ignore[call-overload]  # an integer by the line above
    if descriptor == DATE_TIME_OFFSET and type(value) in _INTEGERS:
        return Instant(int(value) - EPOCH_TICKS)  # type: ignore[call-overload]  # an integer by the line above
    return OPAQUE


_INTEGERS: Final = frozenset({UByte, UShort, UInt, ULong, Byte, Short, Int, Long, int})
_READ: Final[dict[type, Callable[..., Value]]] = {
    **dict.fromkeys((type(None), bool, int, float, str, UUID, bytes, Instant, TimeSpan, Opaque), _same),
    **dict.fromkeys(_INTEGERS - {int}, int),
    Float: float,
    Decimal32: _decimal(8),
    Decimal64: _decimal(10),
    Decimal128: _decimal(14),
    Symbol: str,
    Char: str,
    Timestamp: lambda amqp: Instant(amqp * TICKS_OF_MS),
    Described: _described,
}


def amqp_of(value: Value) -> object:
    """The AMQP value that a result becomes in a message: integers are longs, times have milliseconds."""
    if type(value) is Instant:
        return Timestamp(value.ticks // TICKS_OF_MS)
    if type(value) is TimeSpan:
        return Described(TIME_SPAN, value.ticks)
    return value


# Comparison

_SAME_OR_NOT: Final[dict[str, Callable[[object, object], bool]]] = {"=": operator.eq, "<>": operator.ne}
_COMPARE: Final[dict[str, Callable[..., bool]]] = {
    **_SAME_OR_NOT, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_ORDERED: Final = frozenset({int, float, str, Instant, TimeSpan})
_UNORDERED: Final = frozenset({bool, UUID, bytes})


def compare(symbol: str, left: Value, right: Value) -> bool | None:
    """Whether left stands in that relation to right; None where nobody can say.

    symbol: one of = <> < <= > >=. Texts compare by their characters' numbers; case counts.
    """
    kind = type(left)
    if kind is not type(right):
        if not ((kind is int and type(right) is float) or (kind is float and type(right) is int)):
            return None
        return _COMPARE[symbol](float(left), float(right))  # type: ignore[arg-type]  # numbers both
    if kind in _ORDERED or (kind in _UNORDERED and symbol in _SAME_OR_NOT):
        return _COMPARE[symbol](left, right)
    return None


# Arithmetic


def calculate(symbol: str, left: Value, right: Value) -> Value:
    """left symbol right, for one of + - * / %. Raises EvaluationFailed as the page says."""
    if left is None or right is None:
        return None
    kinds = type(left), type(right)
    if kinds == (int, int):
        return _of_integers(symbol, left, right)  # type: ignore[arg-type]  # integers both
    if kinds in _WITH_FLOAT:
        return _of_floats(symbol, float(left), float(right))  # type: ignore[arg-type]  # numbers both
    if symbol == "+" and str in kinds:
        return _concatenated(left, right)
    return _of_times(symbol, left, right)


def negated(value: Value) -> Value:
    """The value with its sign turned."""
    if type(value) is TimeSpan:
        return calculate("-", TimeSpan(0), value)
    return -value if type(value) is float else calculate("-", 0, value) if type(value) is int else None


_WITH_FLOAT: Final = frozenset({(int, float), (float, int), (float, float)})


def _of_integers(symbol: str, left: int, right: int) -> int:
    if symbol == "+":
        result = left + right
    elif symbol == "-":
        result = left - right
    elif symbol == "*":
        result = left * right
    elif right == 0:
        raise EvaluationFailed("an integer is divided by zero")
    else:
        # The quotient is cut towards zero and the remainder has the dividend's sign; Python rounds down.
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        result = quotient if symbol == "/" else left - quotient * right
    if result not in _INT64:
        raise EvaluationFailed(f"{left} {symbol} {right} is no integer of 64 bits")
    return result


def _of_floats(symbol: str, left: float, right: float) -> float:
    if symbol == "+":
        return left + right
    if symbol == "-":
        return left - right
    if symbol == "*":
        return left * right
    if symbol == "%":
        # Python raises where the standard has "not a number".
        return math.fmod(left, right) if right and math.isfinite(left) else math.nan
    if right:
        return left / right
    return math.nan if not left or math.isnan(left) else math.copysign(math.inf, left) * math.copysign(1.0, right)


def _concatenated(left: Value, right: Value) -> Value:
    texts = text_of(left), text_of(right)
    if texts[0] is None or texts[1] is None:
        return None
    if len(texts[0]) + len(texts[1]) > TEXT_LIMIT:
        raise EvaluationFailed(f"a text made with + is longer than {TEXT_LIMIT} characters")
    return texts[0] + texts[1]


def _of_times(symbol: str, left: Value, right: Value) -> Value:
    if symbol not in "+-" or type(right) not in (Instant, TimeSpan):
        return None
    sign = 1 if symbol == "+" else -1
    if type(right) is TimeSpan:
        if type(left) is TimeSpan:
            return TimeSpan(_ticks(left.ticks + sign * right.ticks))
        return Instant(_ticks(left.ticks + sign * right.ticks)) if type(left) is Instant else None
    if type(right) is Instant:
        if type(left) is Instant and symbol == "-":
            return TimeSpan(_ticks(left.ticks - right.ticks))
        return Instant(_ticks(left.ticks + right.ticks)) if type(left) is TimeSpan and symbol == "+" else None
    return None


def _ticks(ticks: int) -> int:
    if ticks not in _INT64:
        raise EvaluationFailed("a time lies outside of what 64 bits of ticks hold")
    return ticks


def text_of(value: Value) -> str | None:
    """A value as text, as `+` and a text property take it; None for what has none."""
    if type(value) is str:
        return value
    if type(value) is bool:
        return "True" if value else "False"
    if type(value) is float:
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if type(value) in (int, UUID):
        return str(value)
    return None
