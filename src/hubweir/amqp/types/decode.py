"""Bytes of a peer to values, with a limit on everything the peer controls (part 1, section 1.6).

One loop with its own stack, so that nesting costs no Python frames. Every declared size and count is held against the
bytes that are present before anything is allocated for it, and every container must end exactly where it said.
Whatever is wrong with the bytes is a DecodeError that names the position; no other exception leaves this module.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final, NoReturn, cast
from uuid import UUID

from hubweir.amqp.types import format_codes as code_of
from hubweir.amqp.types.format_codes import BY_CODE, AmqpType, Category
from hubweir.amqp.types.read_scalar import (
    FIXED_WIDTH,
    READ_FIXED,
    VARIABLE,
    Buffer,
    read_descriptor,
    read_variable,
    truncated,
)
from hubweir.amqp.types.values import (
    Array,
    Byte,
    Char,
    Decimal32,
    Decimal64,
    Decimal128,
    Described,
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

# Containers and descriptors inside one another. Real peers stay below 8 (a filter inside a source inside an attach).
DEPTH_LIMIT: Final = 32
# Entries of a list, and keys of a map. Elements of an array are bounded by their bytes.
ENTRIES_LIMIT: Final = 4096
# Elements without bytes (null, true, list0 ...) in all arrays of one value together: counted over the whole value,
# or arrays of arrays would turn 9 bytes into a thousand elements, over and over.
ZERO_WIDTH_LIMIT: Final = 1024
# Python hashes a UUID without a secret, so a peer could choose keys that all collide: this many cost under a
# millisecond.
UUID_KEYS_LIMIT: Final = 64

_TOP: Final = 0
_LIST: Final = 1
_MAP: Final = 2
_ARRAY: Final = 3
_DESCRIBED: Final = 4

_EACH_ITS_OWN: Final = -1
_HEAD_WIDTH: Final = {row.code: row.width for row in BY_CODE.values()}  # of a size, and of a count
_TWO_U32: Final = struct.Struct(">II").unpack_from
_KEY_TYPES: Final = frozenset(
    {type(None), bool, int, float, bytes, str, Symbol, Char, UUID, Timestamp, Float}
    | {UByte, UShort, UInt, ULong, Byte, Short, Int, Decimal32, Decimal64, Decimal128}
)

# A container that was opened: what it is, how many entries it has, the constructor that they share or _EACH_ITS_OWN,
# its descriptor or element type, where its entries start, and where they have to end.
_Opened = tuple[int, int, int, object, int, int]


def decode(buffer: Buffer, start: int = 0, end: int | None = None) -> tuple[object, int]:
    """Decode the one value that starts at start, and return it with the position after it.

    buffer: not kept; every value is a copy. end: exclusive; the buffer's length when left out. Bytes after the value
    are not looked at. Raises DecodeError when buffer[start:end] does not begin with one legal value within limits.
    """
    position, zero_width_left = start, ZERO_WIDTH_LIMIT
    # The container being filled, as in _Opened, with its entries so far; those around it wait on the stack.
    kind, missing, shared_code, extra = _TOP, 1, _EACH_ITS_OWN, None
    limit = len(buffer) if end is None else min(end, len(buffer))
    items: list[object] = []
    stack: list[tuple[int, int, int, object, int, list[object]]] = []
    while True:
        if shared_code >= 0:
            code = shared_code
        elif position < limit:
            code = buffer[position]
            position += 1
        else:
            truncated(position)
        width = FIXED_WIDTH[code]
        if width >= 0:
            after = position + width
            if after > limit:
                truncated(position)
            items.append(READ_FIXED[code](buffer, position))
            position = after
            missing -= 1
        elif code in VARIABLE:
            value, position = read_variable(buffer, code, position, limit)
            items.append(value)
            missing -= 1
        else:
            if len(stack) == DEPTH_LIMIT:
                raise DecodeError(f"values nest deeper than {DEPTH_LIMIT} at byte {position}")
            stack.append((kind, missing, shared_code, extra, limit, items))
            kind, missing, shared_code, extra, position, limit = _OPEN[code](buffer, code, position, limit)
            items = []
            if kind == _ARRAY and missing and FIXED_WIDTH[shared_code] == 0:
                zero_width_left -= missing
                if zero_width_left < 0:
                    raise DecodeError(f"more than {ZERO_WIDTH_LIMIT} array elements without bytes at byte {position}")
        while not missing:
            if kind == _TOP:
                return items[0], position
            value = Described(extra, items[0]) if kind == _DESCRIBED else _build(kind, items, extra, position, limit)
            kind, missing, shared_code, extra, limit, items = stack.pop()
            items.append(value)
            missing -= 1


def _open_described(buffer: Buffer, code: int, position: int, limit: int) -> _Opened:
    descriptor, position = read_descriptor(buffer, position, limit)
    return _DESCRIBED, 1, _EACH_ITS_OWN, descriptor, position, limit


def _open_compound(buffer: Buffer, code: int, position: int, limit: int) -> _Opened:
    """A list or a map."""
    kind = _MAP if code in (code_of.MAP8, code_of.MAP32) else _LIST
    count, position, end = _read_head(buffer, code, position, limit)
    if count > end - position:
        raise DecodeError(f"{count} entries cannot stand in {end - position} bytes at byte {position}")
    if kind == _MAP and count % 2:
        raise DecodeError(f"a map has an odd number of entries, {count}, at byte {position}")
    if count > (ENTRIES_LIMIT if kind == _LIST else 2 * ENTRIES_LIMIT):
        raise DecodeError(f"more than {ENTRIES_LIMIT} entries in a list or map at byte {position}")
    return kind, count, _EACH_ITS_OWN, None, position, end


def _open_array(buffer: Buffer, code: int, position: int, limit: int) -> _Opened:
    """Its elements' type comes with the descriptors that each of them has."""
    count, position, end = _read_head(buffer, code, position, limit)
    if count == 0 and position == end:
        # Some encoders leave the constructor of an empty array out.
        return _ARRAY, 0, code_of.NULL, (AmqpType.NULL, ()), position, end
    descriptors: list[object] = []
    while True:
        if position >= end:
            truncated(position)
        element_code = buffer[position]
        position += 1
        if element_code != code_of.DESCRIBED:
            break
        if len(descriptors) == DEPTH_LIMIT:
            raise DecodeError(f"values nest deeper than {DEPTH_LIMIT} at byte {position}")
        descriptor, position = read_descriptor(buffer, position, end)
        descriptors.append(descriptor)
    row = BY_CODE.get(element_code)
    if row is None:
        raise DecodeError(f"no type has the constructor {element_code:#04x} at byte {position - 1}")
    if row.width * count > end - position:
        raise DecodeError(f"{count} elements cannot stand in {end - position} bytes at byte {position}")
    return _ARRAY, count, element_code, (row.type, tuple(descriptors)), position, end


def _open_nothing(buffer: Buffer, code: int, position: int, limit: int) -> NoReturn:
    raise DecodeError(f"no type has the constructor {code:#04x} at byte {position - 1}")


def _read_head(buffer: Buffer, code: int, position: int, limit: int) -> tuple[int, int, int]:
    """The count of a container, where its entries start, and where they have to end by its size."""
    width = _HEAD_WIDTH[code]
    start = position + 2 * width
    if start > limit:
        truncated(position)
    size, count = (buffer[position], buffer[position + 1]) if width == 1 else _TWO_U32(buffer, position)
    end = position + width + size
    if end > limit or start > end:
        truncated(position + width)
    return count, start, end


def _opener_of(code: int) -> Callable[[Buffer, int, int, int], _Opened]:
    if code == code_of.DESCRIBED:
        return _open_described
    row = BY_CODE.get(code)
    if row is None:
        return _open_nothing
    return _open_array if row.category is Category.ARRAY else _open_compound


_OPEN: Final = [_opener_of(code) for code in range(256)]  # of scalars nobody asks


def _build(kind: int, items: list[object], extra: object, position: int, limit: int) -> object:
    """The value of a list, map or array whose entries are complete."""
    if position != limit:
        raise DecodeError(f"a container ends at byte {position} where its size says {limit}")
    if kind == _LIST:
        return items
    if kind == _MAP:
        return _build_map(items, position)
    element_type, descriptors = cast(tuple[AmqpType, tuple[object, ...]], extra)
    return Array(element_type, tuple(items), descriptors)


def _build_map(items: list[object], position: int) -> dict[object, object]:
    keys = items[0::2]
    types = set(map(type, keys))
    if not types <= _KEY_TYPES:
        raise DecodeError(f"a key of the map that ends at byte {position} is not a scalar")
    if UUID in types and len(keys) > UUID_KEYS_LIMIT:
        raise DecodeError(f"more than {UUID_KEYS_LIMIT} keys, of type uuid, in the map that ends at byte {position}")
    built = dict(zip(keys, items[1::2], strict=True))
    if len(built) != len(keys):
        raise DecodeError(f"a key stands twice in the map that ends at byte {position}")
    return built
