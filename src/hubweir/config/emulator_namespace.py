"""Namespaces in a configuration file: the elements of `NamespaceConfig` (Event Hubs) and of `Namespaces` (Service Bus).

Both take the extension members: Sku, units, Hostnames, AuthorizationRules; and there may be several of them. A name
that stands under both is one namespace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from hubweir.config.emulator_entities import NamespaceConfig, Root, Sku
from hubweir.config.emulator_event_hubs import read_hubs
from hubweir.config.emulator_limits import FileLimits
from hubweir.config.emulator_members import (
    ENTITY_NAME,
    UniqueNames,
    entity_name,
    read_authorization_rules,
    read_hostnames,
)
from hubweir.config.emulator_service_bus import read_queues_and_topics
from hubweir.config.json_fields import Fields
from hubweir.config.problems import Kind, Location, quoted
from hubweir.limits import are_sold, units_sold
from hubweir.namespace.names import NAMESPACE_NAME_LIMIT, check_namespace_name
from hubweir.namespace.resource_path import fold

# What the official files must say, and what holds when they do not say it.
OFFICIAL_NAMES = {Root.EVENT_HUBS: "emulatorNs1", Root.SERVICE_BUS: "sbemulatorns"}


_OFFICIAL = frozenset(map(fold, OFFICIAL_NAMES.values()))
_ONE = ""  # no name is empty


class NamespaceType(Enum):
    """The only type that a namespace under NamespaceConfig has."""

    EVENT_HUB = "EventHub"


@dataclass(slots=True)
class Taken:
    """Names that lead to one namespace each, over all files that are read together."""

    namespaces: dict[Root, UniqueNames] = field(
        default_factory=lambda: {root: UniqueNames("namespace") for root in Root}
    )
    hostnames: dict[str, Location] = field(default_factory=dict)


def read_namespaces(user_config: Fields, root: Root, limits: FileLimits, taken: Taken) -> list[NamespaceConfig]:
    """The member of UserConfig that root names."""
    namespaces = []
    for fields in user_config.objects(root.value, required=True, least=1, most=limits.namespaces_limit):
        namespace = _read_namespace(fields, root, limits, taken)
        fields.finish()
        if namespace is not None:
            namespaces.append(namespace)
    return namespaces


def joined(namespaces: Sequence[NamespaceConfig]) -> tuple[NamespaceConfig, ...]:
    """The namespaces, each once: one that stands under both roots has all that both say; the first says more.

    So are the two that have the names of the official emulators, whose clients reach both at the same address.
    """
    found: dict[str, NamespaceConfig] = {}
    for namespace in namespaces:
        key = _ONE if fold(namespace.name) in _OFFICIAL else fold(namespace.name)
        known = found.get(key)
        found[key] = namespace if known is None else _both(known, namespace)
    return tuple(found.values())


def _both(first: NamespaceConfig, second: NamespaceConfig) -> NamespaceConfig:
    rules = {fold(rule.name): rule for rule in (*second.rules, *first.rules)}
    either = {
        name: getattr(second, name) if getattr(first, name) is None else getattr(first, name)
        for name in (
            "sku",
            "throughput_units",
            "maximum_throughput_units",
            "is_auto_inflate_enabled",
            "premium_messaging_partitions",
        )
    }
    return replace(
        first,
        hostnames=(*first.hostnames, *second.hostnames),
        rules=tuple(rules.values()),
        hubs=first.hubs or second.hubs,
        queues=first.queues or second.queues,
        topics=first.topics or second.topics,
        **either,
    )


def _read_namespace(fields: Fields, root: Root, limits: FileLimits, taken: Taken) -> NamespaceConfig | None:
    """The namespace; None when its name is not usable or taken, which was noted then."""
    name = _read_name(fields, root, limits)
    if root is Root.EVENT_HUBS:
        fields.choice("Type", NamespaceType)
    units = fields.integer("ThroughputUnits", least=1, most=limits.throughput_units_limit)
    maximum_units = fields.integer("MaximumThroughputUnits", least=0, most=limits.throughput_units_limit)
    for member, number in (("ThroughputUnits", units), ("MaximumThroughputUnits", maximum_units)):
        if number and not are_sold(number):
            what = "this many units cannot be had"
            fields.wrong(member, what, kind=Kind.BAD_VALUE, allowed=units_sold(limits.throughput_units_limit))
    inflates = fields.boolean("IsAutoInflateEnabled")
    if inflates and fields.member("MaximumThroughputUnits") is None:
        what = "auto-inflate needs MaximumThroughputUnits"
        fields.wrong("IsAutoInflateEnabled", what, allowed="true together with MaximumThroughputUnits")
    if units is not None and maximum_units and maximum_units < units:
        what = f"MaximumThroughputUnits is below ThroughputUnits ({units})"
        fields.wrong("MaximumThroughputUnits", what, allowed=f"{units} to {limits.throughput_units_limit}")
    sku = fields.choice("Sku", Sku)
    messaging_partitions = fields.integer(
        "PremiumMessagingPartitions", least=1, most=limits.premium_messaging_partitions_limit
    )
    hostnames = read_hostnames(fields, taken.hostnames)
    rules = read_authorization_rules(fields)
    hubs = read_hubs(fields, limits) if root is Root.EVENT_HUBS else ()
    queues, topics = read_queues_and_topics(fields, limits) if root is Root.SERVICE_BUS else ((), ())
    if name is None or not taken.namespaces[root].take_name(name, fields):
        return None
    return NamespaceConfig(
        root=root,
        name=name,
        sku=sku,
        hostnames=hostnames,
        throughput_units=units,
        maximum_throughput_units=maximum_units or None,
        is_auto_inflate_enabled=inflates,
        premium_messaging_partitions=messaging_partitions,
        rules=rules,
        hubs=hubs,
        queues=queues,
        topics=topics,
        location=fields.place("Name"),
    )


def _read_name(fields: Fields, root: Root, limits: FileLimits) -> str | None:
    """The name, the official one when there is none; None when it is not legal."""
    official = OFFICIAL_NAMES[root]
    if fields.member("Name") is None:
        return official
    if root is Root.EVENT_HUBS:
        allowed = f"1 to {NAMESPACE_NAME_LIMIT} letters, digits and inner hyphens"
        name = fields.text("Name", check=check_namespace_name, allowed=allowed)
    else:
        name = fields.text("Name", check=entity_name(NAMESPACE_NAME_LIMIT), allowed=ENTITY_NAME)
    if limits.official and name is not None and name != official:
        what = "the official emulator has one name for its namespace"
        if root is Root.EVENT_HUBS:
            fields.bad("Name", what, found=quoted(name), allowed=quoted(official))
        else:
            fields.warn("Name", what, kind=Kind.BAD_VALUE, found=quoted(name), allowed=quoted(official))
    return name
