"""Values and sections end where the specification says, in both twins; every cut and every lie about a size is seen.

The compiled form (sections.pxd) has no door of its own: count_events of a single message is 1 when it is legal.
"""

from __future__ import annotations

from random import Random
from types import SimpleNamespace

import pytest

from hubweir.kernels.messages.sections import FIXED, MAX_DEPTH, Malformed, skip_value
from hubweir.kernels.tests.legal_bytes import (
    SECTION_NAMES,
    annotations,
    compound,
    data_section,
    random_message,
    random_value,
    section,
    string,
    symbol,
)

LIST, MAP = b"\xc0\x02\x01\x40", b"\xc1\x04\x02\xa3\x00\x40"
VALUES = {
    0x70: LIST,
    0x71: MAP,
    0x72: MAP,
    0x73: LIST,
    0x74: MAP,
    0x75: b"\xa0\x01x",
    0x76: LIST,
    0x77: LIST,
    0x78: MAP,
}


def is_legal(kernels: SimpleNamespace, message: bytes) -> bool:
    return kernels.count_events(message, 0, len(message), 0) == 1


def test_a_value_ends_where_it_ends_and_no_cut_of_it_is_one() -> None:
    rng = Random(4)
    for _ in range(300):
        value = random_value(rng)
        assert skip_value(memoryview(value + b"rest"), 0, len(value) + 4) == len(value)
        for end in range(len(value)):
            with pytest.raises(Malformed):
                skip_value(memoryview(value), 0, end)


@pytest.mark.parametrize("code", range(256))
def test_only_constructors_of_the_specification_are_values(kernels: SimpleNamespace, code: int) -> None:
    known = {*FIXED, 0xA0, 0xA1, 0xA3, 0xB0, 0xB1, 0xB3, 0xC0, 0xC1, 0xD0, 0xD1, 0xE0, 0xF0}
    # Enough bytes for any: as a size they say 4, and as a described value they hold one.
    size = FIXED.get(code, 5 if code in (0xA0, 0xA1, 0xA3, 0xC0, 0xC1, 0xE0) else 8)
    content = bytes(size) if code in FIXED else {5: b"\x04", 8: b"\x00\x00\x00\x04"}[size] + bytes(4)
    message = b"\x00\x53\x77" + bytes([code]) + (b"\x43\x43" if code == 0 else content)
    assert is_legal(kernels, message) == (code in known or code == 0)


@pytest.mark.parametrize("form", ["small", "wide", "symbol", "wide symbol"])
@pytest.mark.parametrize("code", SECTION_NAMES)
def test_sections_are_known_by_any_descriptor(kernels: SimpleNamespace, code: int, form: str) -> None:
    message = section(code, VALUES[code], form=form)
    assert is_legal(kernels, message)
    assert not any(is_legal(kernels, message[:end]) for end in range(1, len(message)))


@pytest.mark.parametrize("code", SECTION_NAMES)
def test_a_section_holds_the_type_it_must(kernels: SimpleNamespace, code: int) -> None:
    for value in (LIST, MAP, b"\xa0\x01x", b"\xa1\x01x", b"\x40", b"\xe0\x02\x00\x40", b"\x45"):
        both_lists = value in (LIST, b"\x45") and VALUES[code] == LIST
        assert is_legal(kernels, section(code, value)) == (code == 0x77 or value == VALUES[code] or both_lists)


@pytest.mark.parametrize(
    "message",
    [
        b"\x00\x53\x79\x45",
        b"\x00\x53\x6f\x45",
        b"\x00\x44\x45",
        b"\x00\x80\x00\x00\x00\x01\x00\x00\x00\x70\x45",
        b"\x00\xa3\x10amqp:header:lisT\x45",
        b"\x00\xa1\x10amqp:header:list\x45",
        b"\x00\x00\x43\x53\x70\x45",
        b"\x45",
        b"\x00",
    ],
)
def test_what_is_no_section_is_malformed(kernels: SimpleNamespace, message: bytes) -> None:
    assert not is_legal(kernels, message)


def test_sections_stand_once_and_bodies_do_not_mix(kernels: SimpleNamespace) -> None:
    for code in SECTION_NAMES:
        assert is_legal(kernels, section(code, VALUES[code]) * 2) == (code in (0x75, 0x76))
    for one, other in ((0x75, 0x76), (0x75, 0x77), (0x77, 0x76)):
        assert not is_legal(kernels, section(one, VALUES[one]) + section(other, VALUES[other]))


def test_message_annotations_must_be_walkable_to_their_last_byte(kernels: SimpleNamespace) -> None:
    key = symbol("a")
    assert is_legal(kernels, annotations({}))
    assert is_legal(kernels, section(0x72, compound(0xC1, [key, string("b")], wide=True)))
    for content in ([key], [key, b"\xa1\x05b"], [key, b"\x3f"]):
        assert not is_legal(kernels, section(0x72, compound(0xC1, content)))
    assert not is_legal(kernels, section(0x72, b"\xc1\x05\x02" + key + b"\x40\x40"[:1] + b"\x40"))
    assert not is_legal(kernels, section(0x72, b"\xd1\x00\x00\x00\x04\xff\xff\xff\xfe"))
    assert not is_legal(kernels, section(0x72, b"\xc1\x00"))
    assert not is_legal(kernels, section(0x72, b"\xd1\x00\x00\x00\x03\x00\x00\x00"))


def test_described_values_nest_to_the_limit_and_no_further(kernels: SimpleNamespace) -> None:
    for depth, legal in ((MAX_DEPTH, True), (MAX_DEPTH + 1, False), (100_000, False)):
        assert is_legal(kernels, b"\x00\x53\x77" + b"\x00" * depth + b"\x43" * (depth + 1)) == legal
        assert is_legal(kernels, b"\x00\x53\x77" + b"\x00\x43" * depth + b"\x43") == legal


def test_a_quarter_million_zeros_are_judged_not_crashed_on(kernels: SimpleNamespace) -> None:
    zeros = bytes(262_144)
    for message in (zeros, b"\x00\x53\x77" + zeros, b"\x00\x53\x77\xd0\x00\x04\x00\x04\x00\x04\x00\x00" + zeros[:-4]):
        assert kernels.count_events(message, 0, len(message), 0) in (1, -1)
    assert not is_legal(kernels, zeros)


@pytest.mark.parametrize("size", [0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFB])
def test_sizes_near_the_limits_of_32_bits_are_compared_before_they_are_added(
    kernels: SimpleNamespace, size: int
) -> None:
    for code in (0xB0, 0xB1, 0xB3, 0xD0, 0xD1, 0xF0):
        assert not is_legal(kernels, b"\x00\x53\x77" + bytes([code]) + size.to_bytes(4, "big") + bytes(100))


def test_every_cut_of_a_legal_message_gets_an_answer(kernels: SimpleNamespace) -> None:
    rng = Random(5)
    message = b""
    while len(message) < 150:
        message = annotations({"a": string("b")}) + data_section(rng.randbytes(20)) + random_message(rng)
    for end in range(len(message)):
        assert kernels.count_events(message, 0, end, 0) in (1, -1)
