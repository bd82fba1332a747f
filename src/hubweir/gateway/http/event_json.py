"""A batch of events as JSON. All events of a batch go to one partition, so they have one partition key or none."""

from __future__ import annotations

from dataclasses import dataclass

from hubweir.gateway.http.batch_json import batch_items
from hubweir.gateway.http.body_json import refused
from hubweir.gateway.http.custom_properties import partition_key_of
from hubweir.gateway.http.event_message import PostedEvent


@dataclass(frozen=True, slots=True)
class PostedBatch:
    """The events of one request, in order, and the partition key that all of them have."""

    events: tuple[PostedEvent, ...]
    key: str | None


def read_batch(data: bytes) -> PostedBatch:
    """The batch; ServiceError ARGUMENT_ERROR names the first event that is wrong."""
    items = batch_items(data, "event")
    keys = {partition_key_of(item.broker_properties) for item in items}
    if len(keys) > 1:
        raise refused("The batch", "its events must have one partition key, or none")
    return PostedBatch(tuple(PostedEvent(item.body, item.properties) for item in items), keys.pop())
