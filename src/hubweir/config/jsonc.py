"""JSON as people write it: with comments and trailing commas, and with the place of every value kept.

Otherwise strict (RFC 8259): one value, no NaN or Infinity, no numbers that a float cannot hold, no lone surrogates.
A member named twice is refused, because readers differ in which of the two they take; reading goes on to find more.
Limits: DEPTH_LIMIT, VALUES_LIMIT, NUMBER_LIMIT; how long a text may be is file_text.py's business.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import NoReturn

from hubweir.config.problems import Step, quoted

# The deepest legal file has about a dozen levels.
DEPTH_LIMIT = 32
# A value costs some 150 bytes of memory; a file of 1 MiB could hold half a million.
VALUES_LIMIT = 100_000
# Of a number, in characters: none of ours needs more, and int() of many digits is slow.
NUMBER_LIMIT = 40

_BLANK = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*)*")
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_WORD = re.compile(r"[^\s,:{}\[\]\"/]{1,64}")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_HEX = re.compile(r"[0-9a-fA-F]{4}")
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
_NOT_NUMBERS = frozenset(("nan", "inf", "infinity"))


class JsonError(Exception):
    """The text cannot be read. at: index of the character; steps: the path to the value around it."""

    def __init__(self, what: str, *, at: int, found: str = "", allowed: str = "", steps: tuple[Step, ...] = ()) -> None:
        super().__init__(what)
        self.what = what
        self.at = at
        self.found = found
        self.allowed = allowed
        self.steps = steps


@dataclass(frozen=True, slots=True)
class JsonNode:
    """A value and the index of its first character. An object is a dict in the file's order, an array a list."""

    at: int
    value: dict[str, Member] | list[JsonNode] | str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an object: where its name starts, and its value."""

    at: int
    node: JsonNode


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A member named a second time: where, under which path, and where the first one stands. The first is kept."""

    at: int
    first_at: int
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """A whole text: its value, and the members that were named twice."""

    root: JsonNode
    duplicates: tuple[Duplicate, ...]


def parse_jsonc(text: str) -> Document:
    """The one value of the text. Raises JsonError at the first place that is not JSON."""
    return _Parser(text).document()


class _Parser:
    """One pass over the text; nested values recurse, and DEPTH_LIMIT bounds that."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._steps: list[Step] = []
        self._values = 0
        self._duplicates: list[Duplicate] = []

    def document(self) -> Document:
        self._skip_blank()
        if self._at == len(self._text):
            self._fail("the file is empty", allowed="an object with the member UserConfig")
        root = self._value(depth=1)
        self._skip_blank()
        if self._at < len(self._text):
            self._fail("something follows the end of the document", allowed="nothing but blanks and comments")
        return Document(root, tuple(self._duplicates))

    def _value(self, *, depth: int) -> JsonNode:
        """The value that starts here; no blank stands before it."""
        self._values += 1
        if depth > DEPTH_LIMIT:
            self._fail("objects and arrays are nested too deeply", allowed=f"{DEPTH_LIMIT} levels")
        if self._values > VALUES_LIMIT:
            self._fail("the file holds too many values", allowed=f"{VALUES_LIMIT}")
        at = self._at
        match self._peek():
            case "{":
                return JsonNode(at, self._object(depth))
            case "[":
                return JsonNode(at, self._array(depth))
            case '"':
                return JsonNode(at, self._string())
        return JsonNode(at, self._word())

    def _object(self, depth: int) -> dict[str, Member]:
        members: dict[str, Member] = {}
        self._at += 1
        self._skip_blank()
        while self._peek() != "}":
            at = self._at
            if self._peek() != '"':
                self._fail("a member's name is missing", allowed='a name in double quotes, or "}"')
            name = self._string()
            self._steps.append(name)
            self._skip_blank()
            if self._peek() != ":":
                self._fail("a member's name has no value", allowed='":"')
            self._at += 1
            self._skip_blank()
            member = Member(at, self._value(depth=depth + 1))
            if name in members:
                self._duplicates.append(Duplicate(at, members[name].at, tuple(self._steps)))
            members.setdefault(name, member)
            self._steps.pop()
            self._next("}")
        self._at += 1
        return members

    def _array(self, depth: int) -> list[JsonNode]:
        elements: list[JsonNode] = []
        self._at += 1
        self._skip_blank()
        while self._peek() != "]":
            self._steps.append(len(elements))
            elements.append(self._value(depth=depth + 1))
            self._steps.pop()
            self._next("]")
        self._at += 1
        return elements

    def _next(self, end: str) -> None:
        """Go past the comma after an element; the last one may have one, too."""
        self._skip_blank()
        if self._peek() == ",":
            self._at += 1
            self._skip_blank()
        elif self._peek() != end:
            self._fail("values are not separated", allowed=f'"," or "{end}"')

    def _string(self) -> str:
        start = self._at
        self._at += 1
        parts: list[str] = []
        while True:
            plain = _PLAIN.match(self._text, self._at)
            assert plain is not None  # it matches nothing at all, too
            parts.append(plain.group())
            self._at = plain.end()
            match self._peek():
                case '"':
                    self._at += 1
                    return "".join(parts)
                case "\\":
                    parts.append(self._escape())
                case "" | "\r" | "\n":
                    self._at = start
                    self._fail("a text is not closed on its line", allowed='a closing double quote; line ends as "\\n"')
                case _:
                    self._fail("a text holds a control character", allowed='its escape, such as "\\t"')

    def _escape(self) -> str:
        start = self._at
        letter = self._text[start + 1 : start + 2]
        self._at += 2
        if letter in _ESCAPES:
            return _ESCAPES[letter]
        unit = self._unit(start) if letter == "u" else None
        if unit is None:
            self._at = start
            self._fail(
                "an escape is not one of JSON",
                found=quoted(self._text[start : start + 2]),
                allowed='a backslash before one of " \\ / b f n r t, or \\u and four hexadecimal digits',
            )
        if 0xD800 <= unit < 0xDC00 and self._text[self._at : self._at + 2] == "\\u":
            self._at += 2
            low = self._unit(start)
            if low is not None and 0xDC00 <= low < 0xE000:
                return chr(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00))
        if 0xD800 <= unit < 0xE000:
            self._at = start
            self._fail("half of a surrogate pair stands alone", found=quoted(self._text[start : start + 6]))
        return chr(unit)

    def _unit(self, start: int) -> int | None:
        digits = _HEX.match(self._text, self._at)
        if digits is None:
            return None
        self._at = digits.end()
        return int(digits.group(), 16)

    def _word(self) -> int | float | bool | None:
        """true, false, null or a number."""
        match = _WORD.match(self._text, self._at)
        if match is None:
            self._fail("a value is missing", allowed="an object, an array, a text, a number, true, false or null")
        word = match.group()
        if word in _WORDS:
            self._at = match.end()
            return _WORDS[word]
        if word.lstrip("+-").lower() in _NOT_NUMBERS:
            self._fail("NaN and Infinity are not JSON", found=quoted(word), allowed="a number")
        if _NUMBER.fullmatch(word) is None:
            hint = "; texts stand in double quotes" if word[0] in "'`" or word[0].isalpha() else ""
            self._fail(f"this is no value{hint}", found=quoted(word), allowed="a number, true, false or null")
        if len(word) > NUMBER_LIMIT:
            self._fail("a number is too long", found=quoted(word), allowed=f"{NUMBER_LIMIT} characters")
        if word.lstrip("-").isdigit():
            self._at = match.end()
            return int(word)
        number = float(word)
        if not math.isfinite(number):
            self._fail("a number is too large", found=quoted(word), allowed="what a 64-bit float holds")
        self._at = match.end()
        return number

    def _skip_blank(self) -> None:
        """Go past blanks and comments."""
        while True:
            blank = _BLANK.match(self._text, self._at)
            assert blank is not None  # it matches nothing at all, too
            self._at = blank.end()
            if not self._text.startswith("/*", self._at):
                return
            end = self._text.find("*/", self._at + 2)
            if end < 0:
                self._fail("a comment is not closed", found='"/*"', allowed='"*/" at its end')
            self._at = end + 2

    def _peek(self) -> str:
        """The character here; empty at the end."""
        return self._text[self._at : self._at + 1]

    def _fail(self, what: str, *, found: str | None = None, allowed: str = "") -> NoReturn:
        here = self._peek()
        found = found or (quoted(here) if here else "the end of the file")
        raise JsonError(what, at=self._at, found=found, allowed=allowed, steps=tuple(self._steps))
