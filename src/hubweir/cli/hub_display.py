"""Prints an event hub and its partitions: lines and rows for people, documents for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import click

from hubweir.cli.capture_options import capture_row, capture_text
from hubweir.cli.counted import counted
from hubweir.cli.durations import duration_text
from hubweir.cli.render import table
from hubweir.client.entity_info import HubInfo, PartitionState
from hubweir.namespace.entity import Availability


@dataclass(frozen=True, slots=True)
class ShownHub:
    """A hub with what its partitions hold. captured: how far each is captured, none when capture is off."""

    hub: HubInfo
    partitions: Sequence[PartitionState]
    captured: Sequence[dict[str, Any]]

    def document(self) -> dict[str, object]:
        partitions = [
            {
                "partition_id": partition.partition_id,
                "begin_sequence_number": partition.begin_sequence_number,
                "last_sequence_number": partition.last_sequence_number,
                "last_offset": partition.last_offset,
                "last_enqueued_time_ms": partition.last_enqueued_time_ms,
                "is_empty": partition.is_empty,
            }
            for partition in self.partitions
        ]
        return {**hub_document(self.hub), "partitions": partitions, "capture_states": list(self.captured)}

    def print(self) -> None:
        hub = self.hub
        kept = "" if hub.retention_ms is None else f", kept for {duration_text(hub.retention_ms)}, {hub.durability}"
        click.echo(f"event hub {hub.name}: {counted(len(hub.partition_ids), 'partition')}{kept}{unless_active(hub)}")
        click.echo(f"consumer groups: {', '.join(hub.consumer_groups) or '$Default'}")
        if hub.user_metadata:
            click.echo(f"user metadata: {hub.user_metadata}")
        if hub.revoked_publishers:
            click.echo(f"revoked publishers: {', '.join(hub.revoked_publishers)}")
        if hub.capture is not None:
            click.echo(capture_text(hub.capture))
        headings = ("partition", "first", "last", "last offset", "last enqueued")
        table(headings, [_partition_row(partition) for partition in self.partitions])
        if self.captured:
            click.echo("")
            table(
                ("captured", "files", "events behind", "bytes behind", "uncaptured", "last file", "failure"),
                [capture_row(state) for state in self.captured],
            )


def print_hubs(hubs: Sequence[HubInfo]) -> None:
    """One row a hub."""
    table(
        ("event hub", "partitions", "retention", "durability", "status", "consumer groups"),
        [
            (
                hub.name,
                str(len(hub.partition_ids)),
                "" if hub.retention_ms is None else duration_text(hub.retention_ms),
                hub.durability or "",
                hub.status or "",
                ", ".join(hub.consumer_groups),
            )
            for hub in hubs
        ],
    )


def hub_document(hub: HubInfo) -> dict[str, object]:
    """A hub for programs."""
    return {
        "name": hub.name,
        "created_at_ms": hub.created_at_ms,
        "partition_ids": list(hub.partition_ids),
        "consumer_groups": list(hub.consumer_groups),
        "retention_ms": hub.retention_ms,
        "durability": hub.durability,
        "revoked_publishers": list(hub.revoked_publishers),
        "status": hub.status,
        "user_metadata": hub.user_metadata,
        "updated_at_ms": hub.updated_at_ms,
        "capture": hub.capture,
    }


def unless_active(hub: HubInfo) -> str:
    """The end of a line about a hub that is not in full use."""
    return "" if hub.status in (None, Availability.ACTIVE.text) else f", {hub.status}"


def _partition_row(partition: PartitionState) -> tuple[str, ...]:
    if partition.last_sequence_number < 0:
        return (partition.partition_id, "", "", "", "")
    return (
        partition.partition_id,
        "" if partition.is_empty else str(partition.begin_sequence_number),
        str(partition.last_sequence_number),
        partition.last_offset,
        _time_text(partition.last_enqueued_time_ms),
    )


def _time_text(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds")
