"""Answers of `$management` about hubs, consumer groups, partitions, the namespace. Times are ms since 1970.

Bodies are maps as decoded: of the service's own READ (hub, partition), and of hubweir's further operations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hubweir.amqp.types.values import Array


@dataclass(frozen=True, slots=True)
class HubInfo:
    """An event hub as described. What follows partition_ids is empty where a foreign service answers."""

    name: str
    created_at_ms: int
    partition_ids: tuple[str, ...]
    consumer_groups: tuple[str, ...]
    retention_ms: int | None
    durability: str | None
    revoked_publishers: tuple[str, ...] = ()
    status: str | None = None
    user_metadata: str = ""
    updated_at_ms: int | None = None
    capture: dict[str, Any] | None = None  # as gateway/amqp/capture_forms.py says; None: it was never set

    @classmethod
    def of(cls, body: dict[str, Any]) -> HubInfo:
        """From the map that answers READ of a hub."""
        ids = body["partition_ids"]
        return cls(
            name=body["name"],
            created_at_ms=int(body["created_at"]),
            partition_ids=tuple(str(one) for one in (ids.items if isinstance(ids, Array) else ids)),
            consumer_groups=tuple(body.get("consumer_groups") or ()),
            retention_ms=body.get("retention_ms"),
            durability=body.get("durability"),
            revoked_publishers=tuple(body.get("revoked_publishers") or ()),
            status=body.get("status"),
            user_metadata=body.get("user_metadata") or "",
            updated_at_ms=None if body.get("updated_at") is None else int(body["updated_at"]),
            capture=body.get("capture"),
        )


@dataclass(frozen=True, slots=True)
class GroupInfo:
    """A consumer group of a hub."""

    name: str
    event_hub: str
    created_at_ms: int
    updated_at_ms: int
    user_metadata: str

    @classmethod
    def of(cls, body: dict[str, Any]) -> GroupInfo:
        """From the map that answers READ of a consumer group."""
        times = int(body["created_at"]), int(body["updated_at"])
        return cls(body["name"], body["eventhub"], *times, body["user_metadata"])


@dataclass(frozen=True, slots=True)
class PartitionState:
    """What a partition holds: numbers are -1 while it never held anything."""

    partition_id: str
    begin_sequence_number: int
    last_sequence_number: int
    last_offset: str
    last_enqueued_time_ms: int
    is_empty: bool

    @classmethod
    def of(cls, body: dict[str, Any]) -> PartitionState:
        """From the map that answers READ of a partition."""
        return cls(
            partition_id=body["partition"],
            begin_sequence_number=body["begin_sequence_number"],
            last_sequence_number=body["last_enqueued_sequence_number"],
            last_offset=body["last_enqueued_offset"],
            last_enqueued_time_ms=int(body["last_enqueued_time_utc"]),
            is_empty=body["is_partition_empty"],
        )


@dataclass(frozen=True, slots=True)
class NamespaceInfo:
    """A namespace and its throughput units; 0 units: off; a maximum of 0: no auto-inflate. warning may be empty.

    profile: whose quotas hold. host_names: those that lead to it, besides addresses.
    """

    name: str
    created_at_ms: int
    partition_count: int
    throughput_units: int
    maximum_throughput_units: int
    warning: str
    profile: str = ""
    host_names: tuple[str, ...] = ()

    @classmethod
    def of(cls, body: dict[str, Any]) -> NamespaceInfo:
        """From the map that answers READ and UPDATE of the namespace."""
        return cls(
            name=body["name"],
            created_at_ms=int(body["created_at"]),
            partition_count=body["partition_count"],
            throughput_units=body["throughput_units"],
            maximum_throughput_units=body["maximum_throughput_units"],
            warning=body["warning"],
            profile=body["profile"],
            host_names=tuple(body["host_names"]),
        )
