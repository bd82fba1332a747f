"""A batch of events as JSON: `[{"Body": "…", "UserProperties": {…}, "BrokerProperties": {…}}, …]`.

The body is text and stored as UTF-8. A user property is a string, a number, a truth value or null. All events of a
batch go to one partition, so they have one partition key or none. ("Send Batch Events", REST reference of Event Hubs)
"""

from __future__ import annotations

from dataclasses import dataclass

from hubweir.gateway.http.body_json import body_json, refused
from hubweir.gateway.http.custom_properties import check_properties, partition_key_of
from hubweir.gateway.http.event_message import PostedEvent

BATCH_MEDIA_TYPE = "application/vnd.microsoft.servicebus.json"
JSON_BYTES = 1024 * 1024
_MEMBERS = frozenset(("Body", "UserProperties", "BrokerProperties"))


@dataclass(frozen=True, slots=True)
class PostedBatch:
    """The events of one request, in order, and the partition key that all of them have."""

    events: tuple[PostedEvent, ...]
    key: str | None


def is_batch(content_type: str | None) -> bool:
    """Whether a content type, parameters and case aside, says that the body is such a batch."""
    return content_type is not None and content_type.partition(";")[0].strip().lower() == BATCH_MEDIA_TYPE


def read_batch(data: bytes) -> PostedBatch:
    """The batch; ServiceError ARGUMENT_ERROR names the first event that is wrong."""
    items = body_json(data, "The batch")
    if not isinstance(items, list) or not items:
        raise refused("The batch", "it must be a JSON array of at least one event")
    events: list[PostedEvent] = []
    keys: set[str | None] = set()
    for place, item in enumerate(items):
        what = f"Event {place} of the batch"
        if not isinstance(item, dict) or not item.keys() <= _MEMBERS:
            raise refused(what, "it must be an object with the members " + ", ".join(sorted(_MEMBERS)))
        body = item.get("Body")
        if not isinstance(body, str):
            raise refused(what, "its Body must be a string")
        keys.add(partition_key_of(item.get("BrokerProperties")))
        events.append(PostedEvent(body.encode(), _user_properties(item.get("UserProperties"), what)))
    if len(keys) > 1:
        raise refused("The batch", "its events must have one partition key, or none")
    return PostedBatch(tuple(events), keys.pop())


def _user_properties(value: object, what: str) -> dict[str, object]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise refused(what, "its UserProperties must be an object")
    for name, member in value.items():
        if member is not None and not isinstance(member, str | int | float):
            raise refused(what, f"its property {name[:64]!r} must be a string, a number, true, false or null")
    check_properties(value)
    return value
