"""The body of an event or a message as a command prints it: in a line, or in a JSON object."""

from __future__ import annotations

import base64
import json

from hubweir.amqp.messaging.message import Message, SequenceBody, ValueBody
from hubweir.client.plain_values import plain_value


def body_members(body: bytes | None, message: Message) -> dict[str, object]:
    """The members of a JSON object. body: of data sections; message: the whole, asked where body is None.

    A body that is no UTF-8 stands under body_base64, one of an AMQP value or of sequences, as other clients send them,
    under body_value; body is null then. So it is without any body.
    """
    if body is None:
        value = plain_value(_value(message))
        return {"body": None} if value is None else {"body": None, "body_value": value}
    try:
        return {"body": body.decode()}
    except UnicodeDecodeError:
        return {"body": None, "body_base64": base64.b64encode(body).decode()}


def body_line(body: bytes | None, message: Message) -> bytes | str:
    """As one writes it in a line: bytes and texts as they are, other values as JSON."""
    value = _value(message) if body is None else body
    if value is None:
        return ""
    return value if isinstance(value, bytes | str) else json.dumps(plain_value(value))


def _value(message: Message) -> object:
    """What a body without data sections holds; None: nothing."""
    match message.body:
        case ValueBody(value):
            return value
        case SequenceBody(sequences):
            return list(sequences)
    return None
