"""The plain Python types that stand for the types of AMQP (part 1, section 1.6).

| AMQP                       | Python                                                         |
|----------------------------|----------------------------------------------------------------|
| null, boolean              | None, bool                                                     |
| long                       | int (decoded); int or Long (encoded)                           |
| other integers             | UByte, UShort, UInt, ULong, Byte, Short, Int: subclasses of int |
| double, float              | float, Float                                                   |
| decimal32, 64, 128         | Decimal32, Decimal64, Decimal128: the bytes, not interpreted   |
| char                       | Char: a str of one character                                   |
| timestamp                  | Timestamp: an int, milliseconds since 1970, may be negative    |
| uuid                       | uuid.UUID                                                      |
| binary, string, symbol     | bytes, str, Symbol (a str, ASCII only)                         |
| list, map                  | list, dict                                                     |
| array                      | Array: element type, elements, descriptors                     |
| described                  | Described: descriptor, value                                   |

The subclasses compare and hash as the plain value does, so `UInt(5) == 5` and `Symbol("a") == "a"`; only the encoder
asks for the exact type. They do not check their range: the encoder does, with an EncodeError. Because of that
equality two keys of a map that differ only in type count as the same key, and the decoder refuses the map.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from hubweir.amqp.types.format_codes import AmqpType


class UByte(int):
    """0 to 255."""

    __slots__ = ()


class UShort(int):
    """0 to 65,535."""

    __slots__ = ()


class UInt(int):
    """0 to 2**32 - 1."""

    __slots__ = ()


class ULong(int):
    """0 to 2**64 - 1."""

    __slots__ = ()


class Byte(int):
    """-128 to 127."""

    __slots__ = ()


class Short(int):
    """-32,768 to 32,767."""

    __slots__ = ()


class Int(int):
    """-2**31 to 2**31 - 1."""

    __slots__ = ()


class Long(int):
    """-2**63 to 2**63 - 1: what a plain int encodes as too, for those who want to say it."""

    __slots__ = ()


class Timestamp(int):
    """Milliseconds since 1970-01-01T00:00:00Z, negative before it."""

    __slots__ = ()


class Float(float):
    """A float of 32 bits. Keeps the precision it was made with until it is encoded."""

    __slots__ = ()


class Char(str):
    """One Unicode character."""

    __slots__ = ()


class Symbol(str):
    """A name from a restricted domain: ASCII only."""

    __slots__ = ()


class Decimal32(bytes):
    """The 4 bytes of an IEEE 754-2008 decimal, big-endian, kept as they came."""

    __slots__ = ()


class Decimal64(bytes):
    """The 8 bytes of an IEEE 754-2008 decimal, big-endian, kept as they came."""

    __slots__ = ()


class Decimal128(bytes):
    """The 16 bytes of an IEEE 754-2008 decimal, big-endian, kept as they came."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Array:
    """Elements of one type, which share one constructor on the wire.

    element_type: their type, needed because an array may be empty. items: the elements. descriptors: what describes
    each of the elements, outermost first; nearly always empty.
    """

    element_type: AmqpType
    items: tuple[object, ...]
    descriptors: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class Described:
    """A value with a descriptor, a symbol or a ulong, that says what the value means."""

    descriptor: object
    value: object


TYPE_OF: Final[dict[type, AmqpType]] = {
    type(None): AmqpType.NULL,
    bool: AmqpType.BOOLEAN,
    UByte: AmqpType.UBYTE,
    UShort: AmqpType.USHORT,
    UInt: AmqpType.UINT,
    ULong: AmqpType.ULONG,
    Byte: AmqpType.BYTE,
    Short: AmqpType.SHORT,
    Int: AmqpType.INT,
    int: AmqpType.LONG,
    Long: AmqpType.LONG,
    Float: AmqpType.FLOAT,
    float: AmqpType.DOUBLE,
    Decimal32: AmqpType.DECIMAL32,
    Decimal64: AmqpType.DECIMAL64,
    Decimal128: AmqpType.DECIMAL128,
    Char: AmqpType.CHAR,
    Timestamp: AmqpType.TIMESTAMP,
    UUID: AmqpType.UUID,
    bytes: AmqpType.BINARY,
    bytearray: AmqpType.BINARY,
    memoryview: AmqpType.BINARY,
    str: AmqpType.STRING,
    Symbol: AmqpType.SYMBOL,
    list: AmqpType.LIST,
    tuple: AmqpType.LIST,
    dict: AmqpType.MAP,
    Array: AmqpType.ARRAY,
}


def type_name(value: object) -> str:
    """The AMQP name of a value's type, for error texts; "described" where there is a descriptor."""
    if type(value) is Described:
        return "described"
    amqp_type = TYPE_OF.get(type(value))
    return type(value).__name__ if amqp_type is None else amqp_type.value
