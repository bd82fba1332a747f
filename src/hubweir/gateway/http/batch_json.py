"""Batches as JSON: `[{"Body": "…", "UserProperties": {…}, "BrokerProperties": {…}}, …]`, of events or of messages.

The body is text and stored as UTF-8. A user property is a string, a number, a truth value or null. What broker
properties mean is event_json.py's and broker_properties.py's to say. ("Send Batch Events", "Send Message Batch", REST)
"""

from __future__ import annotations

from dataclasses import dataclass

from hubweir.gateway.http.body_json import body_json, refused
from hubweir.gateway.http.custom_properties import check_properties

BATCH_MEDIA_TYPE = "application/vnd.microsoft.servicebus.json"
JSON_BYTES = 1024 * 1024
_MEMBERS = frozenset(("Body", "UserProperties", "BrokerProperties"))


@dataclass(frozen=True, slots=True)
class BatchItem:
    """One member of a batch. broker_properties: as JSON has them, not looked at. what: names it in texts."""

    body: bytes
    properties: dict[str, object]
    broker_properties: object
    what: str


def is_batch(content_type: str | None) -> bool:
    """Whether a content type, parameters and case aside, says that the body is such a batch."""
    return content_type is not None and content_type.partition(";")[0].strip().lower() == BATCH_MEDIA_TYPE


def batch_items(data: bytes, noun: str) -> list[BatchItem]:
    """What is in a batch, one at least; ServiceError ARGUMENT_ERROR names the first that is wrong.

    noun: what the batch consists of, for texts.
    """
    items = body_json(data, "The batch")
    if not isinstance(items, list) or not items:
        raise refused("The batch", f"it must be a JSON array of at least one {noun}")
    return [_item(item, f"{noun.capitalize()} {place} of the batch") for place, item in enumerate(items)]


def _item(item: object, what: str) -> BatchItem:
    if not isinstance(item, dict) or not item.keys() <= _MEMBERS:
        raise refused(what, "it must be an object with the members " + ", ".join(sorted(_MEMBERS)))
    body = item.get("Body")
    if not isinstance(body, str):
        raise refused(what, "its Body must be a string")
    properties = _user_properties(item.get("UserProperties"), what)
    return BatchItem(body.encode(), properties, item.get("BrokerProperties"), what)


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
