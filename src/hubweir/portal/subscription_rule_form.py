"""A rule of a subscription as fields of a form: the sort of its filter, its texts, and values a line each.

A value is a line `name: value`, a string unless its type stands behind the name: `table (int): 7`. What lines cannot
hold, such as a value of two lines, a client may have put there; such a rule is shown and not edited, so that saving a
form never changes what nobody touched.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hubweir.errors import ARGUMENT_ERROR, NOT_ALLOWED, ServiceError
from hubweir.namespace.subscription_rule import (
    CorrelationFilterDescription,
    FalseFilterDescription,
    NamedValue,
    RuleFilter,
    SqlActionDescription,
    SqlFilterDescription,
    SubscriptionRuleDescription,
    TrueFilterDescription,
    ValueType,
)
from hubweir.portal.form import Form
from hubweir.portal.form_fields import FieldEntry, SettingField, choice

KIND = SettingField(
    "kind",
    "Filter type",
    FieldEntry.CHOICE,
    "",
    (("sql", "SQL"), ("correlation", "Correlation"), ("true", "Every message"), ("false", "No message")),
)
# Of a correlation filter: the field of its description, and what people call it.
SYSTEM_FIELDS = (
    ("correlation_id", "Correlation id"), ("message_id", "Message id"), ("to", "To"), ("reply_to", "Reply to"),
    ("label", "Subject"), ("session_id", "Session id"), ("reply_to_session_id", "Reply to session id"),
    ("content_type", "Content type"),
)  # fmt: skip
_TYPED = re.compile(r"(?P<name>.*\S)\s*\((?P<type>[A-Za-z]+)\)", re.DOTALL)
_TYPES = {each.value.lower(): each for each in ValueType}
Values = tuple[NamedValue, ...]


def rule_values(rule: SubscriptionRuleDescription) -> dict[str, str]:
    """What a form holds of a rule. ServiceError NOT_ALLOWED: a form cannot hold it."""
    values = {"name": rule.name, "kind": "true"}
    match rule.filter:
        case SqlFilterDescription(expression=expression, parameters=parameters):
            values |= {"kind": "sql", "expression": expression, "parameters": _lines(parameters)}
        case CorrelationFilterDescription() as correlation:
            texts = {name: getattr(correlation, name) for name, _ in SYSTEM_FIELDS}
            values |= {name: text for name, text in texts.items() if text is not None}
            values |= {"kind": "correlation", "properties": _lines(correlation.properties)}
        case FalseFilterDescription():
            values["kind"] = "false"
    if rule.action is not None:
        values |= {"action": rule.action.expression, "action_parameters": _lines(rule.action.parameters)}
    try:
        is_kept = read_rule_form(values, rule.name) == _without_time(rule)
    except ServiceError:
        is_kept = False
    if not is_kept:
        text = f"The rule '{rule.name}' has texts or values that this form cannot hold: change it with a client."
        raise ServiceError(NOT_ALLOWED, text)
    return values


def read_rule_form(form: Form, name: str) -> SubscriptionRuleDescription:
    """The rule that was entered. ServiceError ARGUMENT_ERROR; what texts of SQL mean is not looked at."""
    action, action_values = _text(form, "action"), _values(form, "action_parameters")
    if action_values and not action:
        raise ServiceError(ARGUMENT_ERROR, "There are parameters of an action, and there is no action.")
    made = SqlActionDescription(action, action_values) if action else None
    return SubscriptionRuleDescription(name, _filter(form), made)


def _filter(form: Form) -> RuleFilter:
    match choice(form, KIND):
        case "sql":
            expression = _text(form, "expression")
            if not expression:
                raise ServiceError(ARGUMENT_ERROR, "A SQL filter needs a condition, such as: colour = 'red'.")
            return SqlFilterDescription(expression, _values(form, "parameters"))
        case "correlation":
            texts = {name: form.get(name, "") or None for name, _ in SYSTEM_FIELDS}
            found = CorrelationFilterDescription(**texts, properties=_values(form, "properties"))
            if found == CorrelationFilterDescription():
                raise ServiceError(ARGUMENT_ERROR, "A correlation filter needs at least one field or property.")
            return found
        case "false":
            return FalseFilterDescription()
    return TrueFilterDescription()


def _text(form: Form, name: str) -> str:
    """Browsers end lines of a form as mail does."""
    return form.get(name, "").replace("\r\n", "\n").strip()


def _values(form: Form, field: str) -> Values:
    found: dict[str, NamedValue] = {}
    for line in filter(str.strip, form.get(field, "").replace("\r\n", "\n").split("\n")):
        name, colon, text = line.partition(":")
        kind, name, text = ValueType.STRING, name.strip(), text.strip()
        typed = _TYPED.fullmatch(name)
        if typed is not None and typed["type"].lower() in _TYPES:
            kind, name = _TYPES[typed["type"].lower()], typed["name"]
        if not colon or not name or name in found:
            raise ServiceError(
                ARGUMENT_ERROR, "Values are lines such as 'colour: red' or 'table (int): 7', each name once."
            )
        found[name] = NamedValue(name, kind, text)
    return tuple(found.values())


def _lines(values: Sequence[NamedValue]) -> str:
    return "\n".join(f"{_written_name(each)}: {each.text}" for each in values)


def _written_name(value: NamedValue) -> str:
    """A string's type stands there when its name ends as if it had another."""
    is_plain = value.type is ValueType.STRING and _TYPED.fullmatch(value.name) is None
    return value.name if is_plain else f"{value.name} ({value.type.value})"


def _without_time(rule: SubscriptionRuleDescription) -> SubscriptionRuleDescription:
    return SubscriptionRuleDescription(rule.name, rule.filter, rule.action)
