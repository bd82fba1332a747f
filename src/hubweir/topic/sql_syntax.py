"""The tree of a SQL filter or action, as the parser makes it and the evaluator walks it.

A node is either a Predicate, which is true, false or unknown, or an Expression, which has a value. A chain of AND, of
OR or of arithmetic of one rank is one node with many operands, so a tree is no deeper than its parentheses, signs and
NOTs.

| node                                        | stands for                                            |
|---------------------------------------------|-------------------------------------------------------|
| Constant                                    | a constant, or a parameter by its value               |
| UserProperty, SystemProperty                | `color`, `user.color`, `[color]`; `sys.Label`         |
| NamedProperty                               | `property(...)`, `p(...)`                             |
| NewId                                       | `newid()`                                             |
| Sign, Arithmetic                            | `-a`; `a + b - c`, `a * b / c % d`                    |
| Comparison, IsNull, In, Like, Exists        | predicates on values                                  |
| Not, And, Or                                | predicates on predicates; `NOT IN` is Not of In       |
| SetProperty, RemoveProperty                 | the statements of an action                           |
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hubweir.topic.like_pattern import LikePattern
from hubweir.topic.sql_values import Value


class Expression:
    """A node that has a value."""

    __slots__ = ()


class Predicate:
    """A node that is true, false or unknown."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Constant(Expression):
    """A value that no message changes. None is NULL, and a parameter that the rule does not have."""

    value: Value


@dataclass(frozen=True, slots=True)
class UserProperty(Expression):
    """An application property. name is folded, as names are compared; spelling is what the text says."""

    name: str
    spelling: str = field(compare=False)


@dataclass(frozen=True, slots=True)
class SystemProperty(Expression):
    """A property of the message itself, known or not. name is folded; spelling is what the text says."""

    name: str
    spelling: str = field(compare=False)


PropertyNode = UserProperty | SystemProperty


@dataclass(frozen=True, slots=True)
class NamedProperty(Expression):
    """The property whose name is the value of an expression."""

    name: Expression


@dataclass(frozen=True, slots=True)
class NewId(Expression):
    """A fresh uuid, another one each time."""


@dataclass(frozen=True, slots=True)
class Sign(Expression):
    """A sign before an operand."""

    symbol: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class Arithmetic(Expression):
    """first, then each symbol with its operand, from left to right. All symbols are of one rank."""

    first: Expression
    rest: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True)
class Comparison(Predicate):
    """symbol is one of = <> < <= > >=."""

    symbol: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class IsNull(Predicate):
    """True of NULL and of what is not there; never unknown."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class In(Predicate):
    """The operand equals one of the choices."""

    operand: Expression
    choices: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Like(Predicate):
    """The operand is a text that the pattern matches. pattern None: a parameter that is not there; always unknown."""

    operand: Expression
    pattern: LikePattern | None


@dataclass(frozen=True, slots=True)
class Exists(Predicate):
    """The message has the property, be it null."""

    subject: PropertyNode | NamedProperty


@dataclass(frozen=True, slots=True)
class Not(Predicate):
    """The other way round; unknown stays unknown."""

    operand: Predicate


@dataclass(frozen=True, slots=True)
class And(Predicate):
    """All of at least two operands."""

    operands: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Or(Predicate):
    """One of at least two operands."""

    operands: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class SetProperty:
    """`SET target = value`."""

    target: PropertyNode
    value: Expression


@dataclass(frozen=True, slots=True)
class RemoveProperty:
    """`REMOVE target`."""

    target: PropertyNode


Statement = SetProperty | RemoveProperty
