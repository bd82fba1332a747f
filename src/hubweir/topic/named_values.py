"""Parameters and properties of rules: as the catalog keeps them, as filters compare them, and as AMQP carries them.

| kept as     | in a filter | on AMQP                          | taken from AMQP as well    |
|-------------|-------------|----------------------------------|----------------------------|
| string      | str         | string                           | symbol, char               |
| int         | int         | int; long beyond 32 bits         | byte, ubyte, short, ushort |
| long        | int         | long                             | uint, ulong                |
| double      | float       | double                           | float                      |
| boolean     | bool        | boolean                          |                            |
| dateTime    | Instant     | timestamp                        |                            |
| duration    | TimeSpan    | described com.microsoft:timespan |                            |

A duration is cut to milliseconds, and one without end is the longest there is. A time without a zone is UTC.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any, Final

from hubweir.amqp.types.values import (
    Byte,
    Int,
    Short,
    UByte,
    UShort,
    type_name,
)
from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.namespace.error_text import printable
from hubweir.namespace.iso_duration import UNLIMITED_MS, UNLIMITED_TEXT, BadDuration, duration_text, parse_duration
from hubweir.namespace.subscription_rule import NamedValue, ValueType
from hubweir.topic.sql_values import TICKS_OF_MS, Instant, TimeSpan, Value, amqp_of, value_of

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,20}")
_TIME: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,7}))?(?:Z|([+-])([0-9]{2}):([0-9]{2}))?"
)
_EPOCH: Final = datetime(1970, 1, 1)
_SECOND_TICKS: Final = 1_000 * TICKS_OF_MS


def values_by_name(named: Iterable[NamedValue]) -> dict[str, Value]:
    """The values of the language by their names. Raises ServiceError ARGUMENT_ERROR for a text that is none."""
    return {each.name: value_of_named(each) for each in named}


def value_of_named(named: NamedValue) -> Value:
    """The value of the language. Raises ServiceError ARGUMENT_ERROR for a text that is none of its type."""
    try:
        return _READ[named.type](named.text)
    except ValueError:
        raise ServiceError(
            ARGUMENT_ERROR,
            f"The value of '{printable(named.name, 64)}', '{printable(named.text, 64)}', is no {named.type.value}.",
        ) from None


def amqp_of_named(named: NamedValue) -> object:
    """The value on AMQP. Raises as value_of_named."""
    value = value_of_named(named)
    # XML may call any whole number an int, and AMQP's has 32 bits.
    is_int = named.type is ValueType.INT and type(value) is int and value in _INT32
    return Int(value) if is_int else amqp_of(value)  # type: ignore[arg-type]  # an integer by the line above


def named_of_amqp(name: str, amqp: object) -> NamedValue:
    """What the catalog keeps of a value that came by AMQP. Raises ServiceError ARGUMENT_ERROR for another type."""
    value = value_of(amqp)
    kind, write = _WRITE.get(type(value), (ValueType.STRING, None))
    text = None if write is None else write(value)
    if text is None:
        raise ServiceError(
            ARGUMENT_ERROR,
            f"The property '{printable(name, 64)}' of a rule is a {type_name(amqp)} that no rule holds. "
            "It may be a string, an integer of 64 bits, a double, a boolean, a time or a time span.",
        )
    return NamedValue(name, ValueType.INT if type(amqp) in _INTS else kind, text)


_INTS: Final = frozenset({Int, Short, UShort, Byte, UByte})
_INT32: Final = range(-(2**31), 2**31)
_INT64: Final = range(-(2**63), 2**63)


def _read_integer(text: str) -> int:
    if not _INTEGER.fullmatch(text) or int(text) not in _INT64:
        raise ValueError
    return int(text)


def _read_double(text: str) -> float:
    if not text.isascii() or "_" in text:
        raise ValueError
    return float(text)


def _read_boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError
    return text == "true"


def _read_time(text: str) -> Instant:
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError
    moment, fraction, sign, hours, minutes = found.groups()
    away_s = (int(hours or 0) * 60 + int(minutes or 0)) * 60 * (-1 if sign == "-" else 1)
    seconds = (datetime.fromisoformat(moment) - _EPOCH) // timedelta(seconds=1) - away_s
    return Instant(seconds * _SECOND_TICKS + int((fraction or "").ljust(7, "0")))


def _read_span(text: str) -> TimeSpan:
    try:
        ms = parse_duration(text.removeprefix("-"))
    except BadDuration:
        raise ValueError from None
    return TimeSpan((-ms if text.startswith("-") else ms) * TICKS_OF_MS)


_READ: Final[dict[ValueType, Callable[[str], Value]]] = {
    ValueType.STRING: str,
    ValueType.INT: _read_integer,
    ValueType.LONG: _read_integer,
    ValueType.DOUBLE: _read_double,
    ValueType.BOOLEAN: _read_boolean,
    ValueType.DATE_TIME: _read_time,
    ValueType.DURATION: _read_span,
}


# Each writes a value, or None for one that has no text.


def _integer_text(value: int) -> str | None:
    return str(value) if value in _INT64 else None


def _double_text(value: float) -> str:
    """As XML Schema writes doubles."""
    if math.isfinite(value):
        return repr(value)
    return "NaN" if math.isnan(value) else "INF" if value > 0 else "-INF"


def _boolean_text(value: bool) -> str:
    return "true" if value else "false"


def _time_text(value: Instant) -> str | None:
    try:
        moment = _EPOCH + timedelta(microseconds=value.ticks // 10)
    except OverflowError:
        return None
    return moment.isoformat(timespec="milliseconds") + "Z"


def _span_text(value: TimeSpan) -> str:
    ms = abs(value.ticks) // TICKS_OF_MS
    text = UNLIMITED_TEXT if ms >= UNLIMITED_MS else duration_text(ms)
    return f"-{text}" if value.ticks < 0 else text


_WRITE: Final[dict[type, tuple[ValueType, Callable[[Any], str | None]]]] = {
    str: (ValueType.STRING, str),
    int: (ValueType.LONG, _integer_text),
    float: (ValueType.DOUBLE, _double_text),
    bool: (ValueType.BOOLEAN, _boolean_text),
    Instant: (ValueType.DATE_TIME, _time_text),
    TimeSpan: (ValueType.DURATION, _span_text),
}
