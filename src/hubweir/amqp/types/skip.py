"""Stepping over a value without looking inside it (part 1, section 1.2: every constructor says how to)."""

from __future__ import annotations

from hubweir.amqp.types import format_codes as code_of
from hubweir.amqp.types.decode import DEPTH_LIMIT
from hubweir.amqp.types.format_codes import BY_CODE, Category
from hubweir.amqp.types.read_scalar import Buffer, read_descriptor, read_length, truncated
from hubweir.errors import DecodeError


def skip(buffer: Buffer, start: int, end: int) -> int:
    """The position after the value that starts at start, found without looking inside it.

    Only the value's own constructor and size are checked against end; what a container holds is not.
    """
    position = start
    for _ in range(DEPTH_LIMIT):
        if position >= end:
            truncated(position)
        code = buffer[position]
        position += 1
        if code == code_of.DESCRIBED:
            _, position = read_descriptor(buffer, position, end)
            continue
        row = BY_CODE.get(code)
        if row is None:
            raise DecodeError(f"no type has the constructor {code:#04x} at byte {position - 1}")
        if row.category is Category.FIXED:
            after = position + row.width
        else:
            size, position = read_length(buffer, row.width, position, end)
            after = position + size
        if after > end:
            truncated(position)
        return after
    raise DecodeError(f"values nest deeper than {DEPTH_LIMIT} at byte {position}")
