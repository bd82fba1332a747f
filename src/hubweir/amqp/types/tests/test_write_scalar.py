"""Writing what contains no other value: the smallest form that holds it, and no value out of range."""

from collections.abc import Callable
from uuid import UUID

import pytest

from hubweir.amqp.types import write_scalar as write
from hubweir.errors import EncodeError


@pytest.mark.parametrize(
    "writer, value, encoded",
    [
        (write.write_null, None, "40"),
        (write.write_boolean, True, "41"),
        (write.write_boolean, False, "42"),
        (write.wide_boolean, True, "5601"),
        (write.write_ubyte, 255, "50ff"),
        (write.write_ushort, 1, "600001"),
        (write.write_uint, 0, "43"),
        (write.write_uint, 255, "52ff"),
        (write.write_uint, 256, "7000000100"),
        (write.write_ulong, 0, "44"),
        (write.write_ulong, 255, "53ff"),
        (write.write_ulong, 2**64 - 1, "80ffffffffffffffff"),
        (write.write_byte, -128, "5180"),
        (write.write_short, -2, "61fffe"),
        (write.write_int, 127, "547f"),
        (write.write_int, -129, "71ffffff7f"),
        (write.write_long, -128, "5580"),
        (write.write_long, 128, "810000000000000080"),
        (write.write_float, 1.5, "723fc00000"),
        (write.write_double, 1.5, "823ff8000000000000"),
        (write.write_timestamp, -1, "83ffffffffffffffff"),
        (write.write_char, "\U0001f600", "730001f600"),
        (write.write_uuid, UUID(int=1), "98" + "00" * 15 + "01"),
        (write.write_decimal32, b"1234", "7431323334"),
        (write.write_binary, b"", "a000"),
        (write.write_string, "é", "a102c3a9"),
        (write.write_symbol, "x", "a30178"),
    ],
)
def test_a_value_takes_the_smallest_form(writer: Callable[..., None], value: object, encoded: str) -> None:
    out = bytearray(b"before")
    writer(out, value)
    assert out == b"before" + bytes.fromhex(encoded)


@pytest.mark.parametrize("writer, code", [(write.write_binary, 0xA0), (write.write_string, 0xA1)])
def test_a_length_of_one_byte_serves_up_to_255_bytes(writer: Callable[..., None], code: int) -> None:
    def written(length: int) -> bytes:
        out = bytearray()
        writer(out, b"x" * length if code == 0xA0 else "x" * length)
        return bytes(out)

    assert written(255)[:2] == bytes((code, 255))
    assert written(256)[:5] == bytes((code + 0x10, 0, 0, 1, 0))


def test_the_narrow_head_serves_254_bytes_of_entries_and_255_entries() -> None:
    def head(count: int, size: int) -> bytes:
        out = bytearray()
        write.write_compound(out, 0xC0, 0xD0, count, bytearray(size))
        return bytes(out[: len(out) - size])

    assert head(1, 254) == bytes.fromhex("c0ff01")
    assert head(1, 255) == bytes.fromhex("d00000010300000001")
    assert head(255, 0) == bytes.fromhex("c001ff")
    assert head(256, 0) == bytes.fromhex("d00000000400000100")


@pytest.mark.parametrize(
    "writer, value",
    [
        (write.write_ubyte, 256),
        (write.write_ubyte, -1),
        (write.write_ushort, 65536),
        (write.write_uint, 2**32),
        (write.write_uint, -1),
        (write.write_ulong, 2**64),
        (write.write_byte, 128),
        (write.write_short, 2**15),
        (write.write_int, 2**31),
        (write.write_long, 2**63),
        (write.write_long, -(2**63) - 1),
        (write.write_timestamp, 2**63),
        (write.write_float, 1e300),
        (write.write_char, "ab"),
        (write.write_char, ""),
        (write.write_char, "\ud800"),
        (write.write_string, "\ud800"),
        (write.write_symbol, "é"),
        (write.write_decimal64, b"1234"),
    ],
)
def test_a_value_out_of_range_is_refused_and_leaves_out_as_it_was(writer: Callable[..., None], value: object) -> None:
    out = bytearray(b"before")
    with pytest.raises(EncodeError):
        writer(out, value)
    assert out == b"before"
