"""AMQP values of fixed width as text, compiled. The twin: text.py."""

from cpython.mem cimport PyMem_Free
from libc.math cimport isfinite, isnan
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, strlen

from hubweir.kernels.buffers.bytes cimport NOWHERE, load16, load32, load64
from hubweir.kernels.columns.decimals cimport write_signed, write_unsigned
from hubweir.kernels.buffers.growing cimport Out, put, put_byte
from hubweir.kernels.columns.strings cimport put_hex, put_legal
from hubweir.kernels.columns.times cimport TIME_SIZE, write_time

cdef extern from "Python.h":
    enum:
        Py_DTSF_ADD_DOT_0
    char* PyOS_double_to_string(double value, char format_code, int precision, int flags, int* kind) except NULL


cdef inline void put_finite(Out* out, double value) noexcept with gil:
    cdef char* text
    try:
        text = PyOS_double_to_string(value, c"r", 0, Py_DTSF_ADD_DOT_0, NULL)
    except MemoryError:
        out.failed = True
        return
    put(out, <const uint8_t*>text, <int64_t>strlen(text))
    PyMem_Free(text)


cdef inline void put_double(Out* out, double value, bint quotes) noexcept nogil:
    if isfinite(value):
        put_finite(out, value)
    elif isnan(value):
        put_legal(out, b"NaN", 3, quotes)
    elif value > 0:
        put_legal(out, b"Infinity", 8, quotes)
    else:
        put_legal(out, b"-Infinity", 9, quotes)


cdef inline double load_double(const uint8_t* p, int code) noexcept nogil:
    """The number behind a constructor 0x72 (float) or 0x82."""
    cdef uint64_t wide
    cdef uint32_t narrow
    cdef double value
    cdef float single
    if code == 0x72:
        narrow = load32(p)
        memcpy(&single, &narrow, 4)
        return single
    wide = load64(p)
    memcpy(&value, &wide, 8)
    return value


cdef inline int load_integer(const uint8_t* p, int code, uint64_t* number) noexcept nogil:
    """The integer behind a constructor: 1 signed (two's complement), 0 unsigned, NOWHERE when it is none."""
    if code == 0x43 or code == 0x44:
        number[0] = 0
        return 0
    if code == 0x50 or code == 0x52 or code == 0x53:
        number[0] = p[0]
        return 0
    if code == 0x60:
        number[0] = load16(p)
        return 0
    if code == 0x70:
        number[0] = load32(p)
        return 0
    if code == 0x80:
        number[0] = load64(p)
        return 0
    if code == 0x51 or code == 0x54 or code == 0x55:
        number[0] = <uint64_t><int64_t><signed char>p[0]
        return 1
    if code == 0x61:
        number[0] = <uint64_t><int64_t><short>load16(p)
        return 1
    if code == 0x71:
        number[0] = <uint64_t><int64_t><int>load32(p)
        return 1
    if code == 0x81:
        number[0] = load64(p)
        return 1
    return NOWHERE


cdef inline int write_char(uint8_t* to, uint32_t code) noexcept nogil:
    """A character as UTF-8 (up to 4 bytes); how many bytes that took."""
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        code = 0xFFFD
    if code < 0x80:
        to[0] = <uint8_t>code
        return 1
    if code < 0x800:
        to[0] = <uint8_t>(0xC0 | code >> 6)
        to[1] = <uint8_t>(0x80 | code & 63)
        return 2
    if code < 0x10000:
        to[0] = <uint8_t>(0xE0 | code >> 12)
        to[1] = <uint8_t>(0x80 | code >> 6 & 63)
        to[2] = <uint8_t>(0x80 | code & 63)
        return 3
    to[0] = <uint8_t>(0xF0 | code >> 18)
    to[1] = <uint8_t>(0x80 | code >> 12 & 63)
    to[2] = <uint8_t>(0x80 | code >> 6 & 63)
    to[3] = <uint8_t>(0x80 | code & 63)
    return 4


cdef inline void put_scalar(Out* out, const uint8_t* p, int code, int64_t size, bint quotes) noexcept nogil:
    """A value of fixed width whose own bytes are p[0:size]."""
    cdef uint8_t text[TIME_SIZE]
    cdef uint64_t number = 0
    cdef int kind = load_integer(p, code, &number)
    if kind >= 0:
        put(out, text, write_signed(text, <int64_t>number) if kind else write_unsigned(text, number))
    elif code == 0x40:
        put(out, b"null", 4)
    elif code == 0x41 or (code == 0x56 and p[0] != 0):
        put(out, b"true", 4)
    elif code == 0x42 or code == 0x56:
        put(out, b"false", 5)
    elif code == 0x72 or code == 0x82:
        put_double(out, load_double(p, code), quotes)
    elif code == 0x83:
        put_legal(out, text, write_time(text, <int64_t>load64(p)), quotes)
    elif code == 0x73:
        put_legal(out, text, write_char(text, load32(p)), quotes)
    else:
        if quotes:
            put_byte(out, c'"')
        if code == 0x98:
            put_hex(out, p, 4)
            put_byte(out, c"-")
            put_hex(out, p + 4, 2)
            put_byte(out, c"-")
            put_hex(out, p + 6, 2)
            put_byte(out, c"-")
            put_hex(out, p + 8, 2)
            put_byte(out, c"-")
            put_hex(out, p + 10, 6)
        else:
            put_hex(out, p, size)
        if quotes:
            put_byte(out, c'"')
