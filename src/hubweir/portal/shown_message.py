"""An event or a message as a page shows it: its body as JSON, text or hexadecimal digits, and what stands beside it.

A page shows a part of what is large. What is no legal AMQP is shown as bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from hubweir.amqp.messaging.message import DataBody, Message, SequenceBody, ValueBody, decode_message
from hubweir.errors import DecodeError
from hubweir.namespace.strict_json import IllegalJson, read_json

BODY_LIMIT_BYTES = 16 * 1024
HEX_LIMIT_BYTES = 2 * 1024
VALUE_LIMIT_CHARACTERS = 1_024
PREVIEW_CHARACTERS = 120
PROPERTY_COUNT = 100
VIEWS = (("auto", "Automatic"), ("json", "JSON"), ("text", "Text"), ("hex", "Hex"))
_HEX_COLUMNS = 16
Rows = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class ShownBody:
    """text: as far as it is shown. view: how. is_cut: there is more."""

    text: str
    view: str
    size_bytes: int
    is_cut: bool

    @property
    def preview(self) -> str:
        """One line of it."""
        line = " ".join(self.text.split())
        return line if len(line) <= PREVIEW_CHARACTERS else f"{line[:PREVIEW_CHARACTERS]} …"


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """body, application properties, system properties: all as text."""

    body: ShownBody
    properties: Rows
    system: Rows


def shown_message(data: bytes | memoryview, view: str = "auto") -> ShownMessage:
    """An encoded message. view: one of VIEWS."""
    try:
        message = decode_message(data)
    except DecodeError:
        return ShownMessage(shown_body(bytes(data), "hex"), (), ())
    return ShownMessage(shown_body(_body_of(message), view), _rows(message.application_properties), _system(message))


def shown_body(data: bytes, view: str) -> ShownBody:
    """A body. What cannot be shown as it was asked for is shown as it can be: JSON as text, text as hex."""
    size = len(data)
    if view in ("auto", "json") and size <= BODY_LIMIT_BYTES:
        try:
            value = read_json(data)
        except IllegalJson:
            pass
        else:
            if view == "json" or isinstance(value, dict | list):
                return ShownBody(json.dumps(value, indent=2, ensure_ascii=False), "json", size, False)
    if view != "hex":
        text = _text_of(data[:BODY_LIMIT_BYTES], is_cut=size > BODY_LIMIT_BYTES)
        if text is not None:
            return ShownBody(text, "text", size, size > BODY_LIMIT_BYTES)
    return ShownBody(_hex(data[:HEX_LIMIT_BYTES]), "hex", size, size > HEX_LIMIT_BYTES)


def _text_of(data: bytes, *, is_cut: bool) -> str | None:
    """UTF-8 text without control characters, but for white space; None: it is none. is_cut: at any byte."""
    text = data.decode(errors="ignore" if is_cut else "replace")
    if "\ufffd" in text or any(not (each.isprintable() or each.isspace()) for each in text):
        return None
    return text


def _hex(data: bytes) -> str:
    """Lines of 16 bytes, with what is printable beside them."""
    lines = []
    for at in range(0, len(data), _HEX_COLUMNS):
        piece = data[at : at + _HEX_COLUMNS]
        printed = "".join(chr(each) if 32 <= each < 127 else "." for each in piece)
        lines.append(f"{at:06x}  {piece.hex(' '):<{3 * _HEX_COLUMNS - 1}}  {printed}")
    return "\n".join(lines)


def _body_of(message: Message) -> bytes:
    match message.body:
        case DataBody(parts):
            return b"".join(parts)
        case ValueBody(bytes() as data):
            return data
        case ValueBody(str() as text):
            return text.encode(errors="replace")
        case ValueBody(value):
            return _value_text(value).encode(errors="replace")
        case SequenceBody(sequences):
            return _value_text(list(sequences)).encode(errors="replace")
    return b""


def _system(message: Message) -> Rows:
    """The properties of the message that are set, then its annotations."""
    rows: list[tuple[str, str]] = []
    if message.properties is not None:
        for each in fields(message.properties):
            value = getattr(message.properties, each.name)
            if value is not None:
                rows.append((each.name.replace("_", "-"), _value_text(value)))
    return (*rows, *_rows(message.message_annotations))


def _rows(values: Mapping[Any, object] | None) -> Rows:
    return [(str(name)[:256], _value_text(value)) for name, value in list((values or {}).items())[:PROPERTY_COUNT]]


def _value_text(value: object) -> str:
    """A value of AMQP as people read it."""
    text = value.hex() if isinstance(value, bytes | bytearray) else str(value)
    text = text if len(text) <= VALUE_LIMIT_CHARACTERS else f"{text[:VALUE_LIMIT_CHARACTERS]} …"
    return text.encode(errors="replace").decode()
