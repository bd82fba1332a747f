"""Finds where each section of a message starts and ends, and leaves its content unread (part 3, section 3.2).

| code | section                | value  | how often  |
|------|------------------------|--------|------------|
| 0x70 | header                 | list   | once       |
| 0x71 | delivery-annotations   | map    | once       |
| 0x72 | message-annotations    | map    | once       |
| 0x73 | properties             | list   | once       |
| 0x74 | application-properties | map    | once       |
| 0x75 | data                   | binary | one body: any number of data, any number of   |
| 0x76 | amqp-sequence          | list   | sequences, or one value                       |
| 0x77 | amqp-value             | any    |                                               |
| 0x78 | footer                 | map    | once       |

The standard fixes the order; here any order will do, and a message may have no body at all: Azure's Python client
writes delivery annotations after the footer, and others leave the body out. The sections of a body stand together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from hubweir.amqp.types import format_codes as code_of
from hubweir.amqp.types.format_codes import BY_CODE, AmqpType
from hubweir.amqp.types.read_scalar import Buffer, read_descriptor, truncated
from hubweir.amqp.types.skip import skip
from hubweir.errors import DecodeError

HEADER: Final = 0x70
DELIVERY_ANNOTATIONS: Final = 0x71
MESSAGE_ANNOTATIONS: Final = 0x72
PROPERTIES: Final = 0x73
APPLICATION_PROPERTIES: Final = 0x74
DATA: Final = 0x75
AMQP_SEQUENCE: Final = 0x76
AMQP_VALUE: Final = 0x77
FOOTER: Final = 0x78


class BodyKind(Enum):
    """Kinds of sections that the body of a message is made of."""

    NONE = "none"
    DATA = "data"
    SEQUENCE = "amqp-sequence"
    VALUE = "amqp-value"


@dataclass(frozen=True, slots=True)
class Section:
    """One section: its code, where it starts, where its value's constructor stands, where it ends (exclusive)."""

    code: int
    start: int
    value: int
    end: int


@dataclass(frozen=True, slots=True)
class Sections:
    """Positions of a message's sections: start of the descriptor, end exclusive; -1 where there is no such section.

    The body is one range over all of its sections, body_count of them.
    """

    header_start: int = -1
    header_end: int = -1
    delivery_annotations_start: int = -1
    delivery_annotations_end: int = -1
    message_annotations_start: int = -1
    message_annotations_end: int = -1
    properties_start: int = -1
    properties_end: int = -1
    application_properties_start: int = -1
    application_properties_end: int = -1
    body_start: int = -1
    body_end: int = -1
    body_kind: BodyKind = BodyKind.NONE
    body_count: int = 0
    footer_start: int = -1
    footer_end: int = -1


_LIST: Final = frozenset({AmqpType.LIST})
_MAP: Final = frozenset({AmqpType.MAP})
# code: (name, descriptor as a symbol, types its value may have; None: any)
_SECTIONS: Final[dict[int, tuple[str, str, frozenset[AmqpType] | None]]] = {
    HEADER: ("header", "amqp:header:list", _LIST),
    DELIVERY_ANNOTATIONS: ("delivery_annotations", "amqp:delivery-annotations:map", _MAP),
    MESSAGE_ANNOTATIONS: ("message_annotations", "amqp:message-annotations:map", _MAP),
    PROPERTIES: ("properties", "amqp:properties:list", _LIST),
    APPLICATION_PROPERTIES: ("application_properties", "amqp:application-properties:map", _MAP),
    DATA: ("data", "amqp:data:binary", frozenset({AmqpType.BINARY})),
    AMQP_SEQUENCE: ("amqp-sequence", "amqp:amqp-sequence:list", _LIST),
    AMQP_VALUE: ("amqp-value", "amqp:amqp-value:*", None),
    FOOTER: ("footer", "amqp:footer:map", _MAP),
}
_CODE_BY_DESCRIPTOR: Final[dict[object, int]] = {code: code for code in _SECTIONS} | {
    symbol: code for code, (_, symbol, _) in _SECTIONS.items()
}
_BODY_KIND: Final = {DATA: BodyKind.DATA, AMQP_SEQUENCE: BodyKind.SEQUENCE, AMQP_VALUE: BodyKind.VALUE}


def walk_sections(message: Buffer, start: int = 0, end: int | None = None) -> Iterator[Section]:
    """The sections of message[start:end] as they stand.

    Raises DecodeError, when it is reached, for what is not a section, has a value of the wrong type, or reaches past
    end. Which sections may stand together is not checked here.
    """
    limit = len(message) if end is None else min(end, len(message))
    position = start
    while position < limit:
        section_start = position
        if message[position] != code_of.DESCRIBED:
            raise DecodeError(f"no section of a message starts at byte {position}")
        descriptor, position = read_descriptor(message, position + 1, limit)
        code = _CODE_BY_DESCRIPTOR.get(descriptor)
        if code is None:
            raise DecodeError(f"{descriptor!r} at byte {section_start} is no section of a message")
        if position >= limit:
            truncated(position)
        value = position
        allowed = _SECTIONS[code][2]
        constructor = BY_CODE.get(message[value])
        if allowed is not None and (constructor is None or constructor.type not in allowed):
            raise DecodeError(f"{_SECTIONS[code][1]} has the constructor {message[value]:#04x} at byte {value}")
        position = skip(message, value, limit)
        yield Section(code, section_start, value, position)


def find_sections(message: Buffer, start: int = 0, end: int | None = None) -> Sections:
    """Find the sections of message[start:end].

    Raises DecodeError as walk_sections, and for: a section that stands twice, a body of mixed kinds, two values, a
    body with something else in between.
    """
    found: dict[str, int] = {}
    kind = BodyKind.NONE
    count = 0
    for section in walk_sections(message, start, end):
        section_kind = _BODY_KIND.get(section.code)
        if section_kind is None:
            name = _SECTIONS[section.code][0]
            if f"{name}_start" in found:
                raise DecodeError(f"the section {name} stands twice, again at byte {section.start}")
        else:
            name = "body"
            if count and (section_kind is not kind or kind is BodyKind.VALUE or section.start != found["body_end"]):
                raise DecodeError(f"a second body, of {section_kind.value}, starts at byte {section.start}")
            kind = section_kind
            count += 1
        found.setdefault(f"{name}_start", section.start)
        found[f"{name}_end"] = section.end
    return Sections(body_kind=kind, body_count=count, **found)
