"""AMQP values as text, compiled (columns_contract.py says which text). The twin: text.py.

Values come as a constructor and the range of their own bytes, which skip_value granted. With quotes, strings are
written as JSON, quotes and escapes included; without, as they are.
"""

from libc.stdint cimport int64_t, uint8_t

from hubweir.kernels.buffers.bytes cimport NOWHERE, load32, take
from hubweir.kernels.columns_contract cimport MAX_TEXT_DEPTH
from hubweir.kernels.buffers.growing cimport Out, put, put_byte
from hubweir.kernels.columns.scalars cimport put_scalar
from hubweir.kernels.messages.sections cimport COMPOUND_8, COMPOUND_32, ILLEGAL, VARIABLE_8, following, skip_value
from hubweir.kernels.columns.strings cimport is_binary, is_text, put_base64, put_utf8

cdef enum:
    # A few bytes may declare any number of elements that take none; more than these are not written out.
    MOST_WIDTHLESS = 4


cdef inline bint is_compound(int code) noexcept nogil:
    return code == 0x45 or following[code] == COMPOUND_8 or following[code] == COMPOUND_32


cdef inline int put_inside(
    Out* out, const uint8_t* data, int code, int64_t at, int64_t end, int depth, bint quotes
) noexcept nogil:
    """A value of this constructor whose own bytes are data[at:end]; NOWHERE when its inside cannot be walked."""
    cdef int width
    if is_compound(code):
        return put_compound(out, data, code, at, end, depth)
    width = following[code]
    if width < ILLEGAL:
        put_scalar(out, data + at, code, end - at, quotes)
        return 0
    at += 1 if width == VARIABLE_8 else 4
    if is_binary(code):
        put_base64(out, data + at, end - at, quotes)
    else:
        put_utf8(out, data + at, end - at, quotes)
    return 0


cdef inline int put_compound(Out* out, const uint8_t* data, int code, int64_t at, int64_t end, int depth) noexcept nogil:
    """A list, map or array as JSON; its size and count are data[at:]'s first bytes."""
    cdef int64_t count
    cdef int done
    if depth == MAX_TEXT_DEPTH:
        return NOWHERE
    if code == 0x45:
        put(out, b"[]", 2)
        return 0
    if following[code] == COMPOUND_8:
        count = data[at + 1]
        at += 2
    else:
        count = load32(data + at + 4)
        at += 8
    if code == 0xC1 or code == 0xD1:
        return put_map(out, data, count, at, end, depth + 1)
    put_byte(out, c"[")
    if code == 0xE0 or code == 0xF0:
        done = put_array(out, data, count, at, end, depth + 1)
    else:
        done = put_items(out, data, count, at, end, depth + 1)
    put_byte(out, c"]")
    return done


cdef inline int put_items(Out* out, const uint8_t* data, int64_t count, int64_t at, int64_t end, int depth) noexcept nogil:
    """The values that fill data[at:end], as JSON with commas between them."""
    cdef int64_t stop, start, index
    for index in range(count):
        stop = skip_value(data, at, end)
        if stop == NOWHERE:
            return NOWHERE
        start = undescribed(data, at, stop)
        if index:
            put_byte(out, c",")
        if put_inside(out, data, data[start], start + 1, stop, depth, True) == NOWHERE:
            return NOWHERE
        at = stop
    return 0 if at == end else NOWHERE


cdef inline int put_map(Out* out, const uint8_t* data, int64_t count, int64_t at, int64_t end, int depth) noexcept nogil:
    """A map as a JSON object: keys are the text of single values."""
    cdef int64_t stop, start, index
    cdef int code
    if count % 2:
        return NOWHERE
    put_byte(out, c"{")
    for index in range(count):
        stop = skip_value(data, at, end)
        if stop == NOWHERE:
            return NOWHERE
        start = undescribed(data, at, stop)
        code = data[start]
        if index % 2:
            put_byte(out, c":")
            if put_inside(out, data, code, start + 1, stop, depth, True) == NOWHERE:
                return NOWHERE
        else:
            if is_compound(code):
                return NOWHERE
            if index:
                put_byte(out, c",")
            if is_text(code) or code == 0x73:
                put_inside(out, data, code, start + 1, stop, depth, True)
            else:
                # No other text of a single value has anything to escape.
                put_byte(out, c'"')
                put_inside(out, data, code, start + 1, stop, depth, False)
                put_byte(out, c'"')
        at = stop
    put_byte(out, c"}")
    return 0 if at == end else NOWHERE


cdef inline int put_array(Out* out, const uint8_t* data, int64_t count, int64_t at, int64_t end, int depth) noexcept nogil:
    """The elements of an array, whose constructor stands once at `at`, as JSON with commas between them."""
    cdef int64_t stop, index, size
    cdef int code, width
    if take(at, 1, end) == NOWHERE:
        return NOWHERE
    while data[at] == 0x00:
        at = skip_value(data, at + 1, end)
        if at == NOWHERE or take(at, 1, end) == NOWHERE:
            return NOWHERE
    code = data[at]
    width = following[code]
    at += 1
    if width == 0 and count > MOST_WIDTHLESS:
        return NOWHERE
    for index in range(count):
        if width < ILLEGAL:
            stop = take(at, width, end)
        elif width == ILLEGAL:
            return NOWHERE
        else:
            if width == VARIABLE_8 or width == COMPOUND_8:
                stop = take(at, 1, end)
                size = 0 if stop == NOWHERE else data[at]
            else:
                stop = take(at, 4, end)
                size = 0 if stop == NOWHERE else <int64_t>load32(data + at)
            if stop == NOWHERE:
                return NOWHERE
            if (width == COMPOUND_8 and size < 1) or (width == COMPOUND_32 and size < 4):
                return NOWHERE
            stop = take(stop, size, end)
        if stop == NOWHERE:
            return NOWHERE
        if index:
            put_byte(out, c",")
        if put_inside(out, data, code, at, stop, depth, True) == NOWHERE:
            return NOWHERE
        at = stop
    return 0 if at == end else NOWHERE


cdef inline int64_t undescribed(const uint8_t* data, int64_t at, int64_t end) noexcept nogil:
    """The position of the value itself, behind its descriptors; data[at:end] is a whole value."""
    while data[at] == 0x00:
        at = skip_value(data, at + 1, end)
    return at


cdef inline void put_value(Out* out, const uint8_t* data, int64_t at, int64_t end, bint quotes) noexcept nogil:
    """The text of the whole value data[at:end]; what cannot be walked as base64."""
    cdef int64_t mark = out.used, start = undescribed(data, at, end)
    if put_inside(out, data, data[start], start + 1, end, 0, quotes) == NOWHERE:
        out.used = mark
        put_base64(out, data + at, end - at, quotes)
