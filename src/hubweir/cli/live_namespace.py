"""A live namespace in the words of a Config.json, and how such files differ from it.

The rule of the settings (RootManageSharedAccessKey) is left out: its key is the setting `key`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields

from hubweir.client.authorization_rules import AuthorizationRules
from hubweir.client.connection import Connection
from hubweir.client.entity_info import HubInfo
from hubweir.client.management import Management
from hubweir.config.authorization_documents import rights_words
from hubweir.config.emulator_capture import capture_description, capture_document
from hubweir.config.emulator_entities import AuthorizationRuleConfig, EmulatorConfig, HubConfig, NamespaceConfig, Root
from hubweir.config.settings import ROOT_RULE
from hubweir.namespace.capture_description import CaptureDescription, parse_destination
from hubweir.namespace.names import DEFAULT_GROUP
from hubweir.namespace.resource_path import fold
from hubweir.namespace.tiers import HOUR_MS

Document = dict[str, object]
_OF_CAPTURE = frozenset(field.name for field in fields(CaptureDescription))


async def live_document(connection: Connection, *, with_keys: bool, tell: Callable[[str], None]) -> Document:
    """A Config.json of what is there. with_keys: rules have their keys, in clear. tell: of what is left out."""
    management = Management(connection)
    namespace = await management.namespace()
    document: Document = {"Type": "EventHub", "Name": namespace.name}
    if namespace.throughput_units:
        document["ThroughputUnits"] = namespace.throughput_units
    if namespace.maximum_throughput_units:
        document["MaximumThroughputUnits"] = namespace.maximum_throughput_units
    rules = await _rules(connection, "", with_keys)
    if rules:
        document["AuthorizationRules"] = rules
    hubs = []
    for hub in await management.list_hubs():
        rules = await _rules(connection, hub.name, with_keys)
        hubs.append(_hub(hub, tell) | ({"AuthorizationRules": rules} if rules else {}))
    document["Entities"] = hubs
    return {"UserConfig": {"NamespaceConfig": [document], "LoggingConfig": {"Type": "Console"}}}


def _hub(hub: HubInfo, tell: Callable[[str], None]) -> Document:
    document: Document = {"Name": hub.name, "PartitionCount": len(hub.partition_ids)}
    groups = [group for group in hub.consumer_groups if group != DEFAULT_GROUP]
    if groups:
        document["ConsumerGroups"] = [{"Name": group} for group in groups]
    if hub.retention_ms is not None:
        document["RetentionTimeInHours"] = -(-hub.retention_ms // HOUR_MS)
    if hub.status is not None:
        document["Status"] = hub.status
    if hub.user_metadata:
        document["UserMetadata"] = hub.user_metadata
    if hub.capture is not None:
        known = {name: value for name, value in hub.capture.items() if name in _OF_CAPTURE}
        if unknown := sorted(set(hub.capture) - set(known)):
            tell(
                f"event hub {hub.name}: left out is what a newer service says of its capture: {', '.join(unknown)}; "
                "a hubweir as new as the service knows it"
            )
        known["destination"] = parse_destination(hub.capture["destination"])
        document["CaptureDescription"] = capture_document(CaptureDescription(**known))
    return document


async def _rules(connection: Connection, hub: str, with_keys: bool) -> list[Document]:
    management = AuthorizationRules(connection)
    found = []
    for rule in await management.list_rules(hub):
        if not hub and rule.name == ROOT_RULE:
            continue
        document: Document = {"KeyName": rule.name, "Rights": list(rule.rights)}
        if with_keys:
            keys = await management.keys(rule.name, hub)
            document["PrimaryKey"] = keys.primary.reveal()
            if keys.secondary:
                document["SecondaryKey"] = keys.secondary.reveal()
        found.append(document)
    return found


def with_queues_and_topics(document: Document, found: Document) -> Document:
    """The Config.json of a namespace with queues and topics, under the root that they have. found: not empty."""
    user_config = _object(document["UserConfig"])
    (space,) = _objects(user_config["NamespaceConfig"])
    return {"UserConfig": {**user_config, "Namespaces": [{"Name": space["Name"], **found}]}}


def messaging_namespace(wanted: EmulatorConfig, live: Document) -> NamespaceConfig | None:
    """The namespace of the files whose queues and topics are compared with those of a live one; None: there is none."""
    (there,) = _objects(_object(live["UserConfig"])["NamespaceConfig"])
    spaces = [space for space in wanted.namespaces if space.root is Root.SERVICE_BUS or space.queues or space.topics]
    same = [space for space in spaces if fold(space.name) == fold(str(there["Name"]))] or spaces[:1]
    return same[0] if same else None


def differences(wanted: EmulatorConfig, live: Document) -> list[str]:
    """One line for each difference; see `hubweir config diff`. live: of live_document."""
    (there,) = _objects(_object(live["UserConfig"])["NamespaceConfig"])
    spaces = [space for space in wanted.namespaces if space.root is Root.EVENT_HUBS or space.hubs]
    if not spaces and wanted.namespaces:
        return []  # files of queues alone say nothing of event hubs
    same = [space for space in spaces if fold(space.name) == fold(str(there["Name"]))] or spaces[:1]
    lines = [f"+ namespace {space.name}" for space in spaces if space not in same]
    if not same:
        return [*lines, f"- namespace {there['Name']}"]
    space, where = same[0], f"namespace {there['Name']}"
    lines += _changed(where, "Name", space.name, there["Name"])
    if space.throughput_units is not None:
        lines += _changed(where, "ThroughputUnits", space.throughput_units, there.get("ThroughputUnits", 0))
    if space.maximum_throughput_units is not None:
        known = there.get("MaximumThroughputUnits", 0)
        lines += _changed(where, "MaximumThroughputUnits", space.maximum_throughput_units, known)
    lines += _rule_lines(where, space.rules, there)
    hubs = {fold(str(hub["Name"])): hub for hub in _objects(there["Entities"])}
    for hub in space.hubs:
        known_hub = hubs.pop(fold(hub.name), None)
        lines += [f"+ event hub {hub.name}"] if known_hub is None else _hub_lines(hub, known_hub)
    return lines + [f"- event hub {hub['Name']}" for hub in hubs.values()]


def _hub_lines(hub: HubConfig, live: Document) -> list[str]:
    where = f"event hub {live['Name']}"
    lines = _changed(where, "PartitionCount", hub.partition_count, live["PartitionCount"])
    if hub.retention_ms is not None:
        lines += _changed(where, "RetentionTimeInHours", hub.retention_ms // HOUR_MS, live.get("RetentionTimeInHours"))
    if hub.status is not None:
        lines += _changed(where, "Status", hub.status.value, live.get("Status"))
    if hub.user_metadata is not None:
        lines += _changed(where, "UserMetadata", hub.user_metadata, live.get("UserMetadata", ""))
    if hub.capture is not None:
        lines += _capture_lines(where, capture_document(capture_description(hub.capture)), live)
    groups = {fold(str(group["Name"])): group["Name"] for group in _objects(live.get("ConsumerGroups", []))}
    for group in hub.consumer_groups:
        if groups.pop(fold(group), None) is None:
            lines.append(f"+ {where}: consumer group {group}")
    lines += [f"- {where}: consumer group {group}" for group in groups.values()]
    return lines + _rule_lines(where, hub.rules, live)


def _capture_lines(where: str, wanted: Document, live: Document) -> list[str]:
    """One line a member of CaptureDescription; a hub whose capture was never set has the defaults."""
    known = _object(live.get("CaptureDescription")) or capture_document(CaptureDescription())
    lines = []
    for member, value in wanted.items():
        if member != "Destination":
            lines += _changed(where, f"CaptureDescription.{member}", value, known[member])
    place, there = _object(wanted["Destination"]), _object(known["Destination"])
    for member in {**place, **there}:
        of = f"CaptureDescription.Destination.{member}"
        lines += _changed(where, of, place.get(member, ""), there.get(member, ""))
    return lines


def _rule_lines(where: str, rules: tuple[AuthorizationRuleConfig, ...], live: Document) -> list[str]:
    known = {fold(str(rule["KeyName"])): rule for rule in _objects(live.get("AuthorizationRules", []))}
    lines = []
    for rule in rules:
        if rule.name == ROOT_RULE:
            continue
        there = known.pop(fold(rule.name), None)
        if there is None:
            lines.append(f"+ {where}: authorization rule {rule.name}")
        else:
            of = f"{where}: authorization rule {rule.name}"
            lines += _changed(of, "Rights", sorted(rights_words(rule.rights)), sorted(map(str, _list(there["Rights"]))))
    return lines + [f"- {where}: authorization rule {rule['KeyName']}" for rule in known.values()]


def _changed(where: str, member: str, wanted: object, live: object) -> list[str]:
    if wanted == live:
        return []
    return [f"~ {where}: {member} is {json.dumps(wanted)} in the files, {json.dumps(live)} in the namespace"]


def _object(value: object) -> Document:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _objects(value: object) -> list[Document]:
    return [_object(each) for each in _list(value)]
