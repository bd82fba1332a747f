"""Finding the sections of a message in whatever order a client writes them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubweir.amqp.messaging.sections import BodyKind, Sections, find_sections, walk_sections
from hubweir.amqp.types.encode import encode
from hubweir.amqp.types.values import Described, Symbol, ULong
from hubweir.errors import DecodeError

HEADER = bytes.fromhex("005370c00705560140404040")
DELIVERY = bytes.fromhex("005371c10602a301645501")
MESSAGE = bytes.fromhex("005372c10602a3016d5501")
PROPERTIES = bytes.fromhex("005373c00501a1026964")
APPLICATION = bytes.fromhex("005374c10702a1016ba10176")
DATA = bytes.fromhex("005375a0036f6e65")
SEQUENCE = bytes.fromhex("005376c00402550140")
VALUE = bytes.fromhex("00537740")
FOOTER = bytes.fromhex("005378c10602a301665501")
IN_ORDER = [HEADER, DELIVERY, MESSAGE, PROPERTIES, APPLICATION, DATA, FOOTER]
NAMES = ["header", "delivery_annotations", "message_annotations", "properties", "application_properties"]
NAMES += ["body", "footer"]


def span(sections: Sections, name: str) -> tuple[int, int]:
    return getattr(sections, f"{name}_start"), getattr(sections, f"{name}_end")


@settings(deadline=None)
@given(st.permutations(list(zip(NAMES, IN_ORDER, strict=True))), st.integers(0, 7))
def test_sections_are_found_in_any_order_and_absent_ones_are_minus_one(
    order: list[tuple[str, bytes]], count: int
) -> None:
    present = order[:count]
    message = b"".join(data for _, data in present)
    sections = find_sections(message)
    for name, data in present:
        start, end = span(sections, name)
        assert message[start:end] == data
    for name, _ in order[count:]:
        assert span(sections, name) == (-1, -1)


def test_a_message_in_the_middle_of_a_buffer_has_positions_in_the_buffer() -> None:
    sections = find_sections(memoryview(b"\xff\xff" + MESSAGE + DATA + b"\xff"), 2, 2 + len(MESSAGE + DATA))
    assert span(sections, "message_annotations") == (2, 2 + len(MESSAGE))
    assert span(sections, "body") == (2 + len(MESSAGE), 2 + len(MESSAGE + DATA))


def test_a_section_shows_where_its_value_stands() -> None:
    header, data = walk_sections(HEADER + DATA)
    assert (header.code, header.start, header.value, header.end) == (0x70, 0, 3, len(HEADER))
    assert (data.code, data.start, data.value, data.end) == (0x75, 12, 15, 20)


@pytest.mark.parametrize(
    "body, kind, count",
    [
        (b"", BodyKind.NONE, 0),
        (DATA, BodyKind.DATA, 1),
        (DATA * 3, BodyKind.DATA, 3),
        (SEQUENCE * 2, BodyKind.SEQUENCE, 2),
        (VALUE, BodyKind.VALUE, 1),
        (bytes.fromhex("005375a000"), BodyKind.DATA, 1),
        (bytes.fromhex("005375b000000000"), BodyKind.DATA, 1),
        (bytes.fromhex("00537645"), BodyKind.SEQUENCE, 1),
    ],
)
def test_every_kind_of_body_is_one_range(body: bytes, kind: BodyKind, count: int) -> None:
    sections = find_sections(PROPERTIES + body + FOOTER)
    assert (sections.body_kind, sections.body_count) == (kind, count)
    expected = (len(PROPERTIES), len(PROPERTIES + body)) if count else (-1, -1)
    assert span(sections, "body") == expected


@pytest.mark.parametrize("symbol", ["amqp:data:binary", "amqp:data:wrong"])
def test_a_symbolic_descriptor_is_read_when_it_is_the_right_one(symbol: str) -> None:
    message = encode(Described(Symbol(symbol), b"one"))
    if symbol.endswith("binary"):
        assert find_sections(message).body_kind is BodyKind.DATA
    else:
        with pytest.raises(DecodeError, match="is no section"):
            find_sections(message)


def test_a_descriptor_of_eight_bytes_is_read() -> None:
    message = bytes.fromhex("00800000000000000072") + MESSAGE[3:]
    assert span(find_sections(message), "message_annotations") == (0, len(message))


def test_the_content_of_a_section_is_not_looked_at() -> None:
    broken_map = bytes.fromhex("005372c10602ffffffffff")
    assert span(find_sections(broken_map), "message_annotations") == (0, len(broken_map))


@pytest.mark.parametrize(
    "message, complaint",
    [
        (b"\x40", "no section of a message starts"),
        (encode(Described(ULong(0x79), [])), "is no section"),
        (encode(Described(ULong(0x24), [])), "is no section"),
        (encode(Described(ULong(0x75), "text")), "amqp:data:binary has the constructor"),
        (encode(Described(ULong(0x72), [])), "amqp:message-annotations:map has the constructor"),
        (encode(Described(ULong(0x73), {})), "amqp:properties:list has the constructor"),
        (encode(Described(ULong(0x76), None)), "amqp:amqp-sequence:list has the constructor"),
        (b"\x00\x53\x77\xff", "no type has the constructor"),
        (MESSAGE + DATA + MESSAGE, "the section message_annotations stands twice"),
        (DATA + VALUE, "a second body, of amqp-value"),
        (VALUE + VALUE, "a second body, of amqp-value"),
        (SEQUENCE + DATA, "a second body, of data"),
        (DATA + FOOTER + DATA, "a second body, of data"),
    ],
)
def test_what_is_no_message_is_refused_with_its_reason(message: bytes, complaint: str) -> None:
    with pytest.raises(DecodeError, match=complaint):
        find_sections(message)


def test_every_truncation_inside_a_section_is_a_decode_error() -> None:
    message = b"".join(IN_ORDER)
    ends = {sum(map(len, IN_ORDER[:count])) for count in range(len(IN_ORDER) + 1)}
    for length in range(len(message) + 1):
        if length in ends:
            find_sections(message[:length])
        else:
            with pytest.raises(DecodeError):
                find_sections(message[:length])
            with pytest.raises(DecodeError):
                find_sections(message, 0, length)


@pytest.mark.parametrize(
    "bomb", [bytes(262_000), b"\x00\x53\x77" + b"\x00\x53\x01" * 87_000, b"\x00\x53\x75\xb0" * 60_000]
)
def test_a_bomb_is_refused(bomb: bytes) -> None:
    with pytest.raises(DecodeError):
        find_sections(bomb)
