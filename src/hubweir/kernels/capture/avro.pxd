"""Avro's binary encoding, compiled: what the records of Capture need of it. (Avro 1.11) The twins: capture_block.py and
read_capture.py."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from hubweir.kernels.buffers.bytes cimport NOWHERE, take
from hubweir.kernels.buffers.growing cimport Out, open_gap, patch, put, put_byte, room

cdef enum:
    # Branches of the union of map values.
    LONG = 0
    DOUBLE = 1
    STRING = 2
    BYTES = 3

    MOST_ENTRIES = 63  # a block of a map whose count takes one byte
    MOST_LONG = 10  # bytes of a long

cdef struct Entries:
    # A map that is being written: where its block's count stands, and how many entries the block has.
    int64_t mark
    int count


cdef inline int write_long(uint8_t* to, int64_t value) noexcept nogil:
    """Zigzag, then seven bits a byte, least first; how many bytes that took."""
    cdef uint64_t left = (<uint64_t>value << 1) ^ (<uint64_t>0 - (<uint64_t>value >> 63))
    cdef int size = 0
    while left > 0x7F:
        to[size] = <uint8_t>(left & 0x7F | 0x80)
        left >>= 7
        size += 1
    to[size] = <uint8_t>left
    return size + 1


cdef inline void put_long(Out* out, int64_t value) noexcept nogil:
    cdef uint8_t* to = room(out, MOST_LONG)
    if to != NULL:
        out.used += write_long(to, value)


cdef inline void put_octets(Out* out, const uint8_t* content, int64_t size) noexcept nogil:
    """Bytes and strings alike: length, then content."""
    cdef uint8_t* to = room(out, MOST_LONG + size)
    cdef int head
    if to != NULL:
        head = write_long(to, size)
        if size > 0:
            memcpy(to + head, content, <size_t>size)
        out.used += head + size


cdef inline int64_t begin_octets(Out* out) noexcept nogil:
    """Where a string starts whose length is not known yet: end_octets is called with this when it was put."""
    put_byte(out, 0)
    return out.used


cdef inline void end_octets(Out* out, int64_t begun) noexcept nogil:
    """Put the length of what stands from begun on in front of it."""
    cdef uint8_t head[MOST_LONG]
    cdef int size = write_long(head, out.used - begun), index
    if size > 1:
        open_gap(out, begun, size - 1)
    if not out.failed:
        for index in range(size):
            patch(out, begun - 1 + index, head[index])


cdef inline void begin_map(Entries* entries) noexcept nogil:
    entries.mark = 0
    entries.count = 0


cdef inline void begin_entry(Out* out, Entries* entries) noexcept nogil:
    """Say that an entry comes: the first of a block reserves the byte of its count."""
    if entries.count == MOST_ENTRIES:
        patch(out, entries.mark, 2 * MOST_ENTRIES)
        entries.count = 0
    if entries.count == 0:
        entries.mark = out.used
        put_byte(out, 0)
    entries.count += 1


cdef inline void end_map(Out* out, Entries* entries) noexcept nogil:
    if entries.count > 0:
        patch(out, entries.mark, 2 * entries.count)
    put_byte(out, 0)


cdef inline int64_t read_long(const uint8_t* data, int64_t at, int64_t end, int64_t* value) noexcept nogil:
    """The position behind the long at `at`; NOWHERE when it is none."""
    if at < end and data[at] < 0x80:
        value[0] = (data[at] >> 1) ^ -<int64_t>(data[at] & 1)
        return at + 1
    return read_wide_long(data, at, end, value)


cdef inline int64_t read_wide_long(const uint8_t* data, int64_t at, int64_t end, int64_t* value) noexcept nogil:
    """read_long of more than one byte, or of none."""
    cdef uint64_t found = 0
    cdef int shift = 0
    cdef uint8_t octet
    while at < end:
        octet = data[at]
        at += 1
        if shift == 63 and octet > 1:
            return NOWHERE
        found |= <uint64_t>(octet & 0x7F) << shift
        if octet < 0x80:
            value[0] = <int64_t>((found >> 1) ^ (<uint64_t>0 - (found & 1)))
            return at
        shift += 7
    return NOWHERE


cdef inline int64_t read_octets(const uint8_t* data, int64_t at, int64_t end, int64_t* start) noexcept nogil:
    """The position behind the bytes or string at `at`, *start where its content starts."""
    cdef int64_t size = 0
    at = read_long(data, at, end, &size)
    if at == NOWHERE or size < 0:
        return NOWHERE
    start[0] = at
    return take(at, size, end)


cdef inline double load_double_little(const uint8_t* p) noexcept nogil:
    cdef uint64_t bits = 0
    cdef int index
    cdef double value
    for index in range(8):
        bits |= <uint64_t>p[index] << (8 * index)
    memcpy(&value, &bits, 8)
    return value


cdef inline void put_double_little(Out* out, double value) noexcept nogil:
    cdef uint64_t bits
    cdef int index
    memcpy(&bits, &value, 8)
    for index in range(8):
        put_byte(out, <int>(bits >> (8 * index) & 0xFF))
