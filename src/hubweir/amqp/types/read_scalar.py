"""Reading the values that contain no others: fixed widths, variable lengths, descriptors (part 1, section 1.6).

Every function checks the bytes against limit, the first position that does not belong to the value, before it reads;
the readers of READ_FIXED leave that to their caller. What is read is always a copy.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Final, NoReturn
from uuid import UUID

from hubweir.amqp.types import format_codes as code_of
from hubweir.amqp.types.format_codes import BY_CODE, AmqpType, Category
from hubweir.amqp.types.values import (
    Byte,
    Char,
    Decimal32,
    Decimal64,
    Decimal128,
    Float,
    Int,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)
from hubweir.errors import DecodeError

Buffer = bytes | bytearray | memoryview

_u16 = Struct(">H").unpack_from
_u32 = Struct(">I").unpack_from
_u64 = Struct(">Q").unpack_from
_i8 = Struct(">b").unpack_from
_i16 = Struct(">h").unpack_from
_i32 = Struct(">i").unpack_from
_i64 = Struct(">q").unpack_from
_f32 = Struct(">f").unpack_from
_f64 = Struct(">d").unpack_from


def _boolean(buffer: Buffer, position: int) -> bool:
    value = buffer[position]
    if value > 1:
        raise DecodeError(f"a boolean holds {value} at byte {position}; it is 0 or 1")
    return value == 1


def _char(buffer: Buffer, position: int) -> Char:
    point: int = _u32(buffer, position)[0]
    if point > 0x10FFFF or 0xD800 <= point <= 0xDFFF:
        raise DecodeError(f"a char holds {point:#x} at byte {position}, which is no Unicode character")
    return Char(chr(point))


def _small_long(buffer: Buffer, position: int) -> int:
    value: int = _i8(buffer, position)[0]
    return value


def _long(buffer: Buffer, position: int) -> int:
    value: int = _i64(buffer, position)[0]
    return value


def _double(buffer: Buffer, position: int) -> float:
    value: float = _f64(buffer, position)[0]
    return value


_FIXED: Final[dict[int, Callable[[Buffer, int], object]]] = {
    code_of.NULL: lambda buffer, at: None,
    code_of.TRUE: lambda buffer, at: True,
    code_of.FALSE: lambda buffer, at: False,
    code_of.UINT0: lambda buffer, at: UInt(0),
    code_of.ULONG0: lambda buffer, at: ULong(0),
    code_of.LIST0: lambda buffer, at: [],
    code_of.UBYTE: lambda buffer, at: UByte(buffer[at]),
    code_of.BYTE: lambda buffer, at: Byte(_i8(buffer, at)[0]),
    code_of.SMALL_UINT: lambda buffer, at: UInt(buffer[at]),
    code_of.SMALL_ULONG: lambda buffer, at: ULong(buffer[at]),
    code_of.SMALL_INT: lambda buffer, at: Int(_i8(buffer, at)[0]),
    code_of.SMALL_LONG: _small_long,
    code_of.BOOLEAN: _boolean,
    code_of.USHORT: lambda buffer, at: UShort(_u16(buffer, at)[0]),
    code_of.SHORT: lambda buffer, at: Short(_i16(buffer, at)[0]),
    code_of.UINT: lambda buffer, at: UInt(_u32(buffer, at)[0]),
    code_of.INT: lambda buffer, at: Int(_i32(buffer, at)[0]),
    code_of.FLOAT: lambda buffer, at: Float(_f32(buffer, at)[0]),
    code_of.CHAR: _char,
    code_of.DECIMAL32: lambda buffer, at: Decimal32(buffer[at : at + 4]),
    code_of.ULONG: lambda buffer, at: ULong(_u64(buffer, at)[0]),
    code_of.LONG: _long,
    code_of.DOUBLE: _double,
    code_of.TIMESTAMP: lambda buffer, at: Timestamp(_i64(buffer, at)[0]),
    code_of.DECIMAL64: lambda buffer, at: Decimal64(buffer[at : at + 8]),
    code_of.DECIMAL128: lambda buffer, at: Decimal128(buffer[at : at + 16]),
    code_of.UUID: lambda buffer, at: UUID(bytes=bytes(buffer[at : at + 16])),
}

_MAKERS: Final[dict[AmqpType, Callable[[Buffer], object]]] = {
    AmqpType.BINARY: bytes,
    AmqpType.STRING: lambda data: str(data, "utf-8"),
    AmqpType.SYMBOL: lambda data: Symbol(data, "ascii"),
}

# Indexed by format code. A width of -1: the value has no fixed width, and its reader is never called.
FIXED_WIDTH: Final = [
    BY_CODE[code].width if code in BY_CODE and BY_CODE[code].category is Category.FIXED else -1 for code in range(256)
]
READ_FIXED: Final = [_FIXED.get(code, _FIXED[code_of.NULL]) for code in range(256)]
VARIABLE: Final = {
    row.code: (row.width, _MAKERS[row.type], row.type) for row in BY_CODE.values() if row.category is Category.VARIABLE
}


def read_length(buffer: Buffer, width: int, position: int, limit: int) -> tuple[int, int]:
    """A length, size or count of width bytes, and the position after it."""
    after = position + width
    if after > limit:
        truncated(position)
    return (buffer[position] if width == 1 else _u32(buffer, position)[0]), after


def read_variable(buffer: Buffer, code: int, position: int, limit: int) -> tuple[object, int]:
    """A binary, string or symbol whose constructor was code, and the position after it."""
    width, make, amqp_type = VARIABLE[code]
    length, position = read_length(buffer, width, position, limit)
    after = position + length
    if after > limit:
        truncated(position)
    try:
        return make(buffer[position:after]), after
    except UnicodeDecodeError as error:
        encoding = "UTF-8" if amqp_type is AmqpType.STRING else "ASCII"
        raise DecodeError(f"a {amqp_type.value} is not {encoding} at byte {position + error.start}") from None


def read_descriptor(buffer: Buffer, position: int, limit: int) -> tuple[object, int]:
    """A descriptor. The standard reserves every kind but symbols and ulongs; other scalars are let through."""
    if position >= limit:
        truncated(position)
    code = buffer[position]
    width = FIXED_WIDTH[code]
    if width >= 0 and code != code_of.LIST0:
        after = position + 1 + width
        if after > limit:
            truncated(position)
        return READ_FIXED[code](buffer, position + 1), after
    if code in VARIABLE:
        return read_variable(buffer, code, position + 1, limit)
    raise DecodeError(f"a descriptor has the constructor {code:#04x} at byte {position}; it is a symbol or a ulong")


def truncated(position: int) -> NoReturn:
    """Say that limit was reached too early."""
    raise DecodeError(f"the bytes end inside a value at byte {position}")
