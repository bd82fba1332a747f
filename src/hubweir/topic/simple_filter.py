"""Simple filters as tables: what a message's properties have to be, so that rules are found and need not be evaluated.

A filter is an OR of conjunctions, of one in most cases. A conjunction becomes

- keys: columns that have to equal a constant, or one of several (`=`, `IN`, correlation filters). topic_rules.py finds
  all conjunctions that have the same key columns with one look-up in a dictionary.
- checks: other operands that compare one property with a constant (`<>`, `<`, `<=`, `>`, `>=`, `NOT IN`, `IS NOT NULL`,
  LIKE with `%` at the ends of a literal text), each a call of one function in C.
- rest: what else there is, for the tree, on messages for which keys and checks hold.

A filter whose evaluation may fail is left to the tree: the tree would meet what fails before other operands that are
false, and tell a failure. Only messages for which a filter is true matter here, so *unknown* is *false*. A number
outside of (-2**53, 2**53) is no key and no check: inside, comparing as double and comparing exactly are the same.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from uuid import UUID

from hubweir.topic.correlation_filter import CorrelationFilter
from hubweir.topic.filtered_message import SYSTEM_PROPERTIES
from hubweir.topic.like_pattern import PatternPart
from hubweir.topic.rule import Filter, SqlFilter, TrueFilter
from hubweir.topic.sql_syntax import (
    And,
    Comparison,
    Constant,
    Exists,
    Expression,
    In,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
    SystemProperty,
    UserProperty,
)
from hubweir.topic.sql_values import Instant, Opaque, TimeSpan, Value, compare

# A property that is looked at: `user.` or `sys.`, and its folded name.
Column = str
USER_SCOPE: Final = "user."
SYSTEM_SCOPE: Final = "sys."

# Under how many keys one conjunction is found; further INs are left to the tree.
KEY_LIMIT: Final = 256


@dataclass(frozen=True, slots=True)
class Check:
    """One operand: it is true when the column's value is of one of these types and holds says so."""

    column: Column
    types: frozenset[type]
    holds: Callable[[Any], object]


@dataclass(frozen=True, slots=True)
class Conjunction:
    """All of it has to be true. keys: by column, in the order of their names, what key_of its value may be."""

    keys: tuple[tuple[Column, tuple[object, ...]], ...]
    checks: tuple[Check, ...]
    rest: tuple[Predicate, ...]


ALWAYS: Final = (Conjunction((), (), ()),)
NEVER: Final[tuple[Conjunction, ...]] = ()

_SYMMETRIC: Final = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
# The constant is the first argument, so each stands for its opposite direction.
_HOLDS: Final[dict[str, Callable[[Any, Any], object]]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.gt, "<=": operator.ge, ">": operator.lt, ">=": operator.le,
}  # fmt: skip
_NUMBERS: Final = frozenset({int, float})
_TEXTS: Final = frozenset({str})
_ANY_TYPE: Final = frozenset({bool, int, float, str, Instant, TimeSpan, UUID, bytes, Opaque})
_EXACT: Final = 2.0**53


def conjunctions_of(chosen: Filter) -> tuple[Conjunction, ...] | None:
    """The conjunctions of which one has to be true; None for a filter that is left to the tree."""
    if isinstance(chosen, SqlFilter):
        return _of_alternatives(_flat(chosen.predicate, Or)) if _cannot_fail(chosen.predicate) else None
    if isinstance(chosen, CorrelationFilter):
        return _of_alternatives([And(tuple(_equalities(chosen)))])
    return ALWAYS if isinstance(chosen, TrueFilter) else NEVER


def key_of(value: Value) -> object:
    """A value as a key of a dictionary: there, True would be 1."""
    return (bool, value) if type(value) is bool else value


def _equalities(chosen: CorrelationFilter) -> Iterator[Predicate]:
    for name, text in chosen.system_fields():
        yield Comparison("=", SystemProperty(name, name), Constant(text))
    for name, value in chosen.user_fields():
        yield Comparison("=", UserProperty(name, name), Constant(value))


def _flat(predicate: Predicate, kind: type[And] | type[Or]) -> Iterator[Predicate]:
    """The operands of an AND or OR, with those of the same kind directly inside it; else the predicate alone."""
    if not isinstance(predicate, kind):
        yield predicate
        return
    for operand in predicate.operands:
        yield from _flat(operand, kind)


def _of_alternatives(alternatives: Iterator[Predicate] | list[Predicate]) -> tuple[Conjunction, ...]:
    made = []
    for alternative in alternatives:
        builder = _Builder()
        if all(map(builder.add, _flat(alternative, And))):
            made.append(builder.built())
    return ALWAYS if ALWAYS[0] in made else tuple(made)


class _Builder:
    """Sorts the operands of one conjunction."""

    def __init__(self) -> None:
        self._keys: dict[Column, tuple[object, ...]] = {}
        self._checks: list[Check] = []
        self._rest: list[Predicate] = []

    def add(self, operand: Predicate) -> bool:
        """Put an operand where it belongs; False when it is never true."""
        negative = isinstance(operand, Not)
        inner = operand.operand if isinstance(operand, Not) else operand
        added: bool | None = None
        if isinstance(inner, Comparison):
            added = self._add_comparison(inner, negative)
        elif isinstance(inner, In):
            added = self._add_in(inner, negative)
        elif isinstance(inner, Like) and not negative:
            added = self._add_like(inner)
        elif (isinstance(inner, IsNull) and negative) or (isinstance(inner, Exists) and not negative):
            added = self._add_presence(inner)
        if added is None:
            self._rest.append(operand)
        return added is not False

    def built(self) -> Conjunction:
        return Conjunction(tuple(sorted(self._keys.items())), tuple(self._checks), tuple(self._rest))

    # Each of these says whether the operand was taken (True), is never true (False), or is for the tree (None).

    def _add_comparison(self, node: Comparison, negative: bool) -> bool | None:
        symbol, left, right = node.symbol, node.left, node.right
        if negative:
            # NOT turns round what two kinds that compare answer; for numbers that are none it is no other sign.
            if symbol not in ("=", "<>"):
                return None
            symbol = "<>" if symbol == "=" else "="
        if isinstance(left, Constant) and isinstance(right, Constant):
            return compare(symbol, left.value, right.value) is True
        if isinstance(left, Constant):
            symbol, left, right = _SYMMETRIC[symbol], right, left
        column = _column_of(left)
        if column is None or not isinstance(right, Constant) or not _is_exact(right.value):
            return None
        if symbol == "=" and column not in self._keys:
            self._keys[column] = (key_of(right.value),)
        elif compare(symbol, right.value, right.value) is None:
            return False  # kinds that have no order
        else:
            self._check(column, symbol, right.value)
        return True

    def _add_in(self, node: In, negative: bool) -> bool | None:
        column = _column_of(node.operand)
        values = [choice.value for choice in node.choices if isinstance(choice, Constant)]
        if column is None or len(values) < len(node.choices) or not all(map(_is_exact, values)):
            return None
        if negative:
            for value in values:
                self._check(column, "<>", value)
            return True
        keys = tuple(dict.fromkeys(map(key_of, values)))
        if column in self._keys or self._key_count() * len(keys) > KEY_LIMIT:
            return None
        self._keys[column] = keys
        return True

    def _add_like(self, node: Like) -> bool | None:
        column = _column_of(node.operand)
        if node.pattern is None:
            return False
        literals = _literals_of(node.pattern.parts)
        if column is None or literals is None:
            return None
        if len(literals) == 1 and column not in self._keys:
            self._keys[column] = (literals[0],)
            return True
        holds = _text_check(literals)
        if holds is None:
            return None
        self._checks.append(Check(column, _TEXTS, holds))
        return True

    def _add_presence(self, node: IsNull | Exists) -> bool | None:
        subject = node.operand if isinstance(node, IsNull) else node.subject
        column = _column_of(subject)
        # A user property that is null exists.
        if column is None or (isinstance(node, Exists) and isinstance(subject, UserProperty)):
            return None
        self._checks.append(Check(column, _ANY_TYPE, partial(operator.is_not, None)))
        return True

    def _check(self, column: Column, symbol: str, value: Value) -> None:
        types = _NUMBERS if type(value) in _NUMBERS else frozenset({type(value)})
        self._checks.append(Check(column, types, partial(_HOLDS[symbol], value)))

    def _key_count(self) -> int:
        count = 1
        for keys in self._keys.values():
            count *= len(keys)
        return count


def _column_of(expression: Expression) -> Column | None:
    if isinstance(expression, UserProperty):
        return USER_SCOPE + expression.name
    return SYSTEM_SCOPE + expression.name if isinstance(expression, SystemProperty) else None


def _is_exact(value: Value) -> bool:
    """Whether a constant may be a key or a check. Null is unknown, and not-a-number equals nothing: the tree's."""
    if type(value) in _NUMBERS:
        return -_EXACT < value < _EXACT  # type: ignore[operator]  # a number by the line above
    return value is not None and type(value) is not Opaque


def _literals_of(parts: tuple[PatternPart, ...]) -> list[str] | None:
    """The texts that parts of a pattern are; None where one has `_`."""
    return [part.anchor for part in parts] if all(map(_is_literal, parts)) else None


def _is_literal(part: PatternPart) -> bool:
    return len(part.anchor) == part.length


def _text_check(literals: list[str]) -> Callable[[Any], object] | None:
    """What tells whether a text fits; None for a pattern that needs more than one look."""
    if len(literals) == 1:
        return partial(operator.eq, literals[0])
    if len(literals) == 2 and not literals[1]:
        return operator.methodcaller("startswith", literals[0])
    if len(literals) == 2 and not literals[0]:
        return operator.methodcaller("endswith", literals[1])
    if len(literals) == 3 and not literals[0] and not literals[2]:
        return operator.methodcaller("__contains__", literals[1])
    return None


def _cannot_fail(node: Predicate) -> bool:
    """Whether the tree gives an answer for every message that can be read."""
    if isinstance(node, And | Or):
        return all(map(_cannot_fail, node.operands))
    if isinstance(node, Not):
        return _cannot_fail(node.operand)
    if isinstance(node, Comparison):
        return _is_plain(node.left) and _is_plain(node.right)
    if isinstance(node, In):
        return _is_plain(node.operand) and all(map(_is_plain, node.choices))
    if isinstance(node, Like):
        # A part between two `%` is searched for; where it has `_`, only the text says how many steps that takes.
        searched = () if node.pattern is None else node.pattern.parts[1:-1]
        return _is_plain(node.operand) and all(map(_is_literal, searched))
    if isinstance(node, IsNull):
        return _is_plain(node.operand)
    return isinstance(node, Exists) and _is_plain(node.subject)


def _is_plain(node: Expression) -> bool:
    """Whether it is a constant, or a property that messages can have."""
    if isinstance(node, SystemProperty):
        return node.name in SYSTEM_PROPERTIES
    return isinstance(node, Constant | UserProperty)
