"""AMQP values and message sections in plain Python: find where they end, never what they mean.

Every position is checked against its end before the byte is read; sizes that a peer declared are compared with what
is there before anything is added to them. A list, map or array is stepped over by its size, so the only thing that
nests here is a described value, and MAX_DEPTH bounds that. (AMQP 1.0 part 1 section 1.6, part 3 section 3.2)

The compiled form of this page is `sections.pxd`.
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_DEPTH = 32

HEADER, DELIVERY_ANNOTATIONS, MESSAGE_ANNOTATIONS, PROPERTIES, APPLICATION_PROPERTIES = range(0x70, 0x75)
DATA, SEQUENCE, VALUE, FOOTER = range(0x75, 0x79)

# Fields of the header's and of the properties' list. (part 3, sections 3.2.1 and 3.2.4)
HEADER_FIELDS, PROPERTIES_FIELDS = 5, 13

SECTION_NAMES = {
    b"amqp:header:list": HEADER,
    b"amqp:delivery-annotations:map": DELIVERY_ANNOTATIONS,
    b"amqp:message-annotations:map": MESSAGE_ANNOTATIONS,
    b"amqp:properties:list": PROPERTIES,
    b"amqp:application-properties:map": APPLICATION_PROPERTIES,
    b"amqp:data:binary": DATA,
    b"amqp:amqp-sequence:list": SEQUENCE,
    b"amqp:amqp-value:*": VALUE,
    b"amqp:footer:map": FOOTER,
}

# Constructors, by how their size is found.
FIXED = {
    **dict.fromkeys((0x40, 0x41, 0x42, 0x43, 0x44, 0x45), 0),
    **dict.fromkeys((0x50, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56), 1),
    **dict.fromkeys((0x60, 0x61), 2),
    **dict.fromkeys((0x70, 0x71, 0x72, 0x73, 0x74), 4),
    **dict.fromkeys((0x80, 0x81, 0x82, 0x83, 0x84), 8),
    **dict.fromkeys((0x94, 0x98), 16),
}
VARIABLE = {0xA0: 1, 0xA1: 1, 0xA3: 1, 0xB0: 4, 0xB1: 4, 0xB3: 4}
COMPOUND = {0xC0: 1, 0xC1: 1, 0xD0: 4, 0xD1: 4, 0xE0: 1, 0xF0: 4}
BINARY, STRING, SYMBOL = (0xA0, 0xB0), (0xA1, 0xB1), (0xA3, 0xB3)
NULL = b"\x40"
LIST, MAP = (0x45, 0xC0, 0xD0), (0xC1, 0xD1)

# What a section's value must be; VALUE takes anything.
SECTION_TYPES = {
    HEADER: LIST, DELIVERY_ANNOTATIONS: MAP, MESSAGE_ANNOTATIONS: MAP, PROPERTIES: LIST, APPLICATION_PROPERTIES: MAP,
    DATA: BINARY, SEQUENCE: LIST, FOOTER: MAP,
}  # fmt: skip


class Malformed(Exception):
    """The bytes are not legal AMQP here. Stays inside the twins: every kernel turns it into its status."""


@dataclass(frozen=True, slots=True)
class Section:
    """One section of a message: its code, where it starts, where its value starts, where it ends."""

    code: int
    start: int
    value: int
    end: int


def take(at: int, size: int, end: int) -> int:
    """Return the position behind size bytes at `at`; Malformed when they are not all there."""
    if size > end - at:
        raise Malformed
    return at + size


def number(data: memoryview, at: int, size: int, end: int) -> int:
    """Read size bytes at `at` as one unsigned big-endian number."""
    return int.from_bytes(data[at : take(at, size, end)], "big")


def variable(data: memoryview, at: int, end: int) -> tuple[int, int]:
    """Return where the bytes of the binary, string or symbol at `at` start and end."""
    width = VARIABLE[data[at]]
    start = at + 1 + width
    return start, take(start, number(data, at + 1, width, end), end)


def compound(data: memoryview, at: int, end: int) -> tuple[int, int, int]:
    """Return (count, start, end) of the items of the list, map or array at `at`."""
    if data[at] == 0x45:
        return 0, at + 1, at + 1
    width = COMPOUND[data[at]]
    size = number(data, at + 1, width, end)
    if size < width:
        raise Malformed
    stop = take(at + 1 + width, size, end)
    return number(data, at + 1 + width, width, stop), at + 1 + 2 * width, stop


def skip_value(data: memoryview, at: int, end: int) -> int:
    """Return the position behind the value at `at`, its descriptors included."""
    pending, described = 1, 0
    while pending:
        behind = take(at, 1, end)
        code = data[at]
        if code == 0x00:
            # A descriptor and the value it describes stand in the place of one value.
            described += 1
            if described > MAX_DEPTH:
                raise Malformed
            pending += 1
            at = behind
            continue
        if code in FIXED:
            at = take(behind, FIXED[code], end)
        elif code in VARIABLE:
            at = variable(data, at, end)[1]
        elif code in COMPOUND:
            at = compound(data, at, end)[2]
        else:
            raise Malformed
        pending -= 1
    return at


def read_section(data: memoryview, at: int, end: int) -> Section:
    """Return the section that starts at `at`, its descriptor numeric or symbolic, of any legal width."""
    value = skip_value(data, take(at, 1, end), end)
    if data[at] != 0x00:
        raise Malformed
    descriptor = data[at + 1]
    if descriptor in (0x53, 0x80):
        code = int.from_bytes(data[at + 2 : value], "big")
    elif descriptor in SYMBOL:
        start, stop = variable(data, at + 1, value)
        code = SECTION_NAMES.get(bytes(data[start:stop]), 0)
    else:
        raise Malformed
    if not HEADER <= code <= FOOTER:
        raise Malformed
    stop = skip_value(data, value, end)
    if code != VALUE and data[value] not in SECTION_TYPES[code]:
        raise Malformed
    return Section(code, at, value, stop)


def map_entries(data: memoryview, at: int, end: int) -> list[tuple[int, int, int]]:
    """Return (key, value, end) positions of each entry of the map at `at`, which must fill its size exactly."""
    count, position, stop = compound(data, at, end)
    if count % 2:
        raise Malformed
    entries = []
    for _ in range(count // 2):
        value = skip_value(data, position, stop)
        behind = skip_value(data, value, stop)
        entries.append((position, value, behind))
        position = behind
    if position != stop:
        raise Malformed
    return entries


def is_name(data: memoryview, at: int, end: int, name: bytes) -> bool:
    """Whether the symbol or string at `at` spells name."""
    if data[at] not in SYMBOL + STRING:
        return False
    start, stop = variable(data, at, end)
    return data[start:stop] == name


def read_message(data: memoryview, at: int, end: int) -> list[Section]:
    """Return the sections of the message data[at:end], in the order they came; any order is taken.

    Malformed when a section other than the body's stands twice, the body mixes kinds or has two values, or the
    message annotations are no map that can be walked: deliver must be able to merge them.
    """
    sections: list[Section] = []
    codes: set[int] = set()
    while at < end:
        section = read_section(data, at, end)
        if section.code in codes and section.code not in (DATA, SEQUENCE):
            raise Malformed
        if section.code in (DATA, SEQUENCE, VALUE) and codes & ({DATA, SEQUENCE, VALUE} - {section.code}):
            raise Malformed
        if section.code == MESSAGE_ANNOTATIONS:
            map_entries(data, section.value, section.end)
        codes.add(section.code)
        sections.append(section)
        at = section.end
    return sections


def find_section(sections: list[Section], code: int) -> Section | None:
    """Return the first section of this code."""
    return next((section for section in sections if section.code == code), None)


def list_fields(data: memoryview, section: Section | None, count: int) -> list[bytes]:
    """Return the encoded fields of a list section, null where it ends early; Malformed when it has more."""
    fields = []
    if section is not None:
        items, at, end = compound(data, section.value, section.end)
        if items > count:
            raise Malformed
        for _ in range(items):
            behind = skip_value(data, at, end)
            fields.append(bytes(data[at:behind]))
            at = behind
        if at != end:
            raise Malformed
    return fields + [NULL] * (count - len(fields))
