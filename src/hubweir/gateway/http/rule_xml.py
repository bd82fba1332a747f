"""Rules of subscriptions as XML, read and written.

A filter's and an action's kind is the attribute `type` of XML Schema instances. Values of parameters and properties
have a type of XML Schema; clients find it by a prefix of four characters, and one of them reads no `long`.
"""

from __future__ import annotations

import re
from datetime import datetime

from hubweir.gateway.http.atom import description
from hubweir.gateway.http.messaging_content import time_text
from hubweir.gateway.http.strict_xml import Element, refused, xml_text
from hubweir.namespace.iso_duration import BadDuration, parse_duration
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

SCHEMA = "http://www.w3.org/2001/XMLSchema"
COMPATIBILITY = "<CompatibilityLevel>20</CompatibilityLevel>"
TRUE_SQL, FALSE_SQL = "1=1", "1>1"
# Beyond it a value travels as a double, because no client reads a long.
INT_LIMIT = 2**31

# The elements of a correlation filter, in order, and the fields of its description.
CORRELATION_FIELDS = {
    "CorrelationId": "correlation_id",
    "MessageId": "message_id",
    "To": "to",
    "ReplyTo": "reply_to",
    "Label": "label",
    "SessionId": "session_id",
    "ReplyToSessionId": "reply_to_session_id",
    "ContentType": "content_type",
}
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,7})?(Z|[+-][0-9]{2}:[0-9]{2})?")
_BOOLEANS = {"true": "true", "1": "true", "false": "false", "0": "false"}


def read_subscription_rule(rule: Element, name: str) -> SubscriptionRuleDescription:
    """rule: RuleDescription, or DefaultRuleDescription. name: the rule's; that in the XML is not looked at.

    Without a filter every message matches. What texts of SQL mean is not looked at. Raises ServiceError.
    """
    chosen, action = rule.child("Filter"), rule.child("Action")
    return SubscriptionRuleDescription(
        name,
        TrueFilterDescription() if chosen is None else _read_filter(chosen),
        None if action is None else _read_action(action),
    )


def subscription_rule_content(rule: SubscriptionRuleDescription) -> str:
    """RuleDescription."""
    kind, inside = _filter_content(rule.filter)
    action = '<Action i:type="EmptyRuleAction"/>'
    if rule.action is not None:
        action = f'<Action i:type="SqlRuleAction">{_sql(rule.action.expression, rule.action.parameters)}</Action>'
    more = (
        f'<Filter i:type="{kind}">{inside}</Filter>{action}<CreatedAt>{time_text(rule.created_at_ms)}</CreatedAt>'
        f"<Name>{xml_text(rule.name)}</Name>"
    )
    return description("RuleDescription", (), more)


def _read_filter(element: Element) -> RuleFilter:
    match element.type:
        case "TrueFilter":
            return TrueFilterDescription()
        case "FalseFilter":
            return FalseFilterDescription()
        case "SqlFilter":
            return SqlFilterDescription(_expression(element, "filter"), _values(element.child("Parameters")))
        case "CorrelationFilter":
            texts = {field: _text(element, name) for name, field in CORRELATION_FIELDS.items()}
            return CorrelationFilterDescription(**texts, properties=_values(element.child("Properties")))
    raise refused(f"there is no filter of the type {element.type[:32]!r}")


def _read_action(element: Element) -> SqlActionDescription | None:
    match element.type:
        case "EmptyRuleAction" | "":
            return None
        case "SqlRuleAction":
            return SqlActionDescription(_expression(element, "action"), _values(element.child("Parameters")))
    raise refused(f"there is no action of the type {element.type[:32]!r}")


def _expression(element: Element, what: str) -> str:
    text = _text(element, "SqlExpression")
    if not text:
        raise refused(f"the {what} has no SqlExpression")
    return text


def _text(element: Element, name: str) -> str | None:
    child = element.child(name)
    return None if child is None else child.text


def _values(element: Element | None) -> tuple[NamedValue, ...]:
    return () if element is None else tuple(_value(pair) for pair in element.children)


def _value(pair: Element) -> NamedValue:
    key, value = pair.child("Key"), pair.child("Value")
    if key is None or value is None:
        raise refused("a value of a rule has no Key or no Value")
    found = next((each for each in ValueType if each.value == value.type), None)
    if found is None:
        raise refused(f"a value of a rule has the type {value.type[:32]!r}, which is none of {_TYPES}")
    return NamedValue(key.text, found, _canonical(found, value.text))


def _canonical(kind: ValueType, text: str) -> str:
    """The text of a value, when it is one of its type."""
    match kind:
        case ValueType.STRING:
            return text
        case ValueType.INT | ValueType.LONG if _INTEGER.fullmatch(text.strip()) and -(2**63) <= int(text) < 2**63:
            return str(int(text))
        case ValueType.DOUBLE if _is_double(text):
            return text.strip()
        case ValueType.BOOLEAN if text.strip().lower() in _BOOLEANS:
            return _BOOLEANS[text.strip().lower()]
        case ValueType.DATE_TIME if _TIME.fullmatch(text.strip()) and _is_date(text.strip()):
            return text.strip()
        case ValueType.DURATION if _is_duration(text.strip()):
            return text.strip()
    raise refused(f"{text[:32]!r} is no {kind.value}")


def _is_double(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii() and "_" not in text


def _is_date(text: str) -> bool:
    try:
        datetime.fromisoformat(text[:19])
    except ValueError:
        return False
    return True


def _is_duration(text: str) -> bool:
    try:
        parse_duration(text.removeprefix("-"))
    except BadDuration:
        return False
    return True


def _filter_content(chosen: RuleFilter) -> tuple[str, str]:
    """The type of a filter's element, and what stands inside."""
    match chosen:
        case TrueFilterDescription():
            return "TrueFilter", _sql(TRUE_SQL, ())
        case FalseFilterDescription():
            return "FalseFilter", _sql(FALSE_SQL, ())
        case SqlFilterDescription(expression, parameters):
            return "SqlFilter", _sql(expression, parameters)
    texts = ((name, getattr(chosen, field)) for name, field in CORRELATION_FIELDS.items())
    inside = "".join(f"<{name}>{xml_text(text)}</{name}>" for name, text in texts if text is not None)
    return "CorrelationFilter", inside + _named("Properties", chosen.properties)


def _sql(expression: str, parameters: tuple[NamedValue, ...]) -> str:
    return f"<SqlExpression>{xml_text(expression)}</SqlExpression>{COMPATIBILITY}{_named('Parameters', parameters)}"


def _named(name: str, values: tuple[NamedValue, ...]) -> str:
    pairs = "".join(_pair(value) for value in values)
    return f"<{name}>{pairs}</{name}>" if pairs else ""


def _pair(value: NamedValue) -> str:
    kind = value.type
    if kind in (ValueType.INT, ValueType.LONG):
        kind = ValueType.INT if abs(int(value.text)) < INT_LIMIT else ValueType.DOUBLE
    typed = f'<Value i:type="d6p1:{kind.value}" xmlns:d6p1="{SCHEMA}">{xml_text(value.text)}</Value>'
    return f"<KeyValueOfstringanyType><Key>{xml_text(value.name)}</Key>{typed}</KeyValueOfstringanyType>"


_TYPES = ", ".join(each.value for each in ValueType)
