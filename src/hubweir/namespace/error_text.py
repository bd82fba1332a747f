"""Texts that client libraries match letter for letter, in one place.

Clients turn some conditions into their own exceptions by looking for a phrase in the description; the phrases stand
here once, as functions. Every description that leaves the service ends in a *reference*: TrackingId, SystemTracker
and Timestamp, which people quote in support questions and the Python client splits off. Ids and times are arguments.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

INVALID_PARTITION = "The specified partition is invalid for an EventHub partition sender or receiver"


@dataclass(frozen=True, slots=True)
class Reference:
    """What a description ends in. tracking_id: 32 hexadecimal digits (Env.new_id); tracker: see entity_tracker."""

    tracking_id: str
    tracker: str
    now_ms: int

    def __str__(self) -> str:
        digits = self.tracking_id
        guid = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
        return f"TrackingId:{guid}_G0, SystemTracker:{self.tracker}, Timestamp:{timestamp(self.now_ms)}"


def with_reference(text: str, reference: Reference) -> str:
    """`text, TrackingId:…, SystemTracker:…, Timestamp:…`; unchanged when it has a reference already.

    A full stop stays: some clients match texts with it.
    """
    return text if "TrackingId:" in text else f"{text.rstrip()}, {reference}"


def entity_tracker(namespace: str, sort: str, name: str) -> str:
    """The SystemTracker of a fault of one entity: `ns:eventhub:orders`, `ns:Queue:orders`. sort: as trackers say it."""
    return f"{namespace}:{sort}:{name.lower()}"


def timestamp(time_ms: int) -> str:
    """UTC in seconds without a zone: `2026-11-21T10:59:00`. Times no calendar has are clamped to its ends."""
    seconds = min(max(time_ms // 1000, -62_135_596_800), 253_402_300_799)
    return (datetime(1970, 1, 1) + timedelta(seconds=seconds)).isoformat(timespec="seconds")


def printable(text: str, limit: int = 256) -> str:
    """A peer's text, fit for a description and a log line: cut at limit, anything unprintable as `?`."""
    return "".join(character if character.isprintable() else "?" for character in text[:limit])


def entity_uri(host: str, path: str) -> str:
    """How descriptions name a resource: `sb://host/path`, in lower case. path may be anything a peer wrote."""
    return f"sb://{host}/{printable(path)}".lower()


def entity_not_found(uri: str) -> str:
    """uri: entity_uri(…). Clients match the phrase and take the entity for absent, not the service for broken."""
    return (
        f"The messaging entity '{uri}' could not be found. To know more visit the page docs/namespace.md, "
        "or list what exists with `hubweir eventhub list`, `queue list` or `topic list`."
    )


def invalid_partition(partition_id: str, *, hub: str, partition_count: int) -> str:
    """partition_id: as the client wrote it, printed and clipped. Clients match the phrase in front."""
    asked = printable(partition_id, 64)
    return f"{INVALID_PARTITION}: '{asked}'. The event hub '{hub}' has partitions 0 to {partition_count - 1}."


def unauthorized(right: str, uri: str) -> str:
    """right: Send, Listen or Manage. The first sentence is matched letter for letter by clients."""
    return f"Unauthorized access. '{right}' claim(s) are required to perform this operation. Resource: '{uri}'."


def message_too_large(delivery_id: int, size_bytes: int, limit_bytes: int) -> str:
    """size_bytes: of the whole message, which was thrown away."""
    return (
        f"The received message (delivery-id:{delivery_id}, size:{size_bytes} bytes) exceeds the limit "
        f"({limit_bytes} bytes) currently allowed on the link."
    )
