"""Words of a SQL filter or action: where each starts, and what it is.

| kind      | examples                                   | value                      |
|-----------|--------------------------------------------|----------------------------|
| WORD      | `color`, `AND`, `sys`                      | the text; the parser knows the keywords |
| NAME      | `[a ]] b]`, `"a "" b"`                     | the name; never a keyword  |
| PARAMETER | `@limit`                                   | the name without `@`       |
| NUMBER    | `12`, `1.5`, `.5`, `2E-3`                  | int, or float with a point or an exponent |
| TEXT      | `'it''s'`                                  | the text                   |
| SIGN      | `= <> != < <= > >= + - * / % ( ) , . ;`    | the sign; `!=` is `<>`     |
| END       |                                            | behind the last character  |

A letter is what Unicode calls one, a digit of a name too; numbers have ASCII digits only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final, NoReturn

from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.namespace.error_text import printable


class TokenKind(Enum):
    """What a word of the text is."""

    WORD = "a word"
    NAME = "a name"
    PARAMETER = "a parameter"
    NUMBER = "a number"
    TEXT = "a text"
    SIGN = "a sign"
    END = "the end"


@dataclass(frozen=True, slots=True)
class Token:
    """One word: what it is, as it is written, where it starts (the first character is 0), and what it means."""

    kind: TokenKind
    text: str
    at: int
    value: str | int | float


class SqlError(ServiceError):
    """A filter or an action that is refused. at: where, the first character is 0; token: what stands there."""

    def __init__(self, at: int, token: str, why: str) -> None:
        near = f"near '{printable(token, 40)}'" if token else "at its end"
        super().__init__(ARGUMENT_ERROR, f"The SQL expression is wrong at character {at + 1}, {near}: {why}.")
        self.at = at
        self.token = token


INT64_LIMIT: Final = 2**63
_BLANKS: Final = frozenset(" \t\r\n\f\v")
_DIGITS: Final = frozenset("0123456789")
_SIGNS: Final = ("<>", "!=", "<=", ">=", "=", "<", ">", "+", "-", "*", "/", "%", "(", ")", ",", ".", ";")
_CLOSING: Final = {"[": "]", '"': '"', "'": "'"}


def tokens_of(text: str) -> list[Token]:
    """Cut the text into words, END last. Raises SqlError for what is none."""
    return list(_tokens(text))


def _tokens(text: str) -> Iterator[Token]:
    position = 0
    while True:
        while position < len(text) and text[position] in _BLANKS:
            position += 1
        if position == len(text):
            yield Token(TokenKind.END, "", position, "")
            return
        token = _token_at(text, position)
        yield token
        position += len(token.text)


def _token_at(text: str, start: int) -> Token:
    character = text[start]
    if character in _CLOSING:
        return _enclosed(text, start)
    if character in _DIGITS or (character == "." and text[start + 1 : start + 2] in _DIGITS):
        return _number(text, start)
    if character.isalpha() or character in "_@":
        end = _end_of_name(text, start + 1)
        written = text[start:end]
        if character != "@":
            return Token(TokenKind.WORD, written, start, written)
        if len(written) == 1:
            raise SqlError(start, written, "a parameter has a name behind its @")
        return Token(TokenKind.PARAMETER, written, start, written[1:])
    for sign in _SIGNS:
        if text.startswith(sign, start):
            return Token(TokenKind.SIGN, sign, start, "<>" if sign == "!=" else sign)
    raise SqlError(start, character, "no word starts with this character; a name that has it stands in [ ]")


def _end_of_name(text: str, position: int) -> int:
    while position < len(text) and (text[position].isalpha() or text[position].isdecimal() or text[position] in "_@"):
        position += 1
    return position


def _enclosed(text: str, start: int) -> Token:
    """A text or a name up to its closing sign; that sign twice stands for itself."""
    closing = _CLOSING[text[start]]
    parts: list[str] = []
    position = start + 1
    while True:
        end = text.find(closing, position)
        if end < 0:
            raise SqlError(start, text[start:], f"it is not closed; {closing} is missing")
        parts.append(text[position:end])
        position = end + 1
        if text[position : position + 1] != closing:
            break
        parts.append(closing)
        position += 1
    value = "".join(parts)
    if closing == "'":
        return Token(TokenKind.TEXT, text[start:position], start, value)
    if not value:
        raise SqlError(start, text[start:position], "a name has at least one character")
    return Token(TokenKind.NAME, text[start:position], start, value)


def _number(text: str, start: int) -> Token:
    position = _end_of_digits(text, start)
    whole = True
    if text[position : position + 1] == ".":
        whole, position = False, _end_of_digits(text, position + 1)
    if text[position : position + 1] in ("e", "E"):
        after = position + 1 + (text[position + 1 : position + 2] in ("+", "-"))
        whole, position = False, _end_of_digits(text, after)
        if position == after:
            raise SqlError(start, text[start:position], "an exponent has digits, as in 2E-3")
    if _end_of_name(text, position) != position:
        raise SqlError(start, text[start : _end_of_name(text, position)], "a number ends with a digit")
    written = text[start:position]
    if whole:
        # One more than the largest: the parser takes it behind a minus only.
        if len(written.lstrip("0")) > 19 or int(written) > INT64_LIMIT:
            _out_of_range(start, written, "an integer has 64 bits")
        return Token(TokenKind.NUMBER, written, start, int(written))
    if math.isinf(float(written)):
        _out_of_range(start, written, "a number with a point or an exponent is a double")
    return Token(TokenKind.NUMBER, written, start, float(written))


def _end_of_digits(text: str, position: int) -> int:
    while position < len(text) and text[position] in _DIGITS:
        position += 1
    return position


def _out_of_range(start: int, written: str, what: str) -> NoReturn:
    raise SqlError(start, written, f"it is out of range: {what}")
