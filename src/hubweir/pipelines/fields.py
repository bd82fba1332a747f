"""One key of a description: the kind of value it takes, and its value out of TOML or out of --set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hubweir.pipelines.errors import IllegalDescription
from hubweir.spark.errors import IllegalOption
from hubweir.spark.option_texts import parse_seconds

Value = str | int | float | bool | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Field:
    """kind: text, list, count, flag or seconds (a duration). default None: it must be given.

    choices: when not empty, the only values. A list may be written as one text with commas.
    """

    name: str
    kind: str
    default: Value | None
    meaning: str
    choices: tuple[str, ...] = ()

    @property
    def allowed(self) -> str:
        """What may be written, for people."""
        return ", ".join(self.choices) if self.choices else _KINDS[self.kind][1]

    def read(self, given: Any, where: str) -> Value:
        """The value; where: file and key, for the error. IllegalDescription when it is no such value."""
        value = _KINDS[self.kind][0](given)
        # A list that must be given has something in it.
        if value is None or (value == () and self.default is None) or (self.choices and value not in self.choices):
            raise IllegalDescription(f"{where} is {str(given)[:64]!r}; allowed: {self.allowed}")
        return value


def _text(given: Any) -> Value | None:
    return given if isinstance(given, str) and given else None


def _list(given: Any) -> Value | None:
    if isinstance(given, str):
        given = split_list(given)
    return tuple(given) if isinstance(given, list | tuple) and all(isinstance(one, str) for one in given) else None


def _count(given: Any) -> Value | None:
    if isinstance(given, str) and given.isascii() and given.isdigit():
        given = int(given)
    return given if isinstance(given, int) and not isinstance(given, bool) and given >= 0 else None


def _flag(given: Any) -> Value | None:
    return given if isinstance(given, bool) else {"true": True, "false": False}.get(str(given).lower())


def _seconds(given: Any) -> Value | None:

    try:
        found = parse_seconds("", given) if isinstance(given, str) else None
    except IllegalOption:
        return None
    return found or None


# Kind: how a value is read (None: it is none), and what may be written.
_KINDS: dict[str, tuple[Callable[[Any], Value | None], str]] = {
    "text": (_text, "text that is not empty"),
    "list": (_list, 'a list of texts, such as ["a", "b"], or one text with commas'),
    "count": (_count, "a whole number of 0 or more"),
    "flag": (_flag, "true or false"),
    "seconds": (_seconds, "a duration above zero such as 500ms, 30s, 10m or 1h"),
}


def split_list(text: str) -> list[str]:
    """The parts between commas; a comma inside round brackets parts nothing: "a, max(b, c)" has two."""
    parts, depth = [""], 0
    for letter in text:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]
