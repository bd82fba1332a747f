"""JSON of strangers: depth, repeated names, numbers that are none, and text that is none are refused. (Rule R25)"""

from __future__ import annotations

import json
import math
import re

from hubweir.errors import ARGUMENT_ERROR, ServiceError

DEPTH = 32
# An AMQP long has 19 digits; a number of thousands of them costs time and fits nowhere.
_NUMBER_LENGTH = 64
_LONG_MIN, _LONG_MAX = -(2**63), 2**63 - 1
# Strings are stepped over, so that brackets in them do not count. Linear: no two alternatives start alike.
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)


def read_json(data: bytes, what: str) -> object:
    """The value of a JSON document; ServiceError ARGUMENT_ERROR says what is wrong. what: names it in texts."""
    try:
        text = data.decode()
        _check_depth(text, what)
        value: object = json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=_constant,
        )
        # A lone half of a surrogate pair is legal for the parser, and no character.
        if "\\" in text:
            _check_text(value)
    except UnicodeError:
        raise refused(what, "it is no UTF-8 text") from None
    except _Refused as error:
        raise refused(what, str(error)) from None
    except json.JSONDecodeError as error:
        raise refused(what, f"line {error.lineno}, column {error.colno}: {error.msg}") from None
    return value


def refused(what: str, why: str) -> ServiceError:
    return ServiceError(ARGUMENT_ERROR, f"{what} is not what it must be: {why}.")


class _Refused(ValueError):
    """Legal for the parser, not for us."""


def _check_depth(text: str, what: str) -> None:
    if text.count("[") + text.count("{") <= DEPTH:
        return
    depth = 0
    for token in _TOKEN.finditer(text):
        character = text[token.start()]
        if character in "[{":
            depth += 1
            if depth > DEPTH:
                raise _Refused(f"it is nested deeper than {DEPTH} levels")
        elif character in "]}":
            depth -= 1


def _check_text(value: object) -> None:
    """UnicodeEncodeError for text with half a character. Recursion is bounded by DEPTH."""
    if isinstance(value, str):
        value.encode()
    elif isinstance(value, dict):
        for name, member in value.items():
            name.encode()
            _check_text(member)
    elif isinstance(value, list):
        for member in value:
            _check_text(member)


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise _Refused("an object has one name twice")
    return members


def _integer(text: str) -> int:
    number = int(text) if len(text) <= _NUMBER_LENGTH else _LONG_MAX + 1
    if not _LONG_MIN <= number <= _LONG_MAX:
        raise _Refused("an integer does not fit into 64 bits")
    return number


def _float(text: str) -> float:
    number = float(text) if len(text) <= _NUMBER_LENGTH else math.inf
    if not math.isfinite(number):
        raise _Refused("a number is out of range or too long")
    return number


def _constant(text: str) -> float:
    raise _Refused(f"{text} is no JSON")
