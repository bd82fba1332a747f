"""How messages are printed: their bodies, one a line, or a JSON object each."""

from __future__ import annotations

import base64
import json

import click

from hubweir.amqp.messaging.message import SequenceBody, ValueBody
from hubweir.client.message_run import MessageRun, ReceivedMessage
from hubweir.client.plain_values import plain_value


class MessageOutput:
    """Where messages go, and how many there were."""

    def __init__(self, as_json: bool) -> None:
        self.printed = 0
        self._as_json = as_json

    def take(self, run: MessageRun) -> None:
        """Print them: they are on their way to the reader of standard output when this returns."""
        for message in run:
            click.echo(json.dumps(message_document(message)) if self._as_json else _line(message))
        self.printed += len(run)

    def end(self) -> None:
        """Say how many there were, beside what was printed."""
        click.echo(counted(self.printed), err=True)


def counted(messages: int) -> str:
    """Such as "1 message"."""
    return f"{messages} message{'' if messages == 1 else 's'}"


def message_document(message: ReceivedMessage) -> dict[str, object]:
    """One message. A body that is no UTF-8 stands under body_base64, one of an AMQP value or of sequences, as other
    clients send them, under body_value; body is null then. So it is without any body.

    What the message does not have is null; properties are application properties.
    """
    document: dict[str, object] = {
        "sequence_number": message.sequence_number,
        "enqueued_time_ms": message.enqueued_time_ms,
        "state": message.state,
        "delivery_count": message.delivery_count,
        "message_id": plain_value(message.message_id),
        "session_id": message.session_id,
        "subject": message.subject,
        "correlation_id": plain_value(message.correlation_id),
        "content_type": message.content_type,
        "reply_to": message.reply_to,
        "time_to_live_ms": message.time_to_live_ms,
        "properties": plain_value(message.properties),
        "body": None,
    }
    body = message.body
    if body is None:
        value = plain_value(_value(message))
        return document if value is None else document | {"body_value": value}
    try:
        return document | {"body": body.decode()}
    except UnicodeDecodeError:
        return document | {"body_base64": base64.b64encode(body).decode()}


def _line(message: ReceivedMessage) -> bytes | str:
    """A body as one writes it in a line: bytes and texts as they are, other values as JSON."""
    value = _value(message) if message.body is None else message.body
    if value is None:
        return ""
    return value if isinstance(value, bytes | str) else json.dumps(plain_value(value))


def _value(message: ReceivedMessage) -> object:
    """What a body without data sections holds; None: nothing."""
    match message.message.body:
        case ValueBody(value):
            return value
        case SequenceBody(sequences):
            return list(sequences)
    return None
