"""Reads the XML of a PUT on an event hub. Elements that the service sets itself are passed over.

The description stands alone or inside an Atom entry; namespaces and prefixes are not looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hubweir.gateway.http.strict_xml import Element, read_xml, refused
from hubweir.namespace.entity import Availability, parse_availability
from hubweir.namespace.rights import parse_rights
from hubweir.namespace.rule_description import AuthorizationRuleDescription
from hubweir.namespace.secret import Secret

_DIGITS_LIMIT = 6


@dataclass(frozen=True, slots=True)
class WantedHub:
    """What a request says; None: it says nothing about it."""

    retention_days: int | None = None
    partition_count: int | None = None
    rules: tuple[AuthorizationRuleDescription, ...] | None = None
    availability: Availability | None = None
    user_metadata: str | None = None


def read_hub(data: bytes, new_key: Callable[[], Secret]) -> WantedHub:
    """The wish in a request's body, which may be empty. new_key: makes a key for a rule that comes without one.

    Raises ServiceError.
    """
    if not data.strip():
        return WantedHub()
    description = _description(data, "EventHubDescription")
    status = _text(description, "Status")
    rules = description.child("AuthorizationRules")
    return WantedHub(
        _number(description, "MessageRetentionInDays"),
        _number(description, "PartitionCount"),
        None if rules is None else tuple(read_rule(rule, new_key) for rule in rules.children),
        parse_availability(status) if status else None,
        _text(description, "UserMetadata"),
    )


def read_group(data: bytes) -> str | None:
    """The user metadata that the body of a consumer group names, which may be empty. Raises ServiceError."""
    return _text(_description(data, "ConsumerGroupDescription"), "UserMetadata") if data.strip() else None


def _description(data: bytes, name: str) -> Element:
    description = read_xml(data).find(name)
    if description is None:
        raise refused(f"it holds no {name}")
    return description


def read_rule(rule: Element, new_key: Callable[[], Secret]) -> AuthorizationRuleDescription:
    """One AuthorizationRule; new_key: makes a key where it has none. Raises ServiceError."""
    rights = rule.child("Rights")
    names = [right.text.strip() for right in rights.children] if rights is not None else []
    primary, secondary = (_text(rule, name) for name in ("PrimaryKey", "SecondaryKey"))
    return AuthorizationRuleDescription(
        _text(rule, "KeyName") or "",
        parse_rights(names),
        Secret(primary) if primary else new_key(),
        Secret(secondary) if secondary else new_key(),
    )


def _text(element: Element, name: str) -> str | None:
    child = element.child(name)
    return None if child is None else child.text.strip()


def _number(element: Element, name: str) -> int | None:
    text = _text(element, name)
    if text is None or text == "":
        return None
    if not (text.isascii() and text.isdigit()) or len(text) > _DIGITS_LIMIT:
        raise refused(f"{name} is no number of at most {_DIGITS_LIMIT} digits")
    return int(text)
