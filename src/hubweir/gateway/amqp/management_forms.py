"""The maps that requests and answers of $management are written in. Types on the wire are part of the promise:
partition_ids is an array, not a list; counts are int; times are timestamps; some clients fail on any other.

Hub: name, type, created_at, partition_count, partition_ids, georeplication_factor; a summary for hubweir's own tools
adds retention_ms (long), durability ("durable" or "relaxed"), consumer_groups and revoked_publishers (lists), status,
user_metadata, updated_at, and capture (a map, capture_forms.py) where it was set. The same keys, all but the name
optional, say what a hub is to be created with or changed to.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TypeGuard

from msgspec.structs import replace

from hubweir.amqp.messaging.message import Message, ValueBody
from hubweir.amqp.types.format_codes import AmqpType
from hubweir.amqp.types.values import Array, Int, Long, Timestamp
from hubweir.broker.commands.partition import PartitionInfo
from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.gateway.amqp.capture_forms import capture_map, wanted_capture
from hubweir.namespace.entity import parse_availability
from hubweir.namespace.event_hub_description import EventHubDescription, GroupDetails
from hubweir.namespace.namespace_description import NamespaceDescription
from hubweir.throughput_unit.usage import HourUsage

# 0001-01-01T00:00:00Z: what the service gives for a partition that never held an event.
YEAR_ONE_MS = -62_135_596_800_000
PARTITION_COUNT_DEFAULT = 4


def hub_map(hub: EventHubDescription) -> dict[str, object]:
    """The six keys of a hub that clients read."""
    return {
        "name": hub.name,
        "type": "com.microsoft:eventhub",
        "created_at": Timestamp(hub.created_at_ms),
        "partition_count": Int(hub.partition_count),
        "partition_ids": Array(AmqpType.STRING, hub.partition_ids),
        "georeplication_factor": Int(1),
    }


def hub_summary(hub: EventHubDescription) -> dict[str, object]:
    """A hub with its settings."""
    return {
        **hub_map(hub),
        "retention_ms": Long(hub.retention_ms),
        "durability": hub.durability.name.lower(),
        "consumer_groups": list(hub.consumer_groups),
        "revoked_publishers": list(hub.revoked_publishers),
        "status": hub.availability.text,
        "user_metadata": hub.user_metadata,
        "updated_at": Timestamp(hub.updated_at_ms),
        **({} if hub.capture is None else {"capture": capture_map(hub.capture)}),
    }


def group_map(hub: str, group: GroupDetails) -> dict[str, object]:
    """A consumer group of a hub."""
    return {
        "name": group.name,
        "type": "com.microsoft:consumergroup",
        "eventhub": hub,
        "created_at": Timestamp(group.created_at_ms),
        "updated_at": Timestamp(group.updated_at_ms),
        "user_metadata": group.user_metadata,
    }


def namespace_map(
    namespace: NamespaceDescription, partition_count: int, warning: str | None, *, profile: str, host_names: list[str]
) -> dict[str, object]:
    """The namespace and its throughput units; warning: an empty string when there is nothing to warn of.

    profile: whose quotas hold. host_names: those that lead to the namespace.
    """
    return {
        "name": namespace.name,
        "type": "com.microsoft:namespace",
        "created_at": Timestamp(namespace.created_at_ms),
        "partition_count": Int(partition_count),
        "throughput_units": Int(namespace.units.held),
        "maximum_throughput_units": Int(namespace.units.maximum),
        "profile": profile,
        "host_names": host_names,
        "warning": warning or "",
    }


def usage_map(hours: list[tuple[int, ...]], since_ms: int) -> dict[str, object]:
    """What was used in the hours from since_ms on. columns: names of what each row of hours holds."""
    return {
        "columns": [column.name for column in fields(HourUsage)],
        "hours": [[Long(count) for count in row] for row in hours if row[0] >= since_ms],
    }


def wanted_units(request: Message) -> tuple[int | None, int | None]:
    """throughput_units and maximum_throughput_units of an UPDATE, each None when it is to stay."""
    wanted = _settings(request)
    found = []
    for key in ("throughput_units", "maximum_throughput_units"):
        value = wanted.pop(key, None)
        if value is not None and not _is_integer(value):
            raise _wrong(key, "an integer")
        found.append(None if value is None else int(value))
    if wanted:
        raise ServiceError(ARGUMENT_ERROR, f"A namespace has no setting {str(next(iter(wanted)))[:64]!r}.")
    return found[0], found[1]


def partition_map(hub: str, partition_id: str, info: PartitionInfo) -> dict[str, object]:
    """A partition's bounds. Nothing in it depends on when it is asked: two reads without a send between are equal."""
    time_ms = info.last_enqueued_time_ms
    return {
        "name": hub,
        "type": "com.microsoft:partition",
        "partition": partition_id,
        "begin_sequence_number": Long(info.begin_sequence_number),
        "last_enqueued_sequence_number": Long(info.last_sequence_number),
        "last_enqueued_offset": str(info.last_offset),
        "last_enqueued_time_utc": Timestamp(YEAR_ONE_MS if time_ms is None else time_ms),
        "is_partition_empty": info.is_empty,
    }


def new_hub(name: str, request: Message) -> EventHubDescription:
    """The hub that a CREATE asks for; ServiceError ARGUMENT_ERROR for a key or a type that does not belong there."""
    hub = EventHubDescription(name, PARTITION_COUNT_DEFAULT)
    wanted = _settings(request)
    count = wanted.pop("partition_count", hub.partition_count)
    if not _is_integer(count):
        raise _wrong("partition_count", "an integer")
    return _with(replace(hub, partition_count=int(count)), wanted)


def wanted_changes(hub: EventHubDescription, request: Message) -> EventHubDescription:
    """The hub as an UPDATE wants it; its name and number of partitions never change."""
    wanted = _settings(request)
    count = wanted.pop("partition_count", hub.partition_count)
    if count != hub.partition_count:
        text = (
            f"The number of partitions of '{hub.name}' is {hub.partition_count} and never changes, because the hash of "
            "a key depends on it; create another event hub."
        )
        raise ServiceError(ARGUMENT_ERROR, text)
    changed = _with(hub, wanted)
    if changed.consumer_groups != hub.consumer_groups:
        text = (
            "Consumer groups are made and removed one by one: CREATE and DELETE with type com.microsoft:consumergroup."
        )
        raise ServiceError(ARGUMENT_ERROR, text)
    return changed


def _with(hub: EventHubDescription, wanted: dict[object, object]) -> EventHubDescription:
    """The hub with its optional settings put in; ranges are checked by the namespace."""
    for key, value in wanted.items():
        match key:
            case "retention_ms":
                if not _is_integer(value):
                    raise _wrong("retention_ms", "an integer, milliseconds")
                hub = replace(hub, retention_ms=int(value))
            case "durability":
                modes = {mode.name.lower(): mode for mode in type(hub.durability)}
                mode = modes.get(value) if isinstance(value, str) else None
                if mode is None:
                    raise _wrong("durability", " or ".join(modes))
                hub = replace(hub, durability=mode)
            case "status":
                if not isinstance(value, str):
                    raise _wrong("status", "a string")
                hub = replace(hub, availability=parse_availability(value))
            case "user_metadata":
                if not isinstance(value, str):
                    raise _wrong("user_metadata", "a string")
                hub = replace(hub, user_metadata=value)
            case "consumer_groups":
                if not isinstance(value, list) or not all(isinstance(group, str) for group in value):
                    raise _wrong("consumer_groups", "a list of strings")
                hub = replace(hub, consumer_groups=tuple(value))
            case "capture":
                hub = replace(hub, capture=wanted_capture(hub.capture, value))
            case _:
                raise ServiceError(ARGUMENT_ERROR, f"An event hub has no setting {str(key)[:64]!r}.")
    return hub


def _settings(request: Message) -> dict[object, object]:
    """The map in the body of a request; empty when there is no body."""
    if request.body is None or (isinstance(request.body, ValueBody) and request.body.value is None):
        return {}
    if not isinstance(request.body, ValueBody) or not isinstance(request.body.value, dict):
        raise ServiceError(ARGUMENT_ERROR, "The body must be one AMQP map with the settings of the event hub.")
    return dict(request.body.value)


def _is_integer(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _wrong(key: str, wanted: str) -> ServiceError:
    return ServiceError(ARGUMENT_ERROR, f"The setting {key!r} must be {wanted}.")
