"""Prints messages: their bodies, one a line, or a JSON object each."""

from __future__ import annotations

import json

import click

from hubweir.cli.counted import counted
from hubweir.cli.printed_body import body_line, body_members
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
            if self._as_json:
                click.echo(json.dumps(message_document(message)))
            else:
                click.echo(body_line(message.body, message.message))
        self.printed += len(run)

    def end(self) -> None:
        """Say how many there were, beside what was printed."""
        click.echo(counted(self.printed, "message"), err=True)


def message_document(message: ReceivedMessage) -> dict[str, object]:
    """One message. What it does not have is null; properties are application properties; its body: see body_members."""
    return {
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
        **body_members(message.body, message.message),
    }
