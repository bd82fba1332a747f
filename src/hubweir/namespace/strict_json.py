"""JSON of strangers: depth, repeated names, numbers that are none, and text that is none are refused. (Rule R25)

Stock readers take the last of two members with one name and numbers that no number is, so that one text is two values
to two readers. Bodies of requests and JSON Web Tokens come through here. A Config.json, which its owner wrote and has
comments, is read by config/jsonc.py.
"""

from __future__ import annotations

import json
import math
import re

from hubweir.errors import HubweirError

DEPTH = 32
# An AMQP long has 19 digits; a number of thousands of them costs time and fits nowhere.
_NUMBER_LENGTH = 64
_LONG_MIN, _LONG_MAX = -(2**63), 2**63 - 1
# Strings are stepped over, so that brackets in them do not count. Linear: no two alternatives start alike.
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)


class IllegalJson(HubweirError):
    """A text that is no JSON, or not one that we take: why, for people, and nothing of what it holds."""


def read_json(data: bytes) -> object:
    """The value of a JSON document. Raises IllegalJson."""
    try:
        text = data.decode()
        _check_depth(text)
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
        raise IllegalJson("it is no UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise IllegalJson(f"line {error.lineno}, column {error.colno}: {error.msg}") from None
    return value


def read_object(data: bytes) -> dict[str, object]:
    """The one JSON object that data is. Raises IllegalJson."""
    value = read_json(data)
    if not isinstance(value, dict):
        raise IllegalJson("it is no JSON object")
    return value


def _check_depth(text: str) -> None:
    if text.count("[") + text.count("{") <= DEPTH:
        return
    depth = 0
    for token in _TOKEN.finditer(text):
        character = text[token.start()]
        if character in "[{":
            depth += 1
            if depth > DEPTH:
                raise IllegalJson(f"it is nested deeper than {DEPTH} levels")
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
        raise IllegalJson("an object has one name twice")
    return members


def _integer(text: str) -> int:
    number = int(text) if len(text) <= _NUMBER_LENGTH else _LONG_MAX + 1
    if not _LONG_MIN <= number <= _LONG_MAX:
        raise IllegalJson("an integer does not fit into 64 bits")
    return number


def _float(text: str) -> float:
    number = float(text) if len(text) <= _NUMBER_LENGTH else math.inf
    if not math.isfinite(number):
        raise IllegalJson("a number is out of range or too long")
    return number


def _constant(text: str) -> float:
    raise IllegalJson(f"{text} is no JSON")
