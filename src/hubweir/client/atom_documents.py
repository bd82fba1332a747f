"""The XML of management: entries that describe entities, written and read for administration.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from hubweir.errors import (
    ARGUMENT_ERROR,
    CONDITION_OF_SYMBOL,
    ENTITY_EXISTS,
    INTERNAL_ERROR,
    NOT_FOUND,
    PRECONDITION_FAILED,
    RESOURCE_LIMIT,
    SERVER_BUSY,
    UNAUTHORIZED,
    ServiceError,
)
from hubweir.namespace.rights import parse_rights
from hubweir.namespace.rule_description import AuthorizationRuleDescription
from hubweir.namespace.secret import Secret

ATOM = "http://www.w3.org/2005/Atom"
SERVICE_BUS = "http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"
INSTANCE = "http://www.w3.org/2001/XMLSchema-instance"
_TYPE = f"{{{INSTANCE}}}type"

# Of an answer that does not name its condition.
_CONDITIONS = {
    400: ARGUMENT_ERROR,
    401: UNAUTHORIZED,
    403: RESOURCE_LIMIT,
    404: NOT_FOUND,
    409: ENTITY_EXISTS,
    412: PRECONDITION_FAILED,
    503: SERVER_BUSY,
}


class EntityType(Enum):
    """What is managed. The value is the element that describes it."""

    QUEUE = "QueueDescription"
    TOPIC = "TopicDescription"
    SUBSCRIPTION = "SubscriptionDescription"
    RULE = "RuleDescription"

    def list_path(self, parent: str) -> str:
        """Where all of them are listed. parent: the topic of subscriptions, the path of the subscription of rules."""
        match self:
            case EntityType.QUEUE:
                return "$Resources/queues"
            case EntityType.TOPIC:
                return "$Resources/topics"
            case EntityType.SUBSCRIPTION:
                return f"{parent}/Subscriptions"
        return f"{parent}/Rules"


@dataclass(frozen=True, slots=True)
class RulePart:
    """The filter or the action of a rule. kind: such as `SqlFilter`. members: its texts.

    values: of parameters, or of user properties; numbers and booleans as such, everything else as text.
    """

    kind: str
    members: Mapping[str, str]
    values: Mapping[str, str | int | float | bool]


@dataclass(frozen=True, slots=True)
class EntityInfo:
    """A described entity. name: within its parent. members: elements of its description and their texts, in order.

    counts: of messages, by the service's words. filter, action: of a rule. rules: its authorization rules.
    """

    name: str
    members: Mapping[str, str]
    counts: Mapping[str, int] = field(default_factory=dict)
    rules: tuple[AuthorizationRuleDescription, ...] = field(default=(), repr=False)  # their keys refuse to be printed
    filter: RulePart | None = None
    action: RulePart | None = None


def entry_document(kind: EntityType, members: Mapping[str, str], inside: str) -> bytes:
    """An entry whose description has these members, and behind them the XML inside."""
    written = "".join(f"<{name}>{escape(text)}</{name}>" for name, text in members.items())
    return (
        f'<entry xmlns="{ATOM}"><content type="application/xml"><{kind.value} xmlns="{SERVICE_BUS}" '
        f'xmlns:i="{INSTANCE}">{written}{inside}</{kind.value}></content></entry>'
    ).encode()


def entity_of(data: bytes) -> EntityInfo:
    """The entity of an answer that is one entry."""
    return _entity(_parsed(data))


def entries_of(data: bytes) -> list[EntityInfo]:
    """The entities of an answer that is a feed."""
    return [_entity(entry) for entry in _parsed(data).iter(f"{{{ATOM}}}entry")]


def error_of(status: int, data: bytes, *, symbol: str | None = None) -> ServiceError:
    """The refusal that an answer tells. symbol: of its condition (CONDITION_HEADER); None: it does not say.

    Without a symbol that the table has, the condition is the one that most often has this status.
    """
    try:
        text = ElementTree.fromstring(data).findtext("Detail") or ""
    except ElementTree.ParseError:
        text = ""
    told = CONDITION_OF_SYMBOL.get(symbol or "")
    return ServiceError(told or _CONDITIONS.get(status, INTERNAL_ERROR), text or f"The service answered {status}.")


def _parsed(data: bytes) -> ElementTree.Element:
    try:
        return ElementTree.fromstring(data)
    except ElementTree.ParseError as error:
        raise ServiceError(INTERNAL_ERROR, f"The service's answer cannot be read: {error}.") from None


def _entity(entry: ElementTree.Element) -> EntityInfo:
    try:
        return _described(entry)
    except ValueError as error:  # what is to be a number is none
        raise ServiceError(INTERNAL_ERROR, f"The service's answer cannot be read: {error}.") from None


def _described(entry: ElementTree.Element) -> EntityInfo:
    name = entry.findtext(f"{{{ATOM}}}title") or ""
    content = entry.find(f"{{{ATOM}}}content")
    if content is None or not len(content):
        raise ServiceError(INTERNAL_ERROR, "The service's answer describes nothing.")
    members: dict[str, str] = {}
    counts: dict[str, int] = {}
    rules: tuple[AuthorizationRuleDescription, ...] = ()
    parts: dict[str, RulePart] = {}
    for element in content[0]:
        match _name(element):
            case "CountDetails":
                counts = {_name(child): int(child.text or "0") for child in element}
            case "AuthorizationRules":
                rules = tuple(_rule(rule) for rule in element)
            case "Filter" | "Action" as part:
                parts[part] = _part(element)
            case other:
                members[other] = element.text or ""
    action = parts.get("Action")
    if action is not None and action.kind == "EmptyRuleAction":
        action = None
    return EntityInfo(name, members, counts, rules, parts.get("Filter"), action)


def _rule(element: ElementTree.Element) -> AuthorizationRuleDescription:
    found = element.find(f"{{{SERVICE_BUS}}}Rights")
    rights = parse_rights(right.text or "" for right in (() if found is None else found))
    name, primary, secondary = (
        element.findtext(f"{{{SERVICE_BUS}}}{each}") or "" for each in ("KeyName", "PrimaryKey", "SecondaryKey")
    )
    return AuthorizationRuleDescription(name, rights, Secret(primary), Secret(secondary))


def _part(element: ElementTree.Element) -> RulePart:
    members = {_name(child): child.text or "" for child in element if not len(child)}
    values: dict[str, str | int | float | bool] = {}
    for pair in element.iter(f"{{{SERVICE_BUS}}}KeyValueOfstringanyType"):
        key, value = (pair.find(f"{{{SERVICE_BUS}}}{name}") for name in ("Key", "Value"))
        if key is not None and value is not None:
            values[key.text or ""] = _value(value.get(_TYPE, "").rpartition(":")[2], value.text or "")
    return RulePart(element.get(_TYPE, ""), members, values)


def _value(kind: str, text: str) -> str | int | float | bool:
    match kind:
        case "int" | "long":
            return int(text)
        case "double":
            return float(text)
        case "boolean":
            return text == "true"
    return text


def _name(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]
