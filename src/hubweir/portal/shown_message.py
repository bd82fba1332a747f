"""An event or a message as a page shows it: its body as JSON, text or hexadecimal digits, and what stands beside it.

A page shows a part of what is large, so that nobody makes a large page by what they send: of a body some KB, of JSON
that is indented at most twice as many characters, of properties so many that they are 8 KB. What is no legal AMQP is
shown as bytes. A file of Avro was read before, by a process of its own (avro_reading.py).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from hubweir.amqp.messaging.message import DataBody, Message, SequenceBody, ValueBody, decode_message
from hubweir.errors import DecodeError
from hubweir.namespace.strict_json import IllegalJson, read_json
from hubweir.portal.avro_body import AvroText, is_avro_file, missing_schema

BODY_LIMIT_BYTES = 16 * 1024
HEX_LIMIT_BYTES = 2 * 1024
VALUE_LIMIT_CHARACTERS = 1_024
PREVIEW_CHARACTERS = 120
PROPERTY_COUNT, PROPERTIES_CHARACTERS = 100, 8_192
# Bodies of one page together, as bytes. One message alone is shown as far as BODY_LIMIT_BYTES.
PAGE_BODIES_BYTES = 512 * 1024
AVRO = "avro"
VIEWS = (("auto", "Automatic"), ("json", "JSON"), ("text", "Text"), (AVRO, "Avro"), ("hex", "Hex"))
_HEX_COLUMNS = 16
_INDENTED = json.JSONEncoder(indent=2, ensure_ascii=False)
Rows = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class ShownBody:
    """text: as far as it is shown. view: how. is_cut: there is more. note: what a person should know of it; or ""."""

    text: str
    view: str
    size_bytes: int
    is_cut: bool
    note: str = ""

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


def body_limit(count: int) -> int:
    """How many bytes of each body a page of so many messages shows."""
    return min(BODY_LIMIT_BYTES, PAGE_BODIES_BYTES // max(1, count))


def shown_message(
    data: bytes | memoryview, view: str = "auto", limit: int = BODY_LIMIT_BYTES, avro: AvroText | None = None
) -> ShownMessage:
    """An encoded message. view: one of VIEWS. limit: of the bytes of its body.

    avro: what its body holds; None: that is no Avro file, or nobody asked for its records.
    """
    try:
        message = decode_message(data)
    except DecodeError:
        return ShownMessage(shown_body(bytes(data), "hex"), (), ())
    found = body_of(message)
    if view == AVRO:
        kind = "" if message.properties is None else str(message.properties.content_type or "")
        body = _shown_file(found, avro) if avro else _without_schema(found, kind, limit)
    else:
        body = shown_body(found, view, limit)
        if view == "auto" and is_avro_file(found):
            body = replace(body, note="An Avro file: choose the view Avro to read its records.")
    return ShownMessage(body, _rows(message.application_properties), _system(message))


def encoded_body(data: bytes | memoryview) -> bytes:
    """The body of an encoded message; of what is no legal AMQP, nothing."""
    try:
        return body_of(decode_message(data))
    except DecodeError:
        return b""


def _shown_file(data: bytes, avro: AvroText) -> ShownBody:
    """Records of an Avro file; when there is none that could be read, its bytes."""
    origin = f"Records of the schema {avro.schema}, codec {avro.codec}." if avro.schema else ""
    problem = f"{'It goes no further' if avro.text else 'It is not read'}: {avro.problem}." if avro.problem else ""
    if not avro.text and not problem:
        origin += " It holds no record."
    note = f"{origin} {problem}".strip()
    if not avro.text:
        return replace(shown_body(data, "hex"), note=note)
    return ShownBody(avro.text, AVRO, len(data), avro.is_cut, note)


def _without_schema(data: bytes, content_type: str, limit: int) -> ShownBody:
    return replace(shown_body(data, "auto", limit), note=missing_schema(data, content_type))


def shown_body(data: bytes, view: str, limit: int = BODY_LIMIT_BYTES) -> ShownBody:
    """A body. What cannot be shown as it was asked for is shown as it can be: JSON as text, text as hex."""
    size = len(data)
    if view in ("auto", "json") and size <= limit:
        pretty = _pretty_json(data, 2 * limit, takes_scalars=view == "json")
        if pretty is not None:
            return ShownBody(pretty, "json", size, False)
    if view != "hex":
        text = _text_of(data[:limit], is_cut=size > limit)
        if text is not None:
            return ShownBody(text, "text", size, size > limit)
    return ShownBody(_hex(data[:HEX_LIMIT_BYTES]), "hex", size, size > HEX_LIMIT_BYTES)


def _pretty_json(data: bytes, limit: int, *, takes_scalars: bool) -> str | None:
    """Indented JSON; None: it is none, or it would have more characters than that, as numbers deep in lists do."""
    try:
        value = read_json(data)
    except IllegalJson:
        return None
    if not (takes_scalars or isinstance(value, dict | list)):
        return None
    pieces, length = [], 0
    for piece in _INDENTED.iterencode(value):
        pieces.append(piece)
        length += len(piece)
        if length > limit:
            return None
    return "".join(pieces)


def _text_of(data: bytes, *, is_cut: bool) -> str | None:
    """UTF-8 text without control characters, but for white space; None: it is none. is_cut: at any byte."""
    text = data.decode(errors="ignore" if is_cut else "replace")
    return None if "\ufffd" in text or not "".join(text.split()).isprintable() else text


def _hex(data: bytes) -> str:
    """Lines of 16 bytes, with what is printable beside them."""
    lines = []
    for at in range(0, len(data), _HEX_COLUMNS):
        piece = data[at : at + _HEX_COLUMNS]
        printed = "".join(chr(each) if 32 <= each < 127 else "." for each in piece)
        lines.append(f"{at:06x}  {piece.hex(' '):<{3 * _HEX_COLUMNS - 1}}  {printed}")
    return "\n".join(lines)


def body_of(message: Message) -> bytes:
    """The bytes of its data; of a value or a sequence, the text that says it."""
    match message.body:
        case DataBody(parts):
            return b"".join(parts)
        case ValueBody(bytes() as data):
            return data
        case ValueBody(str() as text):
            return text.encode(errors="replace")
        case ValueBody(value):
            return str(value).encode(errors="replace")
        case SequenceBody(sequences):
            return str(list(sequences)).encode(errors="replace")
    return b""


def _system(message: Message) -> Rows:
    """The properties of the message that are set, then its annotations."""
    found: list[tuple[object, object]] = []
    if message.properties is not None:
        names = [each.name for each in fields(message.properties)]
        found += [(name.replace("_", "-"), getattr(message.properties, name)) for name in names]
    return _as_rows(
        [*((name, value) for name, value in found if value is not None), *_items(message.message_annotations)]
    )


def _rows(values: Mapping[Any, object] | None) -> Rows:
    return _as_rows(_items(values))


def _items(values: Mapping[Any, object] | None) -> list[tuple[object, object]]:
    return list((values or {}).items())


def _as_rows(pairs: Sequence[tuple[object, object]]) -> Rows:
    """As text, so many as a page has room for; then how many more there are."""
    rows: list[tuple[str, str]] = []
    length = 0
    for name, value in pairs:
        row = str(name)[:256], value_text(value)
        length += len(row[0]) + len(row[1])
        if len(rows) == PROPERTY_COUNT or length > PROPERTIES_CHARACTERS:
            return [*rows, ("…", f"{len(pairs) - len(rows)} more, which are left out here")]
        rows.append(row)
    return rows


def value_text(value: object) -> str:
    """A value of AMQP as people read it."""
    shown = value[: VALUE_LIMIT_CHARACTERS // 2 + 1].hex() if isinstance(value, bytes | bytearray) else value
    text = str(shown)
    text = text if len(text) <= VALUE_LIMIT_CHARACTERS else f"{text[:VALUE_LIMIT_CHARACTERS]} …"
    return text.encode(errors="replace").decode()
