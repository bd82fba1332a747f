"""Building and opening a whole message (part 3, section 3.2).

For requests and responses, clients and tests. Events on their way through a broker are not opened: sections.py finds
what it needs to know of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final
from uuid import UUID

from hubweir.amqp.messaging import sections as section_of
from hubweir.amqp.messaging.sections import find_sections, walk_sections
from hubweir.amqp.types import format_codes as code_of
from hubweir.amqp.types.composite import Composite, amqp_field, composite, encode_composite_into, read_composite
from hubweir.amqp.types.decode import decode
from hubweir.amqp.types.encode import encode_into
from hubweir.amqp.types.field_types import (
    ANNOTATIONS,
    APPLICATION_PROPERTIES,
    BINARY,
    BOOLEAN,
    MESSAGE_ID,
    STRING,
    SYMBOL,
    TIMESTAMP,
    UBYTE,
    UINT,
    FieldType,
    WrongType,
)
from hubweir.amqp.types.read_scalar import Buffer
from hubweir.amqp.types.values import Symbol, Timestamp, ULong
from hubweir.errors import DecodeError, EncodeError


@composite
class Header(Composite):
    """How the message is to be transferred. ttl is in milliseconds."""

    CODE: ClassVar[int] = section_of.HEADER
    NAME: ClassVar[str] = "amqp:header:list"
    durable: bool = amqp_field(BOOLEAN, default=False)
    priority: int = amqp_field(UBYTE, default=4)
    ttl: int | None = amqp_field(UINT, default=None)
    first_acquirer: bool = amqp_field(BOOLEAN, default=False)
    delivery_count: int = amqp_field(UINT, default=0)


MessageId = ULong | UUID | bytes | str | int


@composite
class Properties(Composite):
    """The message's immutable standard properties.

    An id keeps the type it came with, so that an answer can carry it as correlation id; a plain int is a ulong.
    """

    CODE: ClassVar[int] = section_of.PROPERTIES
    NAME: ClassVar[str] = "amqp:properties:list"
    message_id: MessageId | None = amqp_field(MESSAGE_ID, default=None)
    user_id: bytes | None = amqp_field(BINARY, default=None)
    to: str | None = amqp_field(STRING, default=None)
    subject: str | None = amqp_field(STRING, default=None)
    reply_to: str | None = amqp_field(STRING, default=None)
    correlation_id: MessageId | None = amqp_field(MESSAGE_ID, default=None)
    content_type: Symbol | str | None = amqp_field(SYMBOL, default=None)
    content_encoding: Symbol | str | None = amqp_field(SYMBOL, default=None)
    absolute_expiry_time: Timestamp | int | None = amqp_field(TIMESTAMP, default=None)
    creation_time: Timestamp | int | None = amqp_field(TIMESTAMP, default=None)
    group_id: str | None = amqp_field(STRING, default=None)
    group_sequence: int | None = amqp_field(UINT, default=None)
    reply_to_group_id: str | None = amqp_field(STRING, default=None)


@dataclass(frozen=True, slots=True)
class DataBody:
    """Opaque bytes, in one section or several."""

    parts: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class SequenceBody:
    """Lists of values, one a section."""

    sequences: tuple[list[object], ...]


@dataclass(frozen=True, slots=True)
class ValueBody:
    """One value, which may be None."""

    value: object


Annotations = dict[Symbol | ULong, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message. None: the section is not there; body None: no body section at all."""

    header: Header | None = None
    delivery_annotations: Annotations | None = None
    message_annotations: Annotations | None = None
    properties: Properties | None = None
    application_properties: dict[str, object] | None = None
    body: DataBody | SequenceBody | ValueBody | None = None
    footer: Annotations | None = None


# The sections that are maps: code, and the attribute of Message.
_MAP_SECTIONS: Final[dict[int, tuple[str, FieldType]]] = {
    section_of.DELIVERY_ANNOTATIONS: ("delivery_annotations", ANNOTATIONS),
    section_of.MESSAGE_ANNOTATIONS: ("message_annotations", ANNOTATIONS),
    section_of.APPLICATION_PROPERTIES: ("application_properties", APPLICATION_PROPERTIES),
    section_of.FOOTER: ("footer", ANNOTATIONS),
}


def encode_message(message: Message) -> bytes:
    """The bytes of a message, sections in the order of the standard."""
    out = bytearray()
    if message.header is not None:
        encode_composite_into(out, message.header)
    _write_map(out, message, section_of.DELIVERY_ANNOTATIONS)
    _write_map(out, message, section_of.MESSAGE_ANNOTATIONS)
    if message.properties is not None:
        encode_composite_into(out, message.properties)
    _write_map(out, message, section_of.APPLICATION_PROPERTIES)
    _write_body(out, message.body)
    _write_map(out, message, section_of.FOOTER)
    return bytes(out)


def write_section_head(out: bytearray, code: int) -> None:
    """Append the descriptor of a section, in the one form that every client reads: 00 53 XX."""
    out += bytes((code_of.DESCRIBED, code_of.SMALL_ULONG, code))


def _write_map(out: bytearray, message: Message, code: int) -> None:
    name, field_type = _MAP_SECTIONS[code]
    value = getattr(message, name)
    if value is not None:
        write_section_head(out, code)
        try:
            field_type.write(out, value)
        except EncodeError as error:
            raise EncodeError(f"{name} of a message: {error}") from None


def _write_body(out: bytearray, body: DataBody | SequenceBody | ValueBody | None) -> None:
    code, values = section_of.AMQP_VALUE, tuple[object, ...]()
    if isinstance(body, DataBody):
        code, values = section_of.DATA, body.parts
    elif isinstance(body, SequenceBody):
        code, values = section_of.AMQP_SEQUENCE, body.sequences
    elif isinstance(body, ValueBody):
        values = (body.value,)
    for value in values:
        write_section_head(out, code)
        encode_into(out, value)


def decode_message(message: Buffer, start: int = 0, end: int | None = None) -> Message:
    """Open the message that message[start:end] is; sections may stand in any order.

    Raises DecodeError as find_sections, and for whatever is wrong inside a section.
    """
    find_sections(message, start, end)
    opened: dict[str, object] = {}
    body: list[object] = []
    body_code = 0
    for section in walk_sections(message, start, end):
        value, _ = decode(message, section.value, section.end)
        if section.code in _MAP_SECTIONS:
            name, field_type = _MAP_SECTIONS[section.code]
            try:
                opened[name] = field_type.read(value)
            except WrongType:
                raise DecodeError(f"{name} of a message is not a {field_type.name}") from None
        elif section.code == section_of.HEADER:
            opened["header"] = read_composite(Header, value)
        elif section.code == section_of.PROPERTIES:
            opened["properties"] = read_composite(Properties, value)
        else:
            body_code = section.code
            body.append(value)
    return Message(body=_read_body(body_code, body), **opened)  # type: ignore[arg-type]  # checked one by one above


def _read_body(code: int, values: list[object]) -> DataBody | SequenceBody | ValueBody | None:
    if code == section_of.DATA:
        return DataBody(tuple(value for value in values if isinstance(value, bytes)))
    if code == section_of.AMQP_SEQUENCE:
        return SequenceBody(tuple(value for value in values if isinstance(value, list)))
    return ValueBody(values[0]) if code else None
