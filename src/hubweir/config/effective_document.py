"""Writes what Config.json files come to as one such file: defaults filled in, extensions spelt out, no keys."""

from __future__ import annotations

from hubweir.config.authorization_documents import authorization_rule_document
from hubweir.config.emulator_capture import capture_description, capture_document
from hubweir.config.emulator_entities import EmulatorConfig, HubConfig, NamespaceConfig, Root
from hubweir.config.emulator_messaging import queues_and_topics
from hubweir.namespace.entity import Availability
from hubweir.namespace.event_hub_description import RETENTION_DEFAULT_MS
from hubweir.namespace.names import DEFAULT_GROUP
from hubweir.namespace.tiers import DEVELOPMENT, HOUR_MS, Profile


def effective_document(found: EmulatorConfig, *, profile: Profile = DEVELOPMENT) -> dict[str, object]:
    """UserConfig with all namespaces: each under the roots of which it has something.

    profile: whose defaults hold where a namespace names no tier. Raises ServiceError for capture that a start would
    refuse.
    """
    retention_ms = min(RETENTION_DEFAULT_MS, profile.retention_ms or RETENTION_DEFAULT_MS)
    hubs = [each for each in found.namespaces if each.root is Root.EVENT_HUBS or each.hubs]
    buses = [each for each in found.namespaces if each.root is Root.SERVICE_BUS or each.queues or each.topics]
    document: dict[str, object] = {}
    if hubs:
        document["NamespaceConfig"] = [_hub_namespace(each, retention_ms) for each in hubs]
    if buses:
        document["Namespaces"] = [_namespace(each) | queues_and_topics(each, profile) for each in buses]
    return {"UserConfig": document}


def _hub_namespace(namespace: NamespaceConfig, retention_ms: int) -> dict[str, object]:
    hubs = [_hub(hub, retention_ms) for hub in namespace.hubs]
    return {"Type": "EventHub", **_namespace(namespace), "Entities": hubs}


def _namespace(namespace: NamespaceConfig) -> dict[str, object]:
    document: dict[str, object] = {"Name": namespace.name}
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
        document["AuthorizationRules"] = [authorization_rule_document(rule) for rule in namespace.rules]
    return document


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
        document["AuthorizationRules"] = [authorization_rule_document(rule) for rule in hub.rules]
    return document
