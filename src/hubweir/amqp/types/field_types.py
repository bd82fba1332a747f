"""The types a field of a composite can have: what a decoded value must be to stand there, and how it is written.

A field of an integer type takes any integer whose value fits: peers differ in the widths, and sometimes in the types,
they choose. Everything else must have the AMQP type the standard names. A field of type "multiple symbol" takes one
symbol or an array of them (part 1, section 1.4); it is always written as an array, null when empty.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from hubweir.amqp.types.encode import encode_into
from hubweir.amqp.types.format_codes import AmqpType
from hubweir.amqp.types.values import (
    Array,
    Byte,
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
from hubweir.amqp.types.write_scalar import (
    write_binary,
    write_boolean,
    write_string,
    write_symbol,
    write_timestamp,
    write_ubyte,
    write_uint,
    write_ulong,
    write_ushort,
)


class WrongType(Exception):
    """A decoded value cannot stand in its field. composite.py turns it into a DecodeError with the field's name."""


@dataclass(frozen=True, slots=True)
class FieldType:
    """One type: its name in error texts, read (decoded value to field value, WrongType), write (field value to bytes).

    Neither is called for null.
    """

    name: str
    read: Callable[[Any], Any]
    write: Callable[[bytearray, Any], None]


_INTEGER_TYPES: Final = frozenset({UByte, UShort, UInt, ULong, Byte, Short, Int, Long, int})


def _of_type(name: str, python_type: type, write: Callable[[bytearray, Any], None]) -> FieldType:
    def read(value: Any) -> Any:
        if type(value) is not python_type:
            raise WrongType
        return value

    return FieldType(name, read, write)


def _unsigned(name: str, python_type: type, bits: int, write: Callable[[bytearray, Any], None]) -> FieldType:
    past_end = 1 << bits

    def read(value: Any) -> Any:
        if type(value) is python_type or (type(value) in _INTEGER_TYPES and 0 <= value < past_end):
            return value
        raise WrongType

    return FieldType(name, read, write)


def _read_fields(value: Any) -> Any:
    if type(value) is not dict or any(type(key) is not Symbol for key in value):
        raise WrongType
    return value


def _read_named(value: Any) -> Any:
    """What clients put in by plain names, as if the names were symbols."""
    if type(value) is not dict or any(type(key) is not Symbol and type(key) is not str for key in value):
        raise WrongType
    return {Symbol(key): entry for key, entry in value.items()}


def _write_symbol_map(out: bytearray, value: dict[object, object]) -> None:
    # Our own code may name a key by a plain str.
    encode_into(out, {Symbol(key) if type(key) is str else key: entry for key, entry in value.items()})


def _read_annotations(value: Any) -> Any:
    if type(value) is not dict or any(type(key) is not Symbol and type(key) is not ULong for key in value):
        raise WrongType
    return value


def _read_application_properties(value: Any) -> Any:
    if type(value) is not dict or any(type(key) is not str for key in value):
        raise WrongType
    return value


def _read_symbols(value: Any) -> tuple[Symbol, ...]:
    if type(value) is Symbol:
        return (value,)
    if type(value) is Array and (value.element_type is AmqpType.SYMBOL or not value.items):
        return value.items  # type: ignore[return-value]  # an array of symbols holds symbols
    raise WrongType


def _write_symbols(out: bytearray, value: tuple[str, ...]) -> None:
    encode_into(out, Array(AmqpType.SYMBOL, tuple(map(Symbol, value))) if value else None)


def _read_message_id(value: Any) -> Any:
    if type(value) in (str, UUID, ULong, bytes):
        return value
    if type(value) in _INTEGER_TYPES and value >= 0:
        return value
    raise WrongType


def _write_message_id(out: bytearray, value: object) -> None:
    # A plain int is a ulong here; an integer of another type came from a peer and goes back as it came.
    encode_into(out, ULong(value) if type(value) is int else value)


BOOLEAN: Final = _of_type("boolean", bool, write_boolean)
UBYTE: Final = _unsigned("ubyte", UByte, 8, write_ubyte)
USHORT: Final = _unsigned("ushort", UShort, 16, write_ushort)
UINT: Final = _unsigned("uint", UInt, 32, write_uint)
ULONG: Final = _unsigned("ulong", ULong, 64, write_ulong)
STRING: Final = _of_type("string", str, write_string)
SYMBOL: Final = _of_type("symbol", Symbol, write_symbol)
BINARY: Final = _of_type("binary", bytes, write_binary)
TIMESTAMP: Final = _of_type("timestamp", Timestamp, write_timestamp)
MAP: Final = _of_type("map", dict, encode_into)
FIELDS: Final = FieldType("map with symbol keys", _read_fields, _write_symbol_map)
NAMED: Final = FieldType("map with symbol or string keys", _read_named, _write_symbol_map)
ANNOTATIONS: Final = FieldType("map with symbol or ulong keys", _read_annotations, _write_symbol_map)
APPLICATION_PROPERTIES: Final = FieldType("map with string keys", _read_application_properties, encode_into)
SYMBOLS: Final = FieldType("symbol or array of symbol", _read_symbols, _write_symbols)
MESSAGE_ID: Final = FieldType("ulong, uuid, binary or string", _read_message_id, _write_message_id)
