"""Events of a request as AMQP bytes: what the ingest kernel takes, as if a publisher link had brought it.

One event is one message; several are a batch envelope, which is stored whole in one partition or not at all.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from hubweir.amqp.messaging.annotations import PARTITION_KEY
from hubweir.amqp.messaging.batch import BATCH_FORMAT, MESSAGE_FORMAT, pack_batch
from hubweir.amqp.messaging.message import DataBody, Message, Properties, encode_message
from hubweir.amqp.types.values import Symbol

# A media type is a few words; what is longer, or no ASCII, cannot be an AMQP symbol and is left out.
CONTENT_TYPE_LIMIT = 256


@dataclass(frozen=True, slots=True)
class PostedEvent:
    """One event as a request describes it."""

    body: bytes
    properties: dict[str, object]
    content_type: str | None = None


@dataclass(frozen=True, slots=True)
class Publication:
    """The bytes of one transfer. format: its message format."""

    data: bytes
    format: int

    def rows(self) -> array[int]:
        """The delivery row of these bytes (kernels.contract)."""
        return array("q", (0, 0, len(self.data), 0, self.format))


def publication(events: Sequence[PostedEvent], *, key: str | None, is_batch: bool) -> Publication:
    """The transfer that carries the events. key: the partition key of all of them."""
    if is_batch:
        envelope: dict[Symbol | str, object] = {} if key is None else {PARTITION_KEY: key}
        return Publication(pack_batch([_message(event, None) for event in events], annotations=envelope), BATCH_FORMAT)
    return Publication(_message(events[0], key), MESSAGE_FORMAT)


def content_type_of(media: str | None) -> Symbol | None:
    """A media type as a message can carry it; None when there is none, or it cannot."""
    if media is None or not media.isascii() or not media.isprintable() or len(media) > CONTENT_TYPE_LIMIT:
        return None
    return Symbol(media)


def _message(event: PostedEvent, key: str | None) -> bytes:
    media = content_type_of(event.content_type)
    return encode_message(
        Message(
            message_annotations=None if key is None else {PARTITION_KEY: key},
            properties=None if media is None else Properties(content_type=media),
            application_properties=event.properties or None,
            body=DataBody((event.body,)),
        )
    )
