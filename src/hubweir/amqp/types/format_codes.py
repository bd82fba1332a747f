"""The constructor bytes of AMQP 1.0, one row each (part 1, section 1.6).

The high nibble of a code says how the value's bytes are laid out, and so how to skip a value without knowing it:
0x4_ no bytes; 0x5_ to 0x9_ 1, 2, 4, 8 and 16 bytes; 0xA_ and 0xB_ a length of 1 or 4 bytes, then that many;
0xC_ and 0xD_ a size and a count of 1 or 4 bytes each, then the entries; 0xE_ and 0xF_ the same, then one
constructor for all elements. 0x00 introduces a descriptor, followed by the constructor of the value it describes.
All numbers are big-endian. A size counts the bytes after itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final


class AmqpType(Enum):
    """The primitive types, by the name the standard gives them."""

    NULL = "null"
    BOOLEAN = "boolean"
    UBYTE = "ubyte"
    USHORT = "ushort"
    UINT = "uint"
    ULONG = "ulong"
    BYTE = "byte"
    SHORT = "short"
    INT = "int"
    LONG = "long"
    FLOAT = "float"
    DOUBLE = "double"
    DECIMAL32 = "decimal32"
    DECIMAL64 = "decimal64"
    DECIMAL128 = "decimal128"
    CHAR = "char"
    TIMESTAMP = "timestamp"
    UUID = "uuid"
    BINARY = "binary"
    STRING = "string"
    SYMBOL = "symbol"
    LIST = "list"
    MAP = "map"
    ARRAY = "array"


class Category(Enum):
    """How the bytes after a constructor are laid out."""

    FIXED = "fixed"  # width bytes of value
    VARIABLE = "variable"  # width bytes of length, then the value
    COMPOUND = "compound"  # width bytes of size and of count, then entries with their own constructors
    ARRAY = "array"  # width bytes of size and of count, then one constructor, then bare elements


@dataclass(frozen=True, slots=True)
class FormatCode:
    """One row: the byte, its type, its layout and the width in bytes of the value or of its size field."""

    code: int
    type: AmqpType
    category: Category
    width: int


DESCRIBED: Final = 0x00
NULL: Final = 0x40
TRUE: Final = 0x41
FALSE: Final = 0x42
UINT0: Final = 0x43
ULONG0: Final = 0x44
LIST0: Final = 0x45
UBYTE: Final = 0x50
BYTE: Final = 0x51
SMALL_UINT: Final = 0x52
SMALL_ULONG: Final = 0x53
SMALL_INT: Final = 0x54
SMALL_LONG: Final = 0x55
BOOLEAN: Final = 0x56
USHORT: Final = 0x60
SHORT: Final = 0x61
UINT: Final = 0x70
INT: Final = 0x71
FLOAT: Final = 0x72
CHAR: Final = 0x73
DECIMAL32: Final = 0x74
ULONG: Final = 0x80
LONG: Final = 0x81
DOUBLE: Final = 0x82
TIMESTAMP: Final = 0x83
DECIMAL64: Final = 0x84
DECIMAL128: Final = 0x94
UUID: Final = 0x98
BINARY8: Final = 0xA0
STRING8: Final = 0xA1
SYMBOL8: Final = 0xA3
BINARY32: Final = 0xB0
STRING32: Final = 0xB1
SYMBOL32: Final = 0xB3
LIST8: Final = 0xC0
MAP8: Final = 0xC1
LIST32: Final = 0xD0
MAP32: Final = 0xD1
ARRAY8: Final = 0xE0
ARRAY32: Final = 0xF0

FORMAT_CODES: Final = (
    FormatCode(NULL, AmqpType.NULL, Category.FIXED, 0),
    FormatCode(TRUE, AmqpType.BOOLEAN, Category.FIXED, 0),
    FormatCode(FALSE, AmqpType.BOOLEAN, Category.FIXED, 0),
    FormatCode(UINT0, AmqpType.UINT, Category.FIXED, 0),
    FormatCode(ULONG0, AmqpType.ULONG, Category.FIXED, 0),
    FormatCode(LIST0, AmqpType.LIST, Category.FIXED, 0),
    FormatCode(UBYTE, AmqpType.UBYTE, Category.FIXED, 1),
    FormatCode(BYTE, AmqpType.BYTE, Category.FIXED, 1),
    FormatCode(SMALL_UINT, AmqpType.UINT, Category.FIXED, 1),
    FormatCode(SMALL_ULONG, AmqpType.ULONG, Category.FIXED, 1),
    FormatCode(SMALL_INT, AmqpType.INT, Category.FIXED, 1),
    FormatCode(SMALL_LONG, AmqpType.LONG, Category.FIXED, 1),
    FormatCode(BOOLEAN, AmqpType.BOOLEAN, Category.FIXED, 1),
    FormatCode(USHORT, AmqpType.USHORT, Category.FIXED, 2),
    FormatCode(SHORT, AmqpType.SHORT, Category.FIXED, 2),
    FormatCode(UINT, AmqpType.UINT, Category.FIXED, 4),
    FormatCode(INT, AmqpType.INT, Category.FIXED, 4),
    FormatCode(FLOAT, AmqpType.FLOAT, Category.FIXED, 4),
    FormatCode(CHAR, AmqpType.CHAR, Category.FIXED, 4),
    FormatCode(DECIMAL32, AmqpType.DECIMAL32, Category.FIXED, 4),
    FormatCode(ULONG, AmqpType.ULONG, Category.FIXED, 8),
    FormatCode(LONG, AmqpType.LONG, Category.FIXED, 8),
    FormatCode(DOUBLE, AmqpType.DOUBLE, Category.FIXED, 8),
    FormatCode(TIMESTAMP, AmqpType.TIMESTAMP, Category.FIXED, 8),
    FormatCode(DECIMAL64, AmqpType.DECIMAL64, Category.FIXED, 8),
    FormatCode(DECIMAL128, AmqpType.DECIMAL128, Category.FIXED, 16),
    FormatCode(UUID, AmqpType.UUID, Category.FIXED, 16),
    FormatCode(BINARY8, AmqpType.BINARY, Category.VARIABLE, 1),
    FormatCode(STRING8, AmqpType.STRING, Category.VARIABLE, 1),
    FormatCode(SYMBOL8, AmqpType.SYMBOL, Category.VARIABLE, 1),
    FormatCode(BINARY32, AmqpType.BINARY, Category.VARIABLE, 4),
    FormatCode(STRING32, AmqpType.STRING, Category.VARIABLE, 4),
    FormatCode(SYMBOL32, AmqpType.SYMBOL, Category.VARIABLE, 4),
    FormatCode(LIST8, AmqpType.LIST, Category.COMPOUND, 1),
    FormatCode(MAP8, AmqpType.MAP, Category.COMPOUND, 1),
    FormatCode(LIST32, AmqpType.LIST, Category.COMPOUND, 4),
    FormatCode(MAP32, AmqpType.MAP, Category.COMPOUND, 4),
    FormatCode(ARRAY8, AmqpType.ARRAY, Category.ARRAY, 1),
    FormatCode(ARRAY32, AmqpType.ARRAY, Category.ARRAY, 4),
)

BY_CODE: Final = {row.code: row for row in FORMAT_CODES}
