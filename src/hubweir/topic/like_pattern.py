"""Patterns of LIKE: `%` stands for any run of characters, `_` for one. They never become a regular expression.

A pattern is cut at its `%` into parts of fixed length. The first part has to stand at the start of the text, the last
one at its end, and each one between them at the first place behind the one before: where a later place would do, the
first does too. A part is found by its longest run of literal characters, with `str.find`, so only places where that run
stands are looked at. Each look counts as many steps as the part has such runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

# Runs of literal characters: where each starts in its part, and the run.
_Literals = tuple[tuple[int, str], ...]

_ANY_RUN: Final = "%"
_ANY_ONE: Final = "_"


class BadPattern(Exception):
    """A pattern that ends in its own escape character."""


@dataclass(frozen=True, slots=True)
class PatternPart:
    """What stands between two `%`. length counts `_` too; anchor is the longest run of literals, "" without one."""

    length: int
    literals: _Literals
    anchor_at: int
    anchor: str

    def stands_at(self, text: str, position: int) -> bool:
        """Whether the part matches text from position on; the caller knows that the text is long enough."""
        return all(text.startswith(literal, position + start) for start, literal in self.literals)


@dataclass(frozen=True, slots=True)
class LikePattern:
    """A pattern that was read once. parts: one more than the pattern has `%`."""

    parts: tuple[PatternPart, ...]

    def matches(self, text: str, take_steps: Callable[[int], None]) -> bool:
        """Whether the whole text fits. take_steps is told of each step before it is taken, and may raise."""
        first, last = self.parts[0], self.parts[-1]
        take_steps(len(self.parts))
        if len(self.parts) == 1:
            return len(text) == first.length and first.stands_at(text, 0)
        end = len(text) - last.length
        position = first.length
        if position > end or not first.stands_at(text, 0) or not last.stands_at(text, end):
            return False
        for part in self.parts[1:-1]:
            position = _find(part, text, position, end, take_steps)
            if position < 0:
                return False
            position += part.length
        return True


def parse_pattern(pattern: str, escape: str | None = None) -> LikePattern:
    """Read a pattern. A character behind escape means itself; BadPattern when there is none."""
    parts: list[PatternPart] = []
    characters: list[str | None] = []  # None: any one
    position = 0
    while position < len(pattern):
        character = pattern[position]
        position += 1
        if character == escape:
            if position == len(pattern):
                raise BadPattern
            characters.append(pattern[position])
            position += 1
        elif character == _ANY_RUN:
            parts.append(_part_of(characters))
            characters = []
        else:
            characters.append(None if character == _ANY_ONE else character)
    parts.append(_part_of(characters))
    return LikePattern(tuple(parts))


def _part_of(characters: list[str | None]) -> PatternPart:
    literals: list[tuple[int, str]] = []
    start = 0
    for position in range(len(characters) + 1):
        if position == len(characters) or characters[position] is None:
            literal = "".join(character for character in characters[start:position] if character is not None)
            if literal:
                literals.append((start, literal))
            start = position + 1
    anchor_at, anchor = max(literals, key=lambda run: len(run[1]), default=(0, ""))
    return PatternPart(len(characters), tuple(literals), anchor_at, anchor)


def _find(part: PatternPart, text: str, start: int, end: int, take_steps: Callable[[int], None]) -> int:
    """The first place in text[start:end] where the part matches, or -1."""
    while start + part.length <= end:
        place = text.find(part.anchor, start + part.anchor_at) - part.anchor_at
        if place < start or place + part.length > end:
            return -1
        take_steps(len(part.literals))
        if part.stands_at(text, place):
            return place
        start = place + 1
    return -1
