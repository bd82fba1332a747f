"""Writes what Config.json files come to as one such file: defaults filled in, extensions spelt out, no keys."""

from __future__ import annotations

from hubweir.config.emulator_capture import capture_description, capture_document
from hubweir.config.emulator_entities import AuthorizationRuleConfig, EmulatorConfig, HubConfig, NamespaceConfig, Root
from hubweir.namespace.entity import Availability
from hubweir.namespace.event_hub_description import RETENTION_DEFAULT_MS
from hubweir.namespace.names import DEFAULT_GROUP
from hubweir.namespace.rights import Rights, right_name
from hubweir.namespace.tiers import HOUR_MS

_RIGHTS = (Rights.LISTEN, Rights.SEND, Rights.MANAGE)


def effective_document(found: EmulatorConfig, *, longest_ms: int | None = None) -> dict[str, object]:
    """UserConfig with the namespaces of event hubs; queues and topics, which are not served, are left out.

    longest_ms: of retention, as the profile has it; None: its usual default holds. Raises ServiceError for capture that
    a start would refuse.
    """
    retention_ms = min(RETENTION_DEFAULT_MS, longest_ms or RETENTION_DEFAULT_MS)
    served = [each for each in found.namespaces if each.root is Root.EVENT_HUBS]
    return {"UserConfig": {"NamespaceConfig": [_namespace(each, retention_ms) for each in served]}}


def _namespace(namespace: NamespaceConfig, retention_ms: int) -> dict[str, object]:
    document: dict[str, object] = {"Type": "EventHub", "Name": namespace.name}
    if namespace.sku is not None:
        document["Sku"] = namespace.sku.value
    if namespace.hostnames:
        document["Hostnames"] = list(namespace.hostnames)
    if namespace.throughput_units is not None:
        document["ThroughputUnits"] = namespace.throughput_units
    if namespace.maximum_throughput_units is not None:
        document["MaximumThroughputUnits"] = namespace.maximum_throughput_units
    if namespace.is_auto_inflate_enabled is not None:
        document["IsAutoInflateEnabled"] = namespace.is_auto_inflate_enabled
    if namespace.rules:
        document["AuthorizationRules"] = [_rule(rule) for rule in namespace.rules]
    return document | {"Entities": [_hub(hub, retention_ms) for hub in namespace.hubs]}


def _hub(hub: HubConfig, retention_ms: int) -> dict[str, object]:
    document: dict[str, object] = {
        "Name": hub.name,
        "PartitionCount": hub.partition_count,
        "ConsumerGroups": [{"Name": group} for group in (DEFAULT_GROUP, *hub.consumer_groups)],
        "RetentionTimeInHours": (hub.retention_ms or retention_ms) // HOUR_MS,
        "CleanupPolicy": "Delete",
        "Status": Availability.ACTIVE.text if hub.status is None else hub.status.value,
        "UserMetadata": hub.user_metadata or "",
    }
    if hub.capture is not None:
        document["CaptureDescription"] = capture_document(capture_description(hub.capture))
    if hub.rules:
        document["AuthorizationRules"] = [_rule(rule) for rule in hub.rules]
    return document


def _rule(rule: AuthorizationRuleConfig) -> dict[str, object]:
    return {"KeyName": rule.name, "Rights": rights_words(rule.rights)}


def rights_words(rights: Rights) -> list[str]:
    """`Listen`, `Send`, `Manage`, those that are there."""
    return [right_name(right) for right in _RIGHTS if right in rights]
