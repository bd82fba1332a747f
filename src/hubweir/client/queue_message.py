"""A message on its way to a queue: what an application sets, and its bytes. Times are ms since 1970."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from hubweir.amqp.messaging.annotations import PARTITION_KEY
from hubweir.amqp.messaging.message import Annotations, DataBody, Header, Message, Properties, encode_message
from hubweir.amqp.types.values import Symbol, Timestamp
from hubweir.client.event_batch import data_section
from hubweir.errors import ARGUMENT_ERROR, EncodeError, ServiceError

SCHEDULED_TIME = Symbol("x-opt-scheduled-enqueue-time")
# The header's field is an unsigned number of 32 bits: a longer time to live is about this, some 49 days.
TTL_LIMIT_MS = 2**32 - 1


@dataclass(frozen=True, slots=True)
class QueueMessage:
    """One message to send. Without a message_id the service gives it one; session_id "" is a session, too.

    time_to_live_ms: how long it waits at most; over 49 days is 49 days. scheduled_at_ms: when it becomes active; a time
    that has passed is now. properties: application properties, each a number, text, bytes, a UUID, or None.
    """

    body: bytes = b""
    properties: Mapping[str, object] | None = None
    message_id: str | UUID | None = None
    session_id: str | None = None
    subject: str | None = None
    correlation_id: str | None = None
    content_type: str | None = None
    to: str | None = None
    reply_to: str | None = None
    reply_to_session_id: str | None = None
    partition_key: str | None = None
    time_to_live_ms: int | None = None
    scheduled_at_ms: int | None = None

    def encode(self) -> bytes:
        """The bytes of the AMQP message. ServiceError ARGUMENT_ERROR for a value that AMQP has no form for."""
        header, annotations, properties = self._header(), self._annotations(), self._properties()
        if header is None and annotations is None and properties is None and not self.properties:
            return data_section(self.body)
        try:
            return encode_message(
                Message(
                    header=header,
                    message_annotations=annotations,
                    properties=properties,
                    application_properties=dict(self.properties) if self.properties else None,
                    body=DataBody((self.body,)),
                )
            )
        except EncodeError as error:
            raise ServiceError(ARGUMENT_ERROR, f"a message cannot be sent as it is: {error}") from None

    def _header(self) -> Header | None:
        if self.time_to_live_ms is None:
            return None
        return Header(ttl=max(0, min(self.time_to_live_ms, TTL_LIMIT_MS)))

    def _annotations(self) -> Annotations | None:
        if self.scheduled_at_ms is None and self.partition_key is None:
            return None
        found: Annotations = {}
        if self.scheduled_at_ms is not None:
            found |= scheduled(self.scheduled_at_ms)
        if self.partition_key is not None:
            found[PARTITION_KEY] = self.partition_key
        return found

    def _properties(self) -> Properties | None:
        found = (
            self.message_id, self.session_id, self.subject, self.correlation_id, self.content_type, self.to,
            self.reply_to, self.reply_to_session_id,
        )  # fmt: skip
        if not any(value is not None for value in found):
            return None
        return Properties(
            message_id=self.message_id,
            to=self.to,
            subject=self.subject,
            reply_to=self.reply_to,
            correlation_id=self.correlation_id,
            content_type=None if self.content_type is None else Symbol(self.content_type),
            group_id=self.session_id,
            reply_to_group_id=self.reply_to_session_id,
        )


def scheduled(at_ms: int) -> Annotations:
    """The annotation of a message that becomes active at a time (ms since 1970)."""
    return {SCHEDULED_TIME: Timestamp(at_ms)}


# What a sender takes: bytes are a message with this body and nothing else; an AMQP message goes as it is.
Sendable = QueueMessage | Message | bytes


def encoded(message: Sendable) -> bytes:
    """The bytes of the AMQP message."""
    if isinstance(message, QueueMessage):
        return message.encode()
    return encode_message(message) if isinstance(message, Message) else data_section(message)
