"""Writing the values that contain no others, smallest encoding first (part 1, section 1.6).

Each function appends one value to out, constructor first, or raises EncodeError and leaves out as it was. The wide_
forms are for arrays, whose elements share one constructor and so cannot shrink one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from struct import error as StructError
from typing import Any, Final
from uuid import UUID

from hubweir.amqp.types import format_codes as code_of
from hubweir.amqp.types.format_codes import AmqpType
from hubweir.amqp.types.values import (
    Byte,
    Char,
    Decimal32,
    Decimal64,
    Decimal128,
    Float,
    Int,
    Long,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)
from hubweir.errors import EncodeError

Write = Callable[[bytearray, Any], None]

_coded_length = Struct(">BI").pack
_coded_size_count = Struct(">BII").pack


def write_null(out: bytearray, value: None = None) -> None:
    """Append null."""
    out.append(code_of.NULL)


def write_boolean(out: bytearray, value: bool) -> None:
    """Append true or false."""
    out.append(code_of.TRUE if value else code_of.FALSE)


def _fixed(code: int, layout: str, amqp_type: AmqpType) -> Write:
    pack = Struct(">B" + layout).pack

    def write(out: bytearray, value: Any) -> None:
        try:
            out += pack(code, value)
        except (StructError, OverflowError):
            raise EncodeError(f"{value!r} is out of range for {amqp_type.value}") from None

    return write


write_ubyte: Final = _fixed(code_of.UBYTE, "B", AmqpType.UBYTE)
write_ushort: Final = _fixed(code_of.USHORT, "H", AmqpType.USHORT)
write_byte: Final = _fixed(code_of.BYTE, "b", AmqpType.BYTE)
write_short: Final = _fixed(code_of.SHORT, "h", AmqpType.SHORT)
write_float: Final = _fixed(code_of.FLOAT, "f", AmqpType.FLOAT)
write_double: Final = _fixed(code_of.DOUBLE, "d", AmqpType.DOUBLE)
write_timestamp: Final = _fixed(code_of.TIMESTAMP, "q", AmqpType.TIMESTAMP)
wide_uint: Final = _fixed(code_of.UINT, "I", AmqpType.UINT)
wide_ulong: Final = _fixed(code_of.ULONG, "Q", AmqpType.ULONG)
wide_int: Final = _fixed(code_of.INT, "i", AmqpType.INT)
wide_long: Final = _fixed(code_of.LONG, "q", AmqpType.LONG)


def _unsigned(zero: int, small: int, wide: Write) -> Write:
    def write(out: bytearray, value: int) -> None:
        if 0 < value <= 255:
            out.append(small)
            out.append(value)
        elif value == 0:
            out.append(zero)
        else:
            wide(out, value)

    return write


def _signed(small: int, wide: Write) -> Write:
    def write(out: bytearray, value: int) -> None:
        if -128 <= value <= 127:
            out.append(small)
            out.append(value & 0xFF)
        else:
            wide(out, value)

    return write


write_uint: Final = _unsigned(code_of.UINT0, code_of.SMALL_UINT, wide_uint)
write_ulong: Final = _unsigned(code_of.ULONG0, code_of.SMALL_ULONG, wide_ulong)
write_int: Final = _signed(code_of.SMALL_INT, wide_int)
write_long: Final = _signed(code_of.SMALL_LONG, wide_long)


def write_char(out: bytearray, value: str) -> None:
    """Append one character."""
    if len(value) != 1 or "\ud800" <= value <= "\udfff":
        raise EncodeError(f"{value!r} is not one Unicode character")
    out += _coded_length(code_of.CHAR, ord(value))


def write_uuid(out: bytearray, value: UUID) -> None:
    """Append a uuid."""
    out.append(code_of.UUID)
    out += value.bytes


def _decimal(code: int, width: int) -> Write:
    def write(out: bytearray, value: bytes) -> None:
        if len(value) != width:
            raise EncodeError(f"a decimal{width * 8} has {width} bytes, not {len(value)}")
        out.append(code)
        out += value

    return write


def _variable(out: bytearray, code8: int, code32: int, data: bytes | bytearray | memoryview) -> None:
    length = len(data)
    if length <= 255:
        out.append(code8)
        out.append(length)
    else:
        out += _coded_length(code32, length)
    out += data


def write_binary(out: bytearray, value: bytes | bytearray | memoryview) -> None:
    """Append binary."""
    _variable(out, code_of.BINARY8, code_of.BINARY32, value)


def write_string(out: bytearray, value: str) -> None:
    """Append a string; EncodeError for one that UTF-8 cannot hold (a lone surrogate)."""
    _variable(out, code_of.STRING8, code_of.STRING32, encode_text(value, "utf-8", AmqpType.STRING))


def write_symbol(out: bytearray, value: str) -> None:
    """Append a symbol; EncodeError for one that is not ASCII."""
    _variable(out, code_of.SYMBOL8, code_of.SYMBOL32, encode_text(value, "ascii", AmqpType.SYMBOL))


def encode_text(value: str, encoding: str, amqp_type: AmqpType) -> bytes:
    """The bytes of a string or symbol; EncodeError when its encoding cannot hold it."""
    try:
        return value.encode(encoding)
    except UnicodeEncodeError:
        raise EncodeError(f"{value!r} cannot be a {amqp_type.value}: it is not {encoding}") from None


def wide_boolean(out: bytearray, value: bool) -> None:
    """Append a boolean in the form that has a byte for its value."""
    out += bytes((code_of.BOOLEAN, value))


def write_compound(out: bytearray, code8: int, code32: int, count: int, body: bytearray) -> None:
    """Append the head of a list, map or array of count entries, in the narrow form where it fits, and its body."""
    # The size covers the count field too, so the body of the narrow form has at most 254 bytes.
    if len(body) <= 254 and count <= 255:
        out += bytes((code8, len(body) + 1, count))
    else:
        out += _coded_size_count(code32, len(body) + 4, count)
    out += body


write_decimal32: Final = _decimal(code_of.DECIMAL32, 4)
write_decimal64: Final = _decimal(code_of.DECIMAL64, 8)
write_decimal128: Final = _decimal(code_of.DECIMAL128, 16)

SCALAR_WRITERS: Final[dict[type, Write]] = {
    type(None): write_null,
    bool: write_boolean,
    int: write_long,
    float: write_double,
    str: write_string,
    bytes: write_binary,
    bytearray: write_binary,
    memoryview: write_binary,
    Symbol: write_symbol,
    UUID: write_uuid,
    UByte: write_ubyte,
    UShort: write_ushort,
    UInt: write_uint,
    ULong: write_ulong,
    Byte: write_byte,
    Short: write_short,
    Int: write_int,
    Long: write_long,
    Float: write_float,
    Char: write_char,
    Timestamp: write_timestamp,
    Decimal32: write_decimal32,
    Decimal64: write_decimal64,
    Decimal128: write_decimal128,
}
