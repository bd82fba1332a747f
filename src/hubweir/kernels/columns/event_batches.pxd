"""Arrow rows as encoded messages and as a digest, compiled. The twin: event_batches.py."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from hubweir.kernels.columns.arrow cimport Maps, Texts, Value, entries_of, value_of
from hubweir.kernels.buffers.bytes cimport NOWHERE, store32
from hubweir.kernels.buffers.growing cimport Out, room

cdef enum:
    KEY_NAME_SIZE = 21  # constructor, size and text of x-opt-partition-key as a symbol

cdef struct Row:
    Value body
    Value key
    int64_t first_entry
    int64_t last_entry
    int64_t key_size        # content of the message annotations, 0 without
    int64_t property_size   # content of the application properties
    int64_t size            # the whole message

cdef struct Rows:
    Texts body
    Texts keys
    Maps properties


cdef inline int64_t sized(int64_t size) noexcept nogil:
    """Bytes of a binary or string."""
    return size + (2 if size <= 0xFF else 5)


cdef inline bint is_small(int64_t size, int64_t count) noexcept nogil:
    """Whether a map of this content fits the short form."""
    return size + 1 <= 0xFF and count <= 0xFF


cdef inline int64_t map_size(int64_t size, int64_t count) noexcept nogil:
    """Bytes of a section that is a map."""
    return size + (6 if is_small(size, count) else 12)


cdef inline int open_row(Rows* rows, int64_t number, Row* row) noexcept nogil:
    """Find the values of a row and its size as a message; NOWHERE when it is malformed."""
    cdef Value name, value
    cdef int64_t entry
    if value_of(&rows.body, number, &row.body) == NOWHERE or value_of(&rows.keys, number, &row.key) == NOWHERE:
        return NOWHERE
    if entries_of(&rows.properties, number, &row.first_entry, &row.last_entry) == NOWHERE:
        return NOWHERE
    row.size = 3 + sized(row.body.size)
    row.key_size = row.property_size = 0
    if row.key.size > 0:
        row.key_size = KEY_NAME_SIZE + sized(row.key.size)
        row.size += map_size(row.key_size, 2)
    for entry in range(row.first_entry, row.last_entry):
        if value_of(&rows.properties.keys, entry, &name) == NOWHERE or name.start == NULL:
            return NOWHERE
        if value_of(&rows.properties.values, entry, &value) == NOWHERE:
            return NOWHERE
        row.property_size += sized(name.size) + (1 if value.start == NULL else sized(value.size))
        # A size beyond every limit: sums stop here, so that none can wrap.
        row.property_size = min(row.property_size, <int64_t>1 << 40)
    if row.last_entry > row.first_entry:
        row.size += map_size(row.property_size, 2 * (row.last_entry - row.first_entry))
    return 0


cdef inline uint8_t* write_sized(uint8_t* to, int code, Value* value) noexcept nogil:
    """Binary or string, as short as it can be; the position behind it."""
    if value.size <= 0xFF:
        to[0] = <uint8_t>code
        to[1] = <uint8_t>value.size
        to += 2
    else:
        to[0] = <uint8_t>(code + 0x10)
        store32(to + 1, <uint32_t>value.size)
        to += 5
    if value.size > 0:
        memcpy(to, value.start, <size_t>value.size)
    return to + value.size


cdef inline uint8_t* write_map_head(uint8_t* to, int section, int64_t size, int64_t count) noexcept nogil:
    to[0] = 0
    to[1] = 0x53
    to[2] = <uint8_t>section
    if is_small(size, count):
        to[3] = 0xC1
        to[4] = <uint8_t>(size + 1)
        to[5] = <uint8_t>count
        return to + 6
    to[3] = 0xD1
    store32(to + 4, <uint32_t>(size + 4))
    store32(to + 8, <uint32_t>count)
    return to + 12


cdef inline uint8_t* write_data_head(uint8_t* to, int64_t size) noexcept nogil:
    to[0] = 0
    to[1] = 0x53
    to[2] = 0x75
    if size <= 0xFF:
        to[3] = 0xA0
        to[4] = <uint8_t>size
        return to + 5
    to[3] = 0xB0
    store32(to + 4, <uint32_t>size)
    return to + 8


cdef inline void put_row(Out* out, Rows* rows, Row* row) noexcept nogil:
    """Append the data section that holds the row's message."""
    cdef int64_t section = 3 + sized(row.size), entry
    cdef Value name, value
    cdef uint8_t* to = room(out, section)
    if to == NULL:
        return
    to = write_data_head(to, row.size)
    if row.key_size > 0:
        to = write_map_head(to, 0x72, row.key_size, 2)
        memcpy(to, b"\xa3\x13x-opt-partition-key", KEY_NAME_SIZE)
        to = write_sized(to + KEY_NAME_SIZE, 0xA1, &row.key)
    if row.last_entry > row.first_entry:
        to = write_map_head(to, 0x74, row.property_size, 2 * (row.last_entry - row.first_entry))
        for entry in range(row.first_entry, row.last_entry):
            value_of(&rows.properties.keys, entry, &name)
            to = write_sized(to, 0xA1, &name)
            value_of(&rows.properties.values, entry, &value)
            if value.start == NULL:
                to[0] = 0x40
                to += 1
            else:
                to = write_sized(to, 0xA1, &value)
    to[0] = 0
    to[1] = 0x53
    to[2] = 0x75
    write_sized(to + 3, 0xA0, &row.body)
    out.used += section


cdef inline uint64_t take_word(uint64_t digest, uint64_t word) noexcept nogil:
    word *= <uint64_t>0x87C37B91114253D5
    word = (word << 31) | (word >> 33)
    word *= <uint64_t>0x4CF5AD432745937F
    digest ^= word
    digest = (digest << 27) | (digest >> 37)
    return digest * 5 + 0x52DCE729


cdef inline uint64_t take_value(uint64_t digest, Value* value) noexcept nogil:
    """Take a value in: its length, then its bytes eight at a time, least first, filled up with zeros."""
    cdef int64_t at = 0, index
    cdef uint64_t word
    if value.start == NULL:
        return take_word(digest, <uint64_t>0xFFFFFFFFFFFFFFFF)
    digest = take_word(digest, <uint64_t>value.size)
    while value.size - at >= 8:
        digest = take_word(digest, load64_little(value.start + at))
        at += 8
    if at < value.size:
        word = 0
        for index in range(value.size - at):
            word |= <uint64_t>value.start[at + index] << (8 * index)
        digest = take_word(digest, word)
    return digest


cdef inline uint64_t load64_little(const uint8_t* p) noexcept nogil:
    return (
        <uint64_t>p[0] | (<uint64_t>p[1] << 8) | (<uint64_t>p[2] << 16) | (<uint64_t>p[3] << 24)
        | (<uint64_t>p[4] << 32) | (<uint64_t>p[5] << 40) | (<uint64_t>p[6] << 48) | (<uint64_t>p[7] << 56)
    )


cdef inline uint64_t take_row(uint64_t digest, Rows* rows, Row* row) noexcept nogil:
    cdef Value name, value
    cdef int64_t entry
    digest = take_value(take_value(digest, &row.body), &row.key)
    digest = take_word(digest, <uint64_t>(row.last_entry - row.first_entry))
    for entry in range(row.first_entry, row.last_entry):
        value_of(&rows.properties.keys, entry, &name)
        value_of(&rows.properties.values, entry, &value)
        digest = take_value(take_value(digest, &name), &value)
    return digest
