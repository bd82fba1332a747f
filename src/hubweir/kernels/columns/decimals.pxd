"""Whole numbers as decimal text, compiled."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy


cdef inline int write_unsigned(uint8_t* to, uint64_t value) noexcept nogil:
    """Write the digits (up to 20); return how many."""
    cdef uint8_t text[20]
    cdef int at = 20
    while True:
        at -= 1
        text[at] = <uint8_t>(c"0" + value % 10)
        value //= 10
        if value == 0:
            break
    memcpy(to, text + at, 20 - at)
    return 20 - at


cdef inline int write_signed(uint8_t* to, int64_t value) noexcept nogil:
    """Write the number (up to 20 bytes); return how many."""
    if value >= 0:
        return write_unsigned(to, <uint64_t>value)
    to[0] = c"-"
    return 1 + write_unsigned(to + 1, <uint64_t>0 - <uint64_t>value)


cdef inline void write_padded(uint8_t* to, int value, int width) noexcept nogil:
    """Write exactly width digits, zeros in front."""
    while width:
        width -= 1
        to[width] = <uint8_t>(c"0" + value % 10)
        value //= 10
