"""Event hubs and consumer groups as ARM has them. A PUT of one that is there changes what it says, and nothing else."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from dataclasses import replace as replace_fields
from functools import partial
from typing import Any

from msgspec.structs import replace

from hubweir.errors import NOT_IMPLEMENTED, ServiceError
from hubweir.gateway.arm.documents import Document, answer, page, resource, time_of
from hubweir.gateway.arm.look_and_act import look_and_act, look_and_delete
from hubweir.gateway.arm.members import Members
from hubweir.gateway.arm.operation import ArmCall
from hubweir.gateway.http.atom import retention_days
from hubweir.gateway.http.exchange import Response, answer_of
from hubweir.namespace.capture_description import CaptureDescription, check_encoding, parse_destination
from hubweir.namespace.entity import Availability, parse_availability
from hubweir.namespace.event_hub_changes import add_group, change_group, remove_group, set_settings
from hubweir.namespace.event_hub_description import EventHubDescription, GroupDetails
from hubweir.namespace.resource_path import fold
from hubweir.namespace.tiers import DAY_MS, HOUR_MS

# Of the service's reference, where a request says none.
PARTITION_COUNT_DEFAULT = 4


def hub_document(call: ArmCall, hub: EventHubDescription) -> Document:
    properties: Document = {
        "partitionCount": hub.partition_count,
        "partitionIds": list(hub.partition_ids),
        "status": hub.availability.text,
        "createdAt": time_of(hub.created_at_ms),
        "updatedAt": time_of(hub.updated_at_ms),
        "messageRetentionInDays": retention_days(hub),
        "retentionDescription": {
            "cleanupPolicy": "Delete",
            "retentionTimeInHours": -(-hub.retention_ms // HOUR_MS),
        },
    }
    if hub.user_metadata:
        properties["userMetadata"] = hub.user_metadata
    if hub.capture is not None:
        properties["captureDescription"] = _capture_document(hub.capture)
    name = call.gateway.settings.namespace
    kind = f"{call.path.provider}/Namespaces/EventHubs"
    return resource(call.path.id_of("namespaces", name, "eventhubs", hub.name), kind, hub.name, properties)


async def list_hubs(call: ArmCall) -> Response:
    return page(call.request, call.gateway.management.hubs(), partial(hub_document, call))


async def get_hub(call: ArmCall) -> Response:
    return answer(hub_document(call, call.gateway.management.hub(call.names["hub"])))


async def put_hub(call: ArmCall) -> Response:
    name, gateway, wish = call.names["hub"], call.gateway, _wish(await call.members())

    async def attempt() -> EventHubDescription:
        there = gateway.namespace.find(name, EventHubDescription)
        if there is None:
            new = wish.over(_usual(call, name))
            return await answer_of(partial(gateway.keeper.create, new))
        change = partial(set_settings, wanted=wish.over(there.description), seen=there.description)
        return await answer_of(partial(gateway.keeper.change, name, EventHubDescription, change))

    return answer(hub_document(call, await look_and_act(attempt)))


async def delete_hub(call: ArmCall) -> Response:
    name, gateway = call.names["hub"], call.gateway

    def find() -> Awaitable[object] | None:
        if gateway.namespace.find(name, EventHubDescription) is None:
            return None
        return answer_of(partial(gateway.keeper.delete, name, EventHubDescription))

    return await look_and_delete(find)


# Consumer groups


def group_document(call: ArmCall, hub: EventHubDescription, group: GroupDetails) -> Document:
    properties: Document = {"createdAt": time_of(group.created_at_ms), "updatedAt": time_of(group.updated_at_ms)}
    if group.user_metadata:
        properties["userMetadata"] = group.user_metadata
    name = call.gateway.settings.namespace
    resource_id = call.path.id_of("namespaces", name, "eventhubs", hub.name, "consumergroups", group.name)
    kind = f"{call.path.provider}/Namespaces/EventHubs/ConsumerGroups"
    return resource(resource_id, kind, group.name, properties)


async def list_groups(call: ArmCall) -> Response:
    hub = call.gateway.management.hub(call.names["hub"])
    groups = [hub.details_of(each) for each in hub.consumer_groups]
    return page(call.request, groups, partial(group_document, call, hub))


async def get_group(call: ArmCall) -> Response:
    hub = call.gateway.management.hub(call.names["hub"])
    group = call.gateway.management.group(hub.name, call.names["group"])
    return answer(group_document(call, hub, hub.details_of(group)))


async def put_group(call: ArmCall) -> Response:
    gateway, name = call.gateway, call.names["group"]
    members = await call.members()
    _pass_over_resource(members)
    properties = members.members("properties")
    members.finish()
    text = properties.text("userMetadata")
    properties.pass_over("createdAt", "updatedAt")
    properties.finish()

    async def attempt() -> EventHubDescription:
        hub = gateway.management.hub(call.names["hub"])
        if hub.find_group(name) is None:
            change = partial(add_group, name=name, user_metadata=text or "")
        else:
            change = partial(change_group, name=name, user_metadata=text)
        return await answer_of(partial(gateway.keeper.change, hub.name, EventHubDescription, change))

    made = await look_and_act(attempt)
    return answer(group_document(call, made, made.details_of(made.find_group(name) or name)))


async def delete_group(call: ArmCall) -> Response:
    gateway, name = call.gateway, call.names["group"]

    def find() -> Awaitable[object] | None:
        hub = gateway.namespace.find(call.names["hub"], EventHubDescription)
        if hub is None or hub.description.find_group(name) is None:
            return None
        change = partial(remove_group, name=name)
        return answer_of(partial(gateway.keeper.change, hub.name, EventHubDescription, change))

    return await look_and_delete(find)


# Parts


def _pass_over_resource(members: Members) -> None:
    """What every resource tells of itself."""
    members.pass_over("id", "name", "type", "location", "systemData")


@dataclass(frozen=True, slots=True)
class _HubWish:
    """What a request says; None: it says nothing about it. capture: by the names of its fields."""

    partition_count: int | None
    hours: int | None
    days: int | None
    availability: Availability | None
    user_metadata: str | None
    capture: dict[str, Any]

    def over(self, known: EventHubDescription) -> EventHubDescription:
        """The hub as the request wants it; what it does not say stays."""
        # Whole days and hours are told: a request that repeats what it was told changes nothing.
        if self.hours is not None and self.hours != -(-known.retention_ms // HOUR_MS):
            known = replace(known, retention_ms=self.hours * HOUR_MS)
        elif self.hours is None and self.days is not None and self.days != retention_days(known):
            known = replace(known, retention_ms=self.days * DAY_MS)
        if self.capture:
            known = replace(known, capture=replace_fields(known.capture or CaptureDescription(), **self.capture))
        said = {
            "partition_count": self.partition_count,
            "availability": self.availability,
            "user_metadata": self.user_metadata,
        }
        return replace(known, **{setting: value for setting, value in said.items() if value is not None})


def _usual(call: ArmCall, name: str) -> EventHubDescription:
    """A new hub that nobody said anything of."""
    usual = EventHubDescription(name, PARTITION_COUNT_DEFAULT)
    longest_ms = call.gateway.namespace.profile.retention_ms
    return usual if longest_ms is None else replace(usual, retention_ms=min(usual.retention_ms, longest_ms))


def _wish(members: Members) -> _HubWish:
    _pass_over_resource(members)
    properties = members.members("properties")
    members.finish()
    count, days = properties.number("partitionCount"), properties.number("messageRetentionInDays")
    status, metadata = properties.text("status"), properties.text("userMetadata")
    retention, capture = properties.members("retentionDescription"), properties.members("captureDescription")
    properties.pass_over("partitionIds", "createdAt", "updatedAt")
    properties.finish()
    availability = None if status is None else parse_availability(status)
    return _HubWish(count, _retention_hours(retention), days, availability, metadata, _capture(capture))


def _retention_hours(retention: Members) -> int | None:
    policy, hours = retention.text("cleanupPolicy"), retention.number("retentionTimeInHours")
    if policy is not None and fold(policy) != "delete":
        text = f"The cleanup policy '{policy[:32]}' is not served: events are kept for a time and then deleted."
        raise ServiceError(NOT_IMPLEMENTED, text)
    retention.finish()
    return hours


def _capture(members: Members) -> dict[str, Any]:
    """What a request says of capture, by the names of its fields."""
    enabled, encoding = members.flag("enabled"), members.text("encoding")
    interval, size = members.number("intervalInSeconds"), members.number("sizeLimitInBytes")
    skips, destination = members.flag("skipEmptyArchives"), members.members("destination")
    members.finish()
    name, properties = destination.text("name"), destination.members("properties")
    destination.pass_over("identity")
    destination.finish()
    account, container = properties.text("storageAccountResourceId"), properties.text("blobContainer")
    archive_name = properties.text("archiveNameFormat")
    properties.finish()
    said = {
        "enabled": enabled,
        "interval_s": interval,
        "size_limit_bytes": size,
        "skip_empty_archives": skips,
        "destination": parse_destination(name) if name else None,
        "storage_account": account,
        "container": container,
        "archive_name_format": archive_name,
    }
    if encoding is not None:
        check_encoding(encoding)
    return {field: value for field, value in said.items() if value is not None}


def _capture_document(capture: CaptureDescription) -> Document:
    place = {
        "storageAccountResourceId": capture.storage_account,
        "blobContainer": capture.container,
        "archiveNameFormat": capture.archive_name_format,
    }
    return {
        "enabled": capture.enabled,
        "encoding": "Avro",
        "intervalInSeconds": capture.interval_s,
        "sizeLimitInBytes": capture.size_limit_bytes,
        "skipEmptyArchives": capture.skip_empty_archives,
        "destination": {
            "name": capture.destination.value,
            "properties": {name: value for name, value in place.items() if value},
        },
    }
