"""Columns as few bytes, compiled. The twin is packed_rows.py."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from hubweir.kernels.buffers.bytes cimport NOWHERE

cdef enum:
    PAIR_BYTES = 20  # two varints of 64 bits


cdef inline int64_t write_varint(uint8_t* out, int64_t at, uint64_t value) noexcept nogil:
    while value >= 0x80:
        out[at] = <uint8_t>(value & 0x7F) | 0x80
        at += 1
        value >>= 7
    out[at] = <uint8_t>value
    return at + 1


cdef inline int64_t read_varint(const uint8_t* data, int64_t at, int64_t end, uint64_t* value) noexcept nogil:
    """Where the varint at `at` ends; NOWHERE where there is none of 64 bits."""
    cdef int shift = 0
    cdef uint64_t found = 0
    while at < end and shift < 64:
        if shift == 63 and data[at] & 0x7E:
            return NOWHERE
        found |= <uint64_t>(data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            value[0] = found
            return at
        shift += 7
    return NOWHERE


cdef inline int64_t pack_column(const int64_t* rows, int64_t count, int64_t width, uint8_t* out, int64_t at) noexcept nogil:
    cdef int64_t row = 0, equal
    cdef uint64_t before = 0, difference, zigzag
    while row < count:
        difference = <uint64_t>rows[row * width] - before
        before = <uint64_t>rows[row * width]
        equal = 1
        while row + equal < count and <uint64_t>rows[(row + equal) * width] - before == difference:
            before = <uint64_t>rows[(row + equal) * width]
            equal += 1
        zigzag = (difference << 1) ^ (0 - (difference >> 63))
        at = write_varint(out, at, zigzag)
        at = write_varint(out, at, <uint64_t>equal)
        row += equal
    return at


cdef inline int64_t unpack_column(
    const uint8_t* data, int64_t at, int64_t end, int64_t* rows, int64_t count, int64_t width
) noexcept nogil:
    cdef int64_t row = 0
    cdef uint64_t value = 0, zigzag = 0, equal = 0, difference
    while row < count:
        at = read_varint(data, at, end, &zigzag)
        if at == NOWHERE:
            return NOWHERE
        at = read_varint(data, at, end, &equal)
        if at == NOWHERE or equal == 0 or equal > <uint64_t>(count - row):
            return NOWHERE
        difference = (zigzag >> 1) ^ (0 - (zigzag & 1))
        while equal:
            value += difference
            rows[row * width] = <int64_t>value
            row += 1
            equal -= 1
    return at
