"""A batch of events being filled: one transfer, so stored whole in one partition or not at all.

The bytes are the batch envelope of the service (message format 0x80013700): optional message annotations with the
partition key, then one data section an event, each holding a whole encoded message. What is counted against the limit
is exactly what goes over the wire.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hubweir.amqp.messaging.annotations import PARTITION_KEY
from hubweir.amqp.messaging.batch import pack_batch
from hubweir.amqp.messaging.message import Message, Properties, encode_message
from hubweir.amqp.types.values import Symbol
from hubweir.errors import ARGUMENT_OUT_OF_RANGE, MESSAGE_TOO_LARGE, ServiceError
from hubweir.event_hub.partition_key import KEY_LIMIT_CHARACTERS

_DATA8, _DATA32 = b"\x00\x53\x75\xa0", b"\x00\x53\x75\xb0"


class EventBatch:
    """Events for one partition: of the key, of the link, or of the service's choice. Not for two sends at once."""

    __slots__ = ("_head", "_parts", "count", "max_size_bytes", "partition_key", "size_bytes")

    def __init__(self, max_size_bytes: int, *, partition_key: str | None = None) -> None:
        """max_size_bytes: what the link takes in one transfer (Sender.max_message_size)."""
        if partition_key is not None and len(partition_key) > KEY_LIMIT_CHARACTERS:
            raise ServiceError(
                ARGUMENT_OUT_OF_RANGE,
                f"the partition key has {len(partition_key)} characters, the limit is {KEY_LIMIT_CHARACTERS}: "
                "shorten it",
            )
        self.max_size_bytes = max_size_bytes
        self.partition_key = partition_key
        self.count = 0
        self._parts: list[bytes] = []
        self._head = envelope_head(partition_key)
        self.size_bytes = len(self._head)

    def try_add(self, body: bytes, properties: Mapping[str, object] | None = None) -> bool:
        """Take one event, or say False when the batch would grow over its limit; then send it and begin another."""
        return self.try_add_message(encode_event(body, properties))

    def try_add_message(self, message: bytes) -> bool:
        """The same for an event that is encoded already, as a message."""
        part = data_section(message)
        if self.size_bytes + len(part) > self.max_size_bytes:
            return False
        self._parts.append(part)
        self.size_bytes += len(part)
        self.count += 1
        return True

    def payload(self) -> bytes:
        """The transfer's payload."""
        return self._head + self.events()

    def events(self) -> bytes:
        """The payload without the envelope's annotations: data sections back to back."""
        return b"".join(self._parts)


def envelope_head(partition_key: str | None, annotations: Mapping[Symbol | str, object] | None = None) -> bytes:
    """The message annotations that a batch begins with; empty when there is nothing to say."""
    head: dict[Symbol | str, object] = {} if partition_key is None else {PARTITION_KEY: partition_key}
    return pack_batch((), annotations={**head, **(annotations or {})})


def batches_of(
    bodies: Iterable[bytes], max_size_bytes: int, *, partition_key: str | None = None, head: bytes = b""
) -> Iterable[EventBatch]:
    """Cut bodies into as few batches as the limit allows, in order. ServiceError MESSAGE_TOO_LARGE: one fits none.

    head: what stands in front of the body of each event (event_head).
    """
    batch = EventBatch(max_size_bytes, partition_key=partition_key)
    for body in bodies:
        message = head + data_section(body)
        if batch.try_add_message(message):
            continue
        if batch.count:
            yield batch
        batch = EventBatch(max_size_bytes, partition_key=partition_key)
        if not batch.try_add_message(message):
            raise ServiceError(
                MESSAGE_TOO_LARGE,
                f"an event of {len(body)} bytes does not fit the limit of {max_size_bytes} bytes: make it smaller",
            )
    if batch.count:
        yield batch


def encode_event(body: bytes, properties: Mapping[str, object] | None = None) -> bytes:
    """One encoded message: application properties if there are any, then the body as a data section."""
    return event_head(properties) + data_section(body) if properties else data_section(body)


def event_head(properties: Mapping[str, object] | None = None, content_type: str | None = None) -> bytes:
    """The sections of an encoded message that stand in front of its body; empty when there is nothing to say."""
    standard = None if content_type is None else Properties(content_type=Symbol(content_type))
    given = dict(properties) if properties else None
    return encode_message(Message(properties=standard, application_properties=given))


def data_section(content: bytes) -> bytes:
    """A data section around content, with the short length where it fits."""
    size = len(content)
    return b"%b%c%b" % (_DATA8, size, content) if size < 256 else _DATA32 + size.to_bytes(4, "big") + content
