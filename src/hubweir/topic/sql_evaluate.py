"""Tree and message to true, false or unknown: walks the tree, node by node, and counts steps.

This says what a filter means; simple_filter.py is faster for simple ones and is tested against it. Three values:
AND is false as soon as an operand is false, OR true as soon as one is true, and what stands behind is not looked at;
otherwise one unknown operand makes them unknown. NOT leaves unknown. A property that the message does not have is
unknown, and IS NULL and EXISTS alone tell it from a value. A system property that no message has (SYSTEM_PROPERTIES)
raises EvaluationFailed, as arithmetic without a result does, a message that cannot be read, and one step too many.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

from hubweir.namespace.error_text import printable
from hubweir.namespace.resource_path import fold
from hubweir.topic.filtered_message import SYSTEM_PROPERTIES, FilteredMessage
from hubweir.topic.sql_syntax import (
    And,
    Arithmetic,
    Comparison,
    Constant,
    Exists,
    Expression,
    In,
    IsNull,
    Like,
    NamedProperty,
    NewId,
    Not,
    Or,
    Predicate,
    PropertyNode,
    Sign,
    SystemProperty,
    UserProperty,
)
from hubweir.topic.sql_values import EvaluationFailed, TimeSpan, Value, calculate, compare, negated, value_of

# Makes the uuid of each newid().
NewUuid = Callable[[], UUID]

# A safety limit. Each node is one step, and each `%` of a pattern: a filter takes fewer than 2,000, on which
# simple_filter.py counts, unless LIKE with `_` goes over a long text. 10,000 steps of the worst kind took 5 ms here.
STEP_LIMIT: Final = 10_000

_SYSTEM_SCOPE: Final = "sys."


class Evaluation:
    """One evaluation, of one filter or action on one message."""

    __slots__ = ("_step_count", "message", "new_id")

    def __init__(self, message: FilteredMessage, new_id: NewUuid) -> None:
        self.message = message
        self.new_id = new_id
        self._step_count = 0

    def take_steps(self, count: int) -> None:
        """Count steps before they are taken; EvaluationFailed when they are too many."""
        self._step_count += count
        if self._step_count > STEP_LIMIT:
            raise EvaluationFailed(f"the evaluation takes more than {STEP_LIMIT} steps")

    def truth(self, predicate: Predicate) -> bool | None:
        """True, false, or None for unknown."""
        self.take_steps(1)
        return _TRUTH[type(predicate)](self, predicate)

    def value(self, expression: Expression) -> Value:
        """The value, None for null and unknown."""
        self.take_steps(1)
        return _VALUE[type(expression)](self, expression)


def _comparison(run: Evaluation, node: Comparison) -> bool | None:
    return compare(node.symbol, run.value(node.left), run.value(node.right))


def _is_null(run: Evaluation, node: IsNull) -> bool:
    return run.value(node.operand) is None


def _in(run: Evaluation, node: In) -> bool | None:
    operand = run.value(node.operand)
    if operand is None:
        return None
    known = True
    for choice in node.choices:
        equal = compare("=", operand, run.value(choice))
        if equal:
            return True
        known = known and equal is not None
    return False if known else None


def _like(run: Evaluation, node: Like) -> bool | None:
    operand = run.value(node.operand)
    if type(operand) is not str or node.pattern is None:
        return None
    return node.pattern.matches(operand, run.take_steps)


def _exists(run: Evaluation, node: Exists) -> bool:
    subject = node.subject
    if isinstance(subject, NamedProperty):
        name = run.value(subject.name)
        if type(name) is not str:
            return False
        subject = _property_named(name)
    if isinstance(subject, UserProperty):
        return subject.name in run.message.user_properties
    return _system_property(run, subject) is not None


def _not(run: Evaluation, node: Not) -> bool | None:
    truth = run.truth(node.operand)
    return None if truth is None else not truth


def _and(run: Evaluation, node: And) -> bool | None:
    known = True
    for operand in node.operands:
        truth = run.truth(operand)
        if truth is False:
            return False
        known = known and truth is not None
    return True if known else None


def _or(run: Evaluation, node: Or) -> bool | None:
    known = True
    for operand in node.operands:
        truth = run.truth(operand)
        if truth:
            return True
        known = known and truth is not None
    return False if known else None


def _constant(run: Evaluation, node: Constant) -> Value:
    return node.value


def _user_property(run: Evaluation, node: UserProperty) -> Value:
    return value_of(run.message.user_properties.get(node.name))


def _system_property(run: Evaluation, node: SystemProperty) -> Value:
    if node.name not in SYSTEM_PROPERTIES:
        raise EvaluationFailed(f"there is no system property {printable(node.spelling, 64)!r}")
    return run.message.system_property(node.name)


def _named_property(run: Evaluation, node: NamedProperty) -> Value:
    name = run.value(node.name)
    return run.value(_property_named(name)) if type(name) is str else None


def _property_named(name: str) -> PropertyNode:
    """The property that a text names: one of the system behind `sys.`, else an application property of that name."""
    if fold(name).startswith(_SYSTEM_SCOPE):
        spelling = name[len(_SYSTEM_SCOPE) :]
        return SystemProperty(fold(spelling), spelling)
    return UserProperty(fold(name), name)


def _new_id(run: Evaluation, node: NewId) -> UUID:
    return run.new_id()


def _sign(run: Evaluation, node: Sign) -> Value:
    value = run.value(node.operand)
    if node.symbol == "-":
        return negated(value)
    return value if type(value) in (int, float, TimeSpan) else None


def _arithmetic(run: Evaluation, node: Arithmetic) -> Value:
    value = run.value(node.first)
    for symbol, operand in node.rest:
        value = calculate(symbol, value, run.value(operand))
    return value


_TRUTH: Final[dict[type[Predicate], Callable[[Evaluation, Any], bool | None]]] = {
    Comparison: _comparison,
    IsNull: _is_null,
    In: _in,
    Like: _like,
    Exists: _exists,
    Not: _not,
    And: _and,
    Or: _or,
}
_VALUE: Final[dict[type[Expression], Callable[[Evaluation, Any], Value]]] = {
    Constant: _constant,
    UserProperty: _user_property,
    SystemProperty: _system_property,
    NamedProperty: _named_property,
    NewId: _new_id,
    Sign: _sign,
    Arithmetic: _arithmetic,
}
