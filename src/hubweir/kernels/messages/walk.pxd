"""Steps over values that are nearly always short strings, symbols or 64-bit numbers, compiled. What they are not is
left to sections.pxd, which decides what is legal."""

from libc.stdint cimport int64_t, uint8_t

from hubweir.kernels.messages.sections cimport skip_value, variable


cdef inline int64_t step(const uint8_t* data, int64_t at, int64_t end) noexcept nogil:
    """skip_value, quicker for the usual."""
    cdef int64_t stop
    if end - at >= 9:
        if data[at] == 0xA1 or data[at] == 0xA3:
            stop = at + 2 + data[at + 1]
            if stop <= end:
                return stop
        elif data[at] == 0x81 or data[at] == 0x83:
            return at + 9
    return skip_value(data, at, end)


cdef inline int64_t content_of(const uint8_t* data, int64_t at, int64_t end, int64_t* start) noexcept nogil:
    """variable, quicker for the usual; data[at:end] is a whole binary, string or symbol."""
    if data[at] < 0xB0:
        start[0] = at + 2
        return end
    return variable(data, at, end, start)
