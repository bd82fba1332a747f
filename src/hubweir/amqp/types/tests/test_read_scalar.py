"""Reading what contains no other value, and descriptors."""

import pytest

from hubweir.amqp.types.format_codes import FORMAT_CODES, Category
from hubweir.amqp.types.read_scalar import FIXED_WIDTH, VARIABLE, read_descriptor, read_length, read_variable
from hubweir.amqp.types.values import Symbol, ULong
from hubweir.errors import DecodeError


def test_the_tables_of_the_loop_agree_with_the_table_of_codes() -> None:
    fixed = {row.code: row.width for row in FORMAT_CODES if row.category is Category.FIXED}
    assert {code: width for code, width in enumerate(FIXED_WIDTH) if width >= 0} == fixed
    assert set(VARIABLE) == {row.code for row in FORMAT_CODES if row.category is Category.VARIABLE}


def test_a_length_is_read_in_both_widths_and_never_past_the_limit() -> None:
    assert read_length(b"\x07\x00\x00\x01", 1, 0, 1) == (7, 1)
    assert read_length(b"\x07\x00\x00\x01", 4, 0, 4) == (0x07000001, 4)
    with pytest.raises(DecodeError):
        read_length(b"\x07\x00\x00\x01", 4, 0, 3)


def test_a_variable_value_may_end_at_the_limit_but_not_behind_it() -> None:
    assert read_variable(b"\x02ab", 0xA1, 0, 3) == ("ab", 3)
    with pytest.raises(DecodeError):
        read_variable(b"\x02ab", 0xA1, 0, 2)


@pytest.mark.parametrize(
    "encoded, descriptor",
    [
        ("44", ULong(0)),
        ("5324", ULong(0x24)),
        ("80000000000000ff24", ULong(0xFF24)),
        ("a30161", Symbol("a")),
        ("b30000000161", Symbol("a")),
    ],
)
def test_a_descriptor_is_a_symbol_or_a_ulong_of_any_width(encoded: str, descriptor: object) -> None:
    data = bytes.fromhex(encoded)
    found, position = read_descriptor(data, 0, len(data))
    assert (found, type(found), position) == (descriptor, type(descriptor), len(data))
    for length in range(len(data)):
        with pytest.raises(DecodeError):
            read_descriptor(data, 0, length)


@pytest.mark.parametrize("encoded", ["00534040", "45", "c00100", "c10100", "e0020040", "ff"])
def test_a_descriptor_that_contains_values_is_refused(encoded: str) -> None:
    with pytest.raises(DecodeError, match="symbol or a ulong"):
        read_descriptor(bytes.fromhex(encoded), 0, len(encoded) // 2)
