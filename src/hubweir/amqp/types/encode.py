"""Values to bytes, smallest encoding first (part 1, section 1.6).

The exact Python type of a value decides its AMQP type (table in values.py); a subclass that is not in the table, such
as an IntEnum, is encoded as the nearest class it is made from. Arrays have one constructor for all elements, so their
numbers take the full width. A value that AMQP cannot carry, or that is out of its type's range, is an EncodeError.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any, Final

from hubweir.amqp.types import format_codes as code_of
from hubweir.amqp.types.decode import DEPTH_LIMIT
from hubweir.amqp.types.format_codes import AmqpType
from hubweir.amqp.types.values import TYPE_OF, Array, Described
from hubweir.amqp.types.write_scalar import (
    SCALAR_WRITERS,
    Write,
    encode_text,
    wide_boolean,
    wide_int,
    wide_long,
    wide_uint,
    wide_ulong,
    write_byte,
    write_char,
    write_compound,
    write_decimal32,
    write_decimal64,
    write_decimal128,
    write_double,
    write_float,
    write_null,
    write_short,
    write_timestamp,
    write_ubyte,
    write_ushort,
    write_uuid,
)
from hubweir.errors import EncodeError

_pack_length = Struct(">I").pack


def encode(value: object) -> bytes:
    """The bytes of one value."""
    out = bytearray()
    encode_into(out, value)
    return bytes(out)


def encode_into(out: bytearray, value: object, depth: int = 0) -> None:
    """Append the bytes of one value to out. When it raises, out may hold a part of the value.

    depth: how many containers stand around the value; more than the decoder's limit is an EncodeError, so a list that
    holds itself is one too.
    """
    kind = type(value)
    write = SCALAR_WRITERS.get(kind)
    if write is not None:
        write(out, value)
        return
    nest = _CONTAINERS.get(kind)
    if nest is None:
        for ancestor in kind.__mro__:
            write = SCALAR_WRITERS.get(ancestor)
            if write is not None:
                write(out, value)
                return
        raise EncodeError(f"AMQP has no type for a {kind.__name__}")
    if depth == DEPTH_LIMIT:
        raise EncodeError(f"values nest deeper than {DEPTH_LIMIT}")
    nest(out, value, depth + 1)


def _list(out: bytearray, value: list[object] | tuple[object, ...], depth: int) -> None:
    if not value:
        out.append(code_of.LIST0)
        return
    body = bytearray()
    for entry in value:
        encode_into(body, entry, depth)
    write_compound(out, code_of.LIST8, code_of.LIST32, len(value), body)


def _map(out: bytearray, value: dict[object, object], depth: int) -> None:
    body = bytearray()
    for key, entry in value.items():
        encode_into(body, key, depth)
        encode_into(body, entry, depth)
    write_compound(out, code_of.MAP8, code_of.MAP32, 2 * len(value), body)


def _described(out: bytearray, value: Described, depth: int) -> None:
    out.append(code_of.DESCRIBED)
    encode_into(out, value.descriptor, depth)
    encode_into(out, value.value, depth)


def _array(out: bytearray, value: Array, depth: int) -> None:
    body = bytearray()
    for descriptor in value.descriptors:
        body.append(code_of.DESCRIBED)
        encode_into(body, descriptor, depth)
    for entry in value.items:
        if not _belongs(entry, value.element_type):
            raise EncodeError(f"{entry!r} cannot stand in an array of {value.element_type.value}")
    code, write = _element_form(value)
    body.append(code)
    for entry in value.items:
        write(body, entry, depth)
    write_compound(out, code_of.ARRAY8, code_of.ARRAY32, len(value.items), body)


def _belongs(entry: object, element_type: AmqpType) -> bool:
    actual = TYPE_OF.get(type(entry))
    return actual is element_type or (type(entry) is int and element_type in _INTEGERS)


def _element_form(value: Array) -> tuple[int, Callable[[bytearray, Any, int], None]]:
    """The constructor that fits all elements of an array, and what writes one of them without it."""
    kind = value.element_type
    if kind in _ELEMENT_FIXED:
        code, write = _ELEMENT_FIXED[kind]
        return code, lambda out, entry, depth: _without_constructor(out, entry, write)
    if kind in _ELEMENT_VARIABLE:
        code8, code32, encoding = _ELEMENT_VARIABLE[kind]
        longest = max((len(_element_bytes(entry, encoding, kind)) for entry in value.items), default=0)
        code = code8 if longest <= 255 else code32

        def variable(out: bytearray, entry: Any, depth: int) -> None:
            data = _element_bytes(entry, encoding, kind)
            out += bytes((len(data),)) if code == code8 else _pack_length(len(data))
            out += data

        return code, variable
    code = {AmqpType.LIST: code_of.LIST32, AmqpType.MAP: code_of.MAP32, AmqpType.ARRAY: code_of.ARRAY32}[kind]
    return code, lambda out, entry, depth: _wide_element(out, entry, depth)


def _without_constructor(out: bytearray, entry: Any, write: Write) -> None:
    bare = bytearray()
    write(bare, entry)
    out += memoryview(bare)[1:]


def _element_bytes(entry: Any, encoding: str, kind: AmqpType) -> bytes:
    return encode_text(entry, encoding, kind) if encoding else bytes(entry)


def _wide_element(out: bytearray, entry: Any, depth: int) -> None:
    """A list, map or array inside an array: always the wide form, whatever its size."""
    whole = bytearray()
    encode_into(whole, entry, depth)
    if whole[0] == code_of.LIST0:
        out += _pack_length(4) + _pack_length(0)
    elif whole[0] in (code_of.LIST8, code_of.MAP8, code_of.ARRAY8):
        out += _pack_length(whole[1] + 3) + _pack_length(whole[2])
        out += memoryview(whole)[3:]
    else:
        out += memoryview(whole)[1:]


_INTEGERS: Final = frozenset(
    {AmqpType.UBYTE, AmqpType.USHORT, AmqpType.UINT, AmqpType.ULONG}
    | {AmqpType.BYTE, AmqpType.SHORT, AmqpType.INT, AmqpType.LONG}
)
_ELEMENT_FIXED: Final[dict[AmqpType, tuple[int, Write]]] = {
    AmqpType.NULL: (code_of.NULL, write_null),
    AmqpType.BOOLEAN: (code_of.BOOLEAN, wide_boolean),
    AmqpType.UBYTE: (code_of.UBYTE, write_ubyte),
    AmqpType.USHORT: (code_of.USHORT, write_ushort),
    AmqpType.UINT: (code_of.UINT, wide_uint),
    AmqpType.ULONG: (code_of.ULONG, wide_ulong),
    AmqpType.BYTE: (code_of.BYTE, write_byte),
    AmqpType.SHORT: (code_of.SHORT, write_short),
    AmqpType.INT: (code_of.INT, wide_int),
    AmqpType.LONG: (code_of.LONG, wide_long),
    AmqpType.FLOAT: (code_of.FLOAT, write_float),
    AmqpType.DOUBLE: (code_of.DOUBLE, write_double),
    AmqpType.CHAR: (code_of.CHAR, write_char),
    AmqpType.TIMESTAMP: (code_of.TIMESTAMP, write_timestamp),
    AmqpType.UUID: (code_of.UUID, write_uuid),
    AmqpType.DECIMAL32: (code_of.DECIMAL32, write_decimal32),
    AmqpType.DECIMAL64: (code_of.DECIMAL64, write_decimal64),
    AmqpType.DECIMAL128: (code_of.DECIMAL128, write_decimal128),
}
_ELEMENT_VARIABLE: Final[dict[AmqpType, tuple[int, int, str]]] = {
    AmqpType.BINARY: (code_of.BINARY8, code_of.BINARY32, ""),
    AmqpType.STRING: (code_of.STRING8, code_of.STRING32, "utf-8"),
    AmqpType.SYMBOL: (code_of.SYMBOL8, code_of.SYMBOL32, "ascii"),
}

_CONTAINERS: Final[dict[type, Callable[[bytearray, Any, int], None]]] = {
    list: _list,
    tuple: _list,
    dict: _map,
    Described: _described,
    Array: _array,
}
