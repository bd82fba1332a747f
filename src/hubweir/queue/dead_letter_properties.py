"""Application properties that dead-lettering adds to a message; they are left out when it is sent again."""

from __future__ import annotations

from dataclasses import replace

from hubweir.amqp.messaging.message import Message

DEAD_LETTER_REASON, DEAD_LETTER_DESCRIPTION = _SET = "DeadLetterReason", "DeadLetterErrorDescription"


def sent_again(message: Message, *, keeps_id: bool = True) -> Message:
    """A received message as it may be sent again: without what the service and its dead-lettering said about it.

    keeps_id: where duplicates are detected, a message with an id that was sent before is taken and dropped.
    """
    kept = {name: value for name, value in (message.application_properties or {}).items() if name not in _SET}
    header, properties = message.header, message.properties
    return replace(
        message,
        header=None if header is None else replace(header, delivery_count=0),
        delivery_annotations=None,
        properties=properties if keeps_id or properties is None else replace(properties, message_id=None),
        application_properties=kept or None,
    )
