"""How messages are printed: their bodies, one a line, or a JSON object each."""

from __future__ import annotations

import base64
import json

import click

from hubweir.client.message_run import MessageRun, ReceivedMessage


class MessageOutput:
    """Where messages go, and how many there were."""

    def __init__(self, as_json: bool) -> None:
        self.printed = 0
        self._as_json = as_json

    def take(self, run: MessageRun) -> None:
        """Print them: they are on their way to the reader of standard output when this returns."""
        for message in run:
            click.echo(json.dumps(message_document(message), default=_text) if self._as_json else message.body or b"")
        self.printed += len(run)

    def end(self) -> None:
        """Say how many there were, beside what was printed."""
        click.echo(counted(self.printed), err=True)


def counted(messages: int) -> str:
    """Such as "1 message"."""
    return f"{messages} message{'' if messages == 1 else 's'}"


def message_document(message: ReceivedMessage) -> dict[str, object]:
    """One message. A body that is no UTF-8 stands under body_base64, and body is null; so it is without any body.

    What the message does not have is null; properties are application properties.
    """
    document: dict[str, object] = {
        "sequence_number": message.sequence_number,
        "enqueued_time_ms": message.enqueued_time_ms,
        "state": message.state,
        "delivery_count": message.delivery_count,
        "message_id": message.message_id,
        "session_id": message.session_id,
        "subject": message.subject,
        "correlation_id": message.correlation_id,
        "content_type": message.content_type,
        "reply_to": message.reply_to,
        "time_to_live_ms": message.time_to_live_ms,
        "properties": message.properties,
        "body": None,
    }
    body = message.body
    if body is None:
        return document
    try:
        return document | {"body": body.decode()}
    except UnicodeDecodeError:
        return document | {"body_base64": base64.b64encode(body).decode()}


def _text(value: object) -> str:
    """A value that JSON has no form for."""
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)
