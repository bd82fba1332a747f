"""Checks names of namespaces and hosts, entities of each kind, consumer groups, publishers and both kinds of rules.

Names are for people and addresses; no file or folder of a store is ever named by one. Captured files are, by a hub's
name, which is why dots alone are no segment of it. Comparison ignores case, and what was created keeps its spelling.
Only ASCII: two names that look alike must be alike. (Event Hubs quotas and naming rules)
"""

from __future__ import annotations

import re

from hubweir.errors import ARGUMENT_OUT_OF_RANGE, ServiceError
from hubweir.namespace.resource_path import fold

DEFAULT_GROUP = DEFAULT_RULE = "$Default"

HUB_NAME_LIMIT = 256
ENTITY_NAME_LIMIT = 260  # of queues and topics
GROUP_NAME_LIMIT = SUBSCRIPTION_NAME_LIMIT = SUBSCRIPTION_RULE_NAME_LIMIT = 50
NAMESPACE_NAME_LIMIT = 50
RULE_NAME_LIMIT = 256
HOST_NAME_LIMIT = 253
PUBLISHER_NAME_LIMIT = 128  # a publisher's name is its partition key

# An underscore is no host name of the internet, but names of containers have it.
_HOST_NAME = re.compile(r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*")
_ALPHANUMERIC = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_INNER = _ALPHANUMERIC | frozenset(".-_~")
# Address segments with a meaning of their own; an entity so named could not be told from what stands under another.
_RESERVED = frozenset(("consumergroups", "partitions", "publishers", "subscriptions"))


def check_hub_name(name: str) -> str:
    """The name, when it is legal: 1 to 256 of letters, digits, `.`, `-`, `_`, `~`, and `/` between segments.

    It starts and ends with a letter or digit. Raises ServiceError ARGUMENT_OUT_OF_RANGE.
    """
    return _check_path("event hub", name, HUB_NAME_LIMIT)


def check_entity_name(kind: str, name: str) -> str:
    """The name of a queue or a topic, when it is legal: as an event hub's, of 1 to 260. kind: as texts have it."""
    return _check_path(kind, name, ENTITY_NAME_LIMIT)


def check_subscription_name(name: str) -> str:
    """The name of a subscription within its topic, when it is legal: 1 to 50 letters, digits, `.`, `-`, `_`, `~`."""
    _check_length("subscription", name, SUBSCRIPTION_NAME_LIMIT)
    _check_word("subscription", name, name, inner=_INNER)
    return name


def check_subscription_rule_name(name: str) -> str:
    """The name of a subscription's rule, when it is legal: `$Default` in any case, or 1 to 50 as a subscription's."""
    _check_length("rule", name, SUBSCRIPTION_RULE_NAME_LIMIT)
    if fold(name) != fold(DEFAULT_RULE):
        _check_word("rule", name, name, inner=_INNER)
    return name


def check_group_name(name: str) -> str:
    """The name, when it is legal: `$Default` in any case, or 1 to 50 letters, digits, `.`, `-`, `_`, `~`."""
    if fold(name) == fold(DEFAULT_GROUP):
        return DEFAULT_GROUP
    _check_length("consumer group", name, GROUP_NAME_LIMIT)
    _check_word("consumer group", name, name, inner=_INNER)
    return name


def check_namespace_name(name: str) -> str:
    """The name, when it is legal: 1 to 50 letters, digits and inner hyphens."""
    _check_length("namespace", name, NAMESPACE_NAME_LIMIT)
    _check_word("namespace", name, name, inner=_ALPHANUMERIC | frozenset("-"))
    return name


def is_host_name(host: str) -> bool:
    """Whether a text in lower case is a host name: labels of letters, digits, `_` and inner `-`, without a port."""
    return len(host) <= HOST_NAME_LIMIT and _HOST_NAME.fullmatch(host) is not None


def check_host_name(name: str) -> str:
    """A host name, in lower case, when it is legal. Raises ServiceError ARGUMENT_OUT_OF_RANGE."""
    host = fold(name)
    if not is_host_name(host):
        raise _illegal("host", name, "write it without a port, such as hubs.example")
    return host


def check_rule_name(name: str) -> str:
    """The name, when it is legal: 1 to 256 printable ASCII characters, spaces inside; no control characters."""
    _check_length("authorization rule", name, RULE_NAME_LIMIT)
    if not (name.isascii() and name.isprintable()) or name != name.strip():
        raise _illegal("authorization rule", name, "use printable ASCII characters")
    return name


def check_publisher_name(name: str) -> str:
    """The name, when it can stand in an address: 1 to 128 printable characters, no slash or backslash."""
    _check_length("publisher", name, PUBLISHER_NAME_LIMIT)
    if not name.isprintable() or "/" in name or "\\" in name:
        raise _illegal("publisher", name, "use printable characters without slashes")
    return name


def _check_path(kind: str, name: str, limit: int) -> str:
    _check_length(kind, name, limit)
    _check_word(kind, name, name, inner=_INNER | {"/"})
    for segment in name.split("/"):
        if segment in ("", ".", ".."):
            raise _illegal(kind, name, "a segment between slashes is empty, one dot or two dots")
        if fold(segment) in _RESERVED:
            raise _illegal(kind, name, f"{segment!r} has a meaning of its own in addresses")
    return name


def _check_length(kind: str, name: str, limit: int) -> None:
    if not 1 <= len(name) <= limit:
        raise _illegal(kind, name, f"it has {len(name)} characters; 1 to {limit} are allowed")


def _check_word(kind: str, name: str, word: str, *, inner: frozenset[str]) -> None:
    if not word or word[0] not in _ALPHANUMERIC or word[-1] not in _ALPHANUMERIC:
        raise _illegal(kind, name, "it must start and end with an ASCII letter or digit")
    if not inner.issuperset(word):
        allowed = "".join(sorted(inner - _ALPHANUMERIC))
        raise _illegal(kind, name, f"use ASCII letters, digits and {allowed}")


def _illegal(kind: str, name: str, why: str) -> ServiceError:
    return ServiceError(ARGUMENT_OUT_OF_RANGE, f"{name[:64]!r} is not a legal {kind} name: {why}.")
