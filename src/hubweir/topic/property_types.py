"""Types of properties that an action sets: what an existing one keeps, and what a system property can hold.

An application property that is set again keeps its AMQP type where the value has a counterpart in it, and otherwise
takes the type of the value:

| type it has                     | keeps it for                                                                     |
|---------------------------------|----------------------------------------------------------------------------------|
| an integer                      | numbers, rounded (a half to the even neighbour), and texts of digits; in its range |
| float, double                   | numbers, and texts that are numbers                                              |
| string, symbol                  | everything that has a text; a symbol is ASCII                                    |
| char                            | texts of one character                                                           |
| boolean                         | booleans, and the texts true and false, in any case                              |
| uuid                            | uuids, and texts of the form 01234567-89ab-cdef-0123-456789abcdef                |
| timestamp, and the others       | values of the same kind                                                          |
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

from hubweir.amqp.types.encode import encode
from hubweir.amqp.types.values import (
    Byte,
    Char,
    Float,
    Int,
    Long,
    Short,
    Symbol,
    UByte,
    UInt,
    ULong,
    UShort,
)
from hubweir.errors import EncodeError
from hubweir.namespace.iso_duration import BadDuration, parse_duration
from hubweir.topic.sql_values import TICKS_OF_MS, EvaluationFailed, TimeSpan, Value, text_of

# Bits and sign of the integers.
_RANGES: Final[dict[type[int], range]] = {
    UByte: range(2**8),
    UShort: range(2**16),
    UInt: range(2**32),
    ULong: range(2**64),
    Byte: range(-(2**7), 2**7),
    Short: range(-(2**15), 2**15),
    Int: range(-(2**31), 2**31),
    int: range(-(2**63), 2**63),
    Long: range(-(2**63), 2**63),
}
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,20}")
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?")
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")

# Of ids and keys that the broker itself uses (Service Bus quotas).
ID_LIMIT: Final = 128
_IDS: Final = frozenset(("messageid", "sessionid", "replytosessionid", "partitionkey"))
TEXT_LIMIT_BYTES: Final = 32 * 1024
TTL_LIMIT_MS: Final = 2**32 - 1


def converted(value: Value, existing: object) -> object:
    """The value in the AMQP type that existing has; None where it has no counterpart there."""
    convert = _CONVERT.get(type(existing))
    return None if convert is None else convert(value, type(existing))


def _to_integer(value: Value, kind: type[int]) -> int | None:
    if type(value) is str and _INTEGER.fullmatch(value):
        value = int(value)
    if type(value) is float and math.isfinite(value):
        value = round(value)
    return kind(value) if type(value) is int and value in _RANGES[kind] else None


def _to_float(value: Value, kind: type[float]) -> float | None:
    number = type(value) in (int, float) or (type(value) is str and _NUMBER.fullmatch(value))
    return kind(value) if number else None  # type: ignore[arg-type]  # a number, or a text that is one


def _to_text(value: Value, kind: type[str]) -> str | None:
    text = text_of(value)
    if text is None or (kind is Char and len(text) != 1) or (kind is Symbol and not text.isascii()):
        return None
    return kind(text)


def _to_boolean(value: Value, kind: type[bool]) -> bool | None:
    if type(value) is str:
        return {"true": True, "false": False}.get(value.lower())
    return value if type(value) is bool else None


def _to_uuid(value: Value, kind: type[UUID]) -> UUID | None:
    if type(value) is str and _UUID.fullmatch(value):
        return UUID(value)
    return value if type(value) is UUID else None


_CONVERT: Final[dict[type, Callable[[Value, Any], object]]] = {
    **dict.fromkeys(_RANGES, _to_integer),
    **dict.fromkeys((float, Float), _to_float),
    **dict.fromkeys((str, Symbol, Char), _to_text),
    bool: _to_boolean,
    UUID: _to_uuid,
}


def system_text(name: str, value: Value) -> str | None:
    """What a system property that is a text gets; None takes it away. name: folded.

    Raises EvaluationFailed for a value without a text, and for one that is too long.
    """
    if value is None:
        return None
    text = text_of(value)
    if text is None:
        raise EvaluationFailed(f"sys.{name} cannot hold a value of this type")
    if name in _IDS and len(text) > ID_LIMIT:
        raise EvaluationFailed(f"sys.{name} would have {len(text)} characters; at most {ID_LIMIT} are allowed")
    if encoded_size(text) > TEXT_LIMIT_BYTES or (name == "contenttype" and not text.isascii()):
        raise EvaluationFailed(f"sys.{name} cannot hold this text: it is too long, or has signs that it may not have")
    return text


def time_to_live(value: Value) -> TimeSpan | None:
    """What sys.TimeToLive gets: a time span, or a text of one, such as `00:05:00` or `PT5M` (iso_duration.py).

    More than 2**32 - 1 ms count as that. Raises EvaluationFailed for anything else, and for less than a millisecond.
    """
    if type(value) is str:
        value = _span_of(value)
    elif value is None:
        return None
    if type(value) is not TimeSpan or value.ticks < TICKS_OF_MS:
        raise EvaluationFailed("sys.TimeToLive holds a time span of at least a millisecond, such as '00:05:00'")
    return TimeSpan(min(value.ticks, TTL_LIMIT_MS * TICKS_OF_MS))


def _span_of(text: str) -> TimeSpan | None:
    try:
        return TimeSpan(parse_duration(text) * TICKS_OF_MS)
    except BadDuration:
        return None


def encoded_size(amqp: object) -> int:
    """Bytes of a value in a message. Raises EvaluationFailed when AMQP cannot carry it (a lone surrogate)."""
    try:
        return len(encode(amqp))
    except EncodeError as error:
        raise EvaluationFailed(f"the action sets what no message can carry: {error}") from None
