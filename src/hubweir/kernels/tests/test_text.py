"""Values as text: the table of columns_contract.py, on both twins, through a body, a property and a key."""

from __future__ import annotations

import base64
import json
import struct
from random import Random
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hubweir.kernels.columns import text
from hubweir.kernels.columns_contract import (
    ALL_COLUMNS,
    BODY_BYTES,
    COLUMNS_OK,
    MAX_TEXT_DEPTH,
    PROPERTIES_KEY_BYTES,
    PROPERTIES_VALUE_BYTES,
)
from hubweir.kernels.tests import legal_bytes as legal
from hubweir.kernels.tests import rich_bytes as rich

SERVICE = {
    "x-opt-sequence-number": struct.pack(">Bq", 0x81, 1),
    "x-opt-offset": legal.string("1"),
    "x-opt-enqueued-time": struct.pack(">Bq", 0x83, 1),
}
UUID = bytes(range(16))

# Encoded value, its text, and whether JSON makes a string of it.
TABLE = [
    (b"\x40", "null", False),
    (b"\x41", "true", False),
    (b"\x42", "false", False),
    (b"\x56\x00", "false", False),
    (b"\x56\x01", "true", False),
    (b"\x43", "0", False),
    (b"\x44", "0", False),
    (b"\x50\xff", "255", False),
    (b"\x51\xff", "-1", False),
    (b"\x54\x80", "-128", False),
    (b"\x60\xff\xff", "65535", False),
    (b"\x61\xff\xff", "-1", False),
    (b"\x70\xff\xff\xff\xff", "4294967295", False),
    (b"\x71\x80\x00\x00\x00", "-2147483648", False),
    (b"\x80" + b"\xff" * 8, "18446744073709551615", False),
    (b"\x81\x80" + bytes(7), "-9223372036854775808", False),
    (struct.pack(">Bd", 0x82, 0.1), "0.1", False),
    (struct.pack(">Bd", 0x82, 1.0), "1.0", False),
    (struct.pack(">Bd", 0x82, 1e16), "1e+16", False),
    (struct.pack(">Bf", 0x72, 0.5), "0.5", False),
    (struct.pack(">Bd", 0x82, float("nan")), "NaN", True),
    (struct.pack(">Bd", 0x82, float("-inf")), "-Infinity", True),
    (struct.pack(">Bf", 0x72, float("inf")), "Infinity", True),
    (struct.pack(">BI", 0x73, 0x1F600), "😀", True),
    (struct.pack(">BI", 0x73, 0xD800), "\ufffd", True),
    (struct.pack(">Bq", 0x83, 1_700_000_000_123), "2023-11-14T22:13:20.123Z", True),
    (struct.pack(">Bq", 0x83, -1), "1969-12-31T23:59:59.999Z", True),
    (struct.pack(">Bq", 0x83, -62_135_596_800_000), "0001-01-01T00:00:00.000Z", True),
    (struct.pack(">Bq", 0x83, 253_402_300_800_000), "253402300800000", True),
    (b"\x98" + UUID, "00010203-0405-0607-0809-0a0b0c0d0e0f", True),
    (b"\x74\x01\x02\x03\xff", "010203ff", True),
    (b"\xa0\x03\x00\xff\x10", "AP8Q", True),
    (b"\xa3\x04name", "name", True),
    (legal.string('a "b" \\ \n\x01é'), 'a "b" \\ \n\x01é', True),
    (b"\xa1\x02\xffx", "\ufffdx", True),
    (b"\x45", "[]", False),
    (legal.compound(0xC0, [b"\x41", legal.string("x"), b"\x40"]), '[true,"x",null]', False),
    (legal.compound(0xC1, [legal.string("k\n"), b"\x54\x05", b"\x54\x07", b"\x45"]), '{"k\\n":5,"7":[]}', False),
    (b"\xe0\x04\x02\x54\x01\xff", "[1,-1]", False),
    (b"\xe0\x02\x04\x41", "[true,true,true,true]", False),
    (b"\x00\xa3\x04kind\x54\x05", "5", False),
    (legal.compound(0xC0, [b"\x00\xa3\x01d\xa1\x01v"]), '["v"]', False),
]


def delivered(kernels: SimpleNamespace, *parts: bytes) -> list[bytearray]:
    """The columns of one event that consists of these sections."""
    message = legal.annotations(SERVICE) + b"".join(parts)
    columns = rich.empty_columns()
    answer = kernels.event_columns(message, legal.delivery_row(message, 0, 0), 0, 1, -1, -1, ALL_COLUMNS, 0, columns)
    assert answer == (1, 1, 1, -1, COLUMNS_OK)
    return columns


def property_text(kernels: SimpleNamespace, value: bytes) -> str:
    entry = legal.section(0x74, legal.compound(0xC1, [legal.string("k"), value]))
    return delivered(kernels, entry)[PROPERTIES_VALUE_BYTES].decode()


def body_text(kernels: SimpleNamespace, value: bytes) -> str:
    return delivered(kernels, legal.section(0x77, value))[BODY_BYTES].decode()


@pytest.mark.parametrize(("value", "text", "is_string"), TABLE)
def test_a_property_is_its_text_and_a_body_its_json(
    kernels: SimpleNamespace, value: bytes, text: str, is_string: bool
) -> None:
    assert property_text(kernels, value) == text
    if value != b"\x40" and value[0] not in (0xA0, 0xA1, 0xA3):  # those are bodies of their own
        assert body_text(kernels, value) == (json.dumps(text, ensure_ascii=False) if is_string else text)
    inside = legal.compound(0xC0, [value])
    assert property_text(kernels, inside) == f"[{json.dumps(text, ensure_ascii=False) if is_string else text}]"


def test_a_key_is_the_text_of_its_value(kernels: SimpleNamespace) -> None:
    entries = legal.section(0x74, legal.compound(0xC1, [b"\x54\x07", b"\x41", legal.symbol("s"), b"\x41"]))
    assert delivered(kernels, entries)[PROPERTIES_KEY_BYTES] == b"7s"


UNWALKABLE = [
    rich.nested(MAX_TEXT_DEPTH),
    b"\xc0\x02\x01\x54",  # its only item ends behind it
    b"\xc0\x02\x02\x41",  # two items, one there
    b"\xc0\x03\x01\x41\x41",  # more bytes than items
    b"\xc1\x03\x01\x41\x41",  # an odd map
    legal.compound(0xC1, [b"\x45", b"\x41"]),  # a list as a key
    b"\xe0\x02\x05\x41",  # five elements that take no bytes
    b"\xf0" + struct.pack(">II", 5, 2**32 - 1) + b"\x41",
    b"\xe0\x02\x01\x99",  # no such constructor
    b"\xe0\x03\x02\x54\x01",  # two elements, one there
    b"\xe0\x01\x00",  # no constructor at all
]


@pytest.mark.parametrize("value", UNWALKABLE)
def test_a_value_that_cannot_be_walked_is_given_whole_as_base64(kernels: SimpleNamespace, value: bytes) -> None:
    assert base64.b64decode(property_text(kernels, value)) == value
    assert base64.b64decode(json.loads(body_text(kernels, value))) == value
    deeper = legal.compound(0xC0, [b"\x41", value])
    assert base64.b64decode(property_text(kernels, deeper)) == deeper


def test_the_deepest_value_that_is_written_out(kernels: SimpleNamespace) -> None:
    value = rich.nested(MAX_TEXT_DEPTH - 1)
    assert property_text(kernels, value) == "[" * MAX_TEXT_DEPTH + "]" * MAX_TEXT_DEPTH


def sequence(*items: bytes) -> bytes:
    return legal.section(0x76, legal.compound(0xC0, list(items)))


BROKEN_LIST = b"\xc0\x02\x01\x54"
BODIES = [
    ([], b""),
    ([legal.data_section(b"")], b""),
    ([legal.data_section(b"one"), legal.data_section(b"two")], b"onetwo"),
    ([legal.section(0x77, b"\x40")], b""),
    ([legal.section(0x77, legal.string("té"))], "té".encode()),
    ([legal.section(0x77, b"\x00\x53\x01" + legal.string("t"))], b"t"),
    ([legal.section(0x77, b"\xa1\x01\xff")], b"\xef\xbf\xbd"),
    ([legal.section(0x77, b"\xa0\x01\xff")], b"\xff"),
    ([legal.section(0x77, legal.symbol("sym"))], b"sym"),
    ([legal.section(0x77, b"\x54\x05")], b"5"),
    ([legal.section(0x76, b"\x45")], b"[]"),
    ([sequence(b"\x41"), sequence(b"\x42")], b"[true,false]"),
    ([sequence(), sequence(b"\x42"), sequence()], b"[false]"),
    ([sequence(), legal.section(0x76, BROKEN_LIST)], b'"' + base64.b64encode(b"\xc0\x01\x00" + BROKEN_LIST) + b'"'),
]


@pytest.mark.parametrize(("sections", "body"), BODIES)
def test_a_body_of_any_kind_becomes_bytes(kernels: SimpleNamespace, sections: list[bytes], body: bytes) -> None:
    assert delivered(kernels, *sections)[BODY_BYTES] == body


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**48))
def test_every_body_of_structure_is_legal_json(kernels: SimpleNamespace, seed: int) -> None:
    value = legal.compound(0xC0, [rich.value(Random(seed))])
    json.loads(body_text(kernels, value), parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


@settings(max_examples=60, deadline=None)
@given(days=st.integers(-719_162, 2_932_896))
def test_dates_agree_with_the_calendar_of_the_standard_library(days: int) -> None:
    from datetime import date, timedelta

    there = date(1970, 1, 1) + timedelta(days=days)
    assert text.civil(days) == (there.year, there.month, there.day)
    assert text.days_of(there.year, there.month, there.day) == days
