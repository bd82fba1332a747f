"""The bytes of a copy that an action changed. Sections that no statement touched stay byte for byte, the body always.

A section that is changed is written anew from its values: other entries keep their values and types. Sections stand in
the order of the standard, whatever order they came in.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hubweir.amqp.messaging import sections as section_of
from hubweir.amqp.messaging.annotations import PARTITION_KEY
from hubweir.amqp.messaging.message import write_section_head
from hubweir.amqp.messaging.sections import walk_sections
from hubweir.amqp.types.encode import encode_into
from hubweir.amqp.types.read_scalar import Buffer
from hubweir.amqp.types.values import Symbol, UInt
from hubweir.topic.filtered_message import PROPERTY_PLACES, EncodedMessage
from hubweir.topic.rule_action import MessageChanges
from hubweir.topic.sql_values import TICKS_OF_MS, TimeSpan

# Entries of the header and of the properties: clients read both by place, so nothing is left out at the end.
_HEADER_LENGTH: Final = 5
_TTL_PLACE: Final = 2
_PROPERTIES_LENGTH: Final = 13


def write_copy(message: EncodedMessage, changes: MessageChanges) -> bytes:
    """The message with the changes that the action of a rule made for it; both are read and left as they are."""
    parts: dict[int, list[Buffer]] = {}
    for section in walk_sections(message.buffer):
        parts.setdefault(section.code, []).append(message.buffer[section.start : section.end])
    for code, value in _changed_sections(message, changes):
        out = bytearray()
        write_section_head(out, code)
        encode_into(out, value)
        parts[code] = [out]
    return b"".join(part for code in sorted(parts) for part in parts[code])


def _changed_sections(message: EncodedMessage, changes: MessageChanges) -> Iterator[tuple[int, object]]:
    """Code and value of each section that is written anew."""
    texts = {name: value for name, value in changes.system_properties.items() if name in PROPERTY_PLACES}
    if texts:
        properties = _padded(message.list_section(section_of.PROPERTIES), _PROPERTIES_LENGTH)
        for name, value in texts.items():
            assert not isinstance(value, TimeSpan)  # run_action puts texts there
            properties[PROPERTY_PLACES[name]] = Symbol(value) if value and name == "contenttype" else value
        yield section_of.PROPERTIES, properties
    if "timetolive" in changes.system_properties:
        header = _padded(message.list_section(section_of.HEADER), _HEADER_LENGTH)
        span = changes.system_properties["timetolive"]
        header[_TTL_PLACE] = UInt(span.ticks // TICKS_OF_MS) if isinstance(span, TimeSpan) else None
        yield section_of.HEADER, header
    if "partitionkey" in changes.system_properties:
        annotations = dict[str, object](message.map_section(section_of.MESSAGE_ANNOTATIONS))
        key = changes.system_properties["partitionkey"]
        if key is None:
            annotations.pop(PARTITION_KEY, None)
        else:
            annotations[PARTITION_KEY] = key
        yield section_of.MESSAGE_ANNOTATIONS, annotations
    yield section_of.APPLICATION_PROPERTIES, changes.application_properties


def _padded(entries: list[object], length: int) -> list[object]:
    """A copy of the entries, with those at the end that the sender left out."""
    return entries + [None] * (length - len(entries))
