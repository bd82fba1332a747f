"""AMQP values and message sections, compiled: find where they end, never what they mean. The twin is sections.py.

Functions return a position, or NOWHERE for bytes that are not legal here. Every position is checked by take() before
the byte is read. A list, map or array is stepped over by its size, so nothing nests but described values, which
MAX_DEPTH bounds. (AMQP 1.0 part 1 section 1.6, part 3 section 3.2)
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp

from hubweir.kernels.buffers.bytes cimport NOWHERE, load32, load64, take

cdef enum:
    MAX_DEPTH = 32

    HEADER = 0x70
    DELIVERY_ANNOTATIONS = 0x71
    MESSAGE_ANNOTATIONS = 0x72
    PROPERTIES = 0x73
    APPLICATION_PROPERTIES = 0x74
    DATA = 0x75
    SEQUENCE = 0x76
    VALUE = 0x77
    FOOTER = 0x78

    # Fields of the header's and of the properties' list. (part 3, sections 3.2.1 and 3.2.4)
    HEADER_FIELDS = 5
    PROPERTIES_FIELDS = 13

    # Bits of a section code in a set of codes.
    BIT_MESSAGE_ANNOTATIONS = 1 << 2
    BITS_BODY = (1 << 5) | (1 << 6) | (1 << 7)
    BITS_REPEATABLE = (1 << 5) | (1 << 6)

    # What a constructor is followed by: a number of bytes up to 16, or one of these.
    ILLEGAL = 32
    VARIABLE_8 = 33
    VARIABLE_32 = 34
    COMPOUND_8 = 35
    COMPOUND_32 = 36

cdef extern from *:
    """
    /* One row for each first half of a constructor; 32 and up are the names above. */
    static const unsigned char hubweir_following[256] = {
        /* 0_ */ 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32,
        /* 1_ */ 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32,
        /* 2_ */ 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32,
        /* 3_ */ 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32,
        /* 4_ */  0,  0,  0,  0,  0,  0, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32,
        /* 5_ */  1,  1,  1,  1,  1,  1,  1, 32, 32, 32, 32, 32, 32, 32, 32, 32,
        /* 6_ */  2,  2, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32,
        /* 7_ */  4,  4,  4,  4,  4, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32,
        /* 8_ */  8,  8,  8,  8,  8, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32,
        /* 9_ */ 32, 32, 32, 32, 16, 32, 32, 32, 16, 32, 32, 32, 32, 32, 32, 32,
        /* A_ */ 33, 33, 32, 33, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32,
        /* B_ */ 34, 34, 32, 34, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32,
        /* C_ */ 35, 35, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32,
        /* D_ */ 36, 36, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32,
        /* E_ */ 35, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32,
        /* F_ */ 36, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32,
    };
    """
    const uint8_t* following "hubweir_following"


cdef struct Section:
    int code
    int64_t start
    int64_t value
    int64_t end

cdef struct Message:
    # Where each section starts, by its code less 0x70 (a body section: the first of them); NOWHERE when it is absent.
    int64_t at[9]
    int64_t header_end
    int64_t annotations      # the value of the message annotations and its end
    int64_t annotations_end
    int64_t body             # the first body section of any kind
    int64_t body_value
    int64_t body_end
    int64_t data_count       # how many data sections, and the bytes inside them
    int64_t data_bytes
    int64_t properties_bytes # of all sections before the body
    unsigned int seen        # set of codes


cdef struct Items:
    uint32_t count
    int64_t start
    int64_t end


cdef inline int64_t variable(const uint8_t* data, int64_t at, int64_t end, int64_t* start) noexcept nogil:
    """The end of the bytes of the binary, string or symbol at `at` (which lies before end); *start where they start."""
    cdef int64_t behind
    if following[data[at]] == VARIABLE_8:
        behind = take(at, 2, end)
        if behind == NOWHERE:
            return NOWHERE
        start[0] = behind
        return take(behind, data[at + 1], end)
    behind = take(at, 5, end)
    if behind == NOWHERE:
        return NOWHERE
    start[0] = behind
    return take(behind, load32(data + at + 1), end)


cdef inline int64_t compound(const uint8_t* data, int64_t at, int64_t end, Items* items) noexcept nogil:
    """The end of the list, map or array at `at` (which lies before end); *items what it holds."""
    cdef int64_t behind
    cdef uint32_t size
    if data[at] == 0x45:
        items.count = 0
        items.start = items.end = at + 1
        return at + 1
    if following[data[at]] == COMPOUND_8:
        behind = take(at, 3, end)
        if behind == NOWHERE:
            return NOWHERE
        size = data[at + 1]
        if size < 1:
            return NOWHERE
        items.count = data[at + 2]
        items.end = take(behind, <int64_t>size - 1, end)
    else:
        behind = take(at, 9, end)
        if behind == NOWHERE:
            return NOWHERE
        size = load32(data + at + 1)
        if size < 4:
            return NOWHERE
        items.count = load32(data + at + 5)
        items.end = take(behind, <int64_t>size - 4, end)
    items.start = behind
    return items.end


cdef inline int64_t skip_value(const uint8_t* data, int64_t at, int64_t end) noexcept nogil:
    """The position behind the value at `at`, its descriptors included."""
    cdef int pending = 1, described = 0, width
    cdef int64_t ignored
    cdef Items items
    while pending:
        if take(at, 1, end) == NOWHERE:
            return NOWHERE
        if data[at] == 0x00:
            # A descriptor and the value it describes stand in the place of one value.
            described += 1
            if described > MAX_DEPTH:
                return NOWHERE
            pending += 1
            at += 1
            continue
        width = following[data[at]]
        if width < ILLEGAL:
            at = take(at, 1 + width, end)
        elif width == ILLEGAL:
            return NOWHERE
        elif width <= VARIABLE_32:
            at = variable(data, at, end, &ignored)
        else:
            at = compound(data, at, end, &items)
        if at == NOWHERE:
            return NOWHERE
        pending -= 1
    return at


cdef inline int is_spelled(const uint8_t* data, int64_t start, int64_t end, const char* name, int64_t size) noexcept nogil:
    return end - start == size and memcmp(data + start, name, size) == 0


cdef inline int symbolic_code(const uint8_t* data, int64_t start, int64_t end) noexcept nogil:
    """The section code of a symbolic descriptor; 0 for another."""
    if is_spelled(data, start, end, b"amqp:header:list", 16):
        return HEADER
    if is_spelled(data, start, end, b"amqp:delivery-annotations:map", 29):
        return DELIVERY_ANNOTATIONS
    if is_spelled(data, start, end, b"amqp:message-annotations:map", 28):
        return MESSAGE_ANNOTATIONS
    if is_spelled(data, start, end, b"amqp:properties:list", 20):
        return PROPERTIES
    if is_spelled(data, start, end, b"amqp:application-properties:map", 31):
        return APPLICATION_PROPERTIES
    if is_spelled(data, start, end, b"amqp:data:binary", 16):
        return DATA
    if is_spelled(data, start, end, b"amqp:amqp-sequence:list", 23):
        return SEQUENCE
    if is_spelled(data, start, end, b"amqp:amqp-value:*", 17):
        return VALUE
    if is_spelled(data, start, end, b"amqp:footer:map", 15):
        return FOOTER
    return 0


cdef inline int64_t read_section(const uint8_t* data, int64_t at, int64_t end, Section* section) noexcept nogil:
    """The end of the section at `at`; its descriptor is numeric or symbolic, of any legal width."""
    cdef int64_t value, start, stop
    cdef uint64_t number
    cdef uint8_t code
    if take(at, 3, end) == NOWHERE or data[at] != 0x00:
        return NOWHERE
    if data[at + 1] == 0x53:
        section.code = data[at + 2]
        value = at + 3
    elif data[at + 1] == 0x80:
        value = take(at, 10, end)
        if value == NOWHERE:
            return NOWHERE
        number = load64(data + at + 2)
        section.code = <int>number if number <= FOOTER else 0
    elif data[at + 1] == 0xA3 or data[at + 1] == 0xB3:
        value = variable(data, at + 1, end, &start)
        if value == NOWHERE:
            return NOWHERE
        section.code = symbolic_code(data, start, value)
    else:
        return NOWHERE
    if section.code < HEADER or section.code > FOOTER:
        return NOWHERE
    stop = skip_value(data, value, end)
    if stop == NOWHERE:
        return NOWHERE
    code = data[value]
    if section.code == DATA:
        if code != 0xA0 and code != 0xB0:
            return NOWHERE
    elif section.code == HEADER or section.code == PROPERTIES or section.code == SEQUENCE:
        if code != 0xC0 and code != 0x45 and code != 0xD0:
            return NOWHERE
    elif section.code != VALUE:
        if code != 0xC1 and code != 0xD1:
            return NOWHERE
    section.start = at
    section.value = value
    section.end = stop
    return stop


cdef inline int check_map(const uint8_t* data, int64_t at, int64_t end) noexcept nogil:
    """0 when the map at `at` holds whole entries that fill its size exactly, NOWHERE otherwise.

    No count of a peer keeps this loop longer than its bytes last: each value takes one at least.
    """
    cdef Items items
    cdef uint32_t left
    if compound(data, at, end, &items) == NOWHERE or items.count % 2:
        return NOWHERE
    left = items.count
    at = items.start
    while left:
        at = skip_value(data, at, items.end)
        if at == NOWHERE:
            return NOWHERE
        left -= 1
    return 0 if at == items.end else NOWHERE


cdef inline int is_name(const uint8_t* data, int64_t at, int64_t end, const char* name, int64_t size) noexcept nogil:
    """Whether the symbol or string at `at` (a whole value, which ends at end) spells name."""
    cdef int64_t start
    cdef uint8_t code = data[at]
    if code != 0xA3 and code != 0xA1 and code != 0xB3 and code != 0xB1:
        return 0
    if variable(data, at, end, &start) == NOWHERE:
        return 0
    return is_spelled(data, start, end, name, size)


cdef inline int read_message(const uint8_t* data, int64_t at, int64_t end, Message* message) noexcept nogil:
    """Fill message from data[at:end]; 0, or NOWHERE when it is no legal message. Sections may stand in any order."""
    cdef Section section
    cdef unsigned int bit
    cdef int64_t start = 0
    cdef int index
    for index in range(9):
        message.at[index] = NOWHERE
    message.header_end = message.annotations = message.annotations_end = NOWHERE
    message.body = message.body_value = message.body_end = NOWHERE
    message.data_count = message.data_bytes = message.properties_bytes = 0
    message.seen = 0
    while at < end:
        at = read_section(data, at, end, &section)
        if at == NOWHERE:
            return NOWHERE
        bit = <unsigned int>1 << (section.code - HEADER)
        if message.seen & bit:
            if not bit & BITS_REPEATABLE:
                return NOWHERE
        else:
            message.at[section.code - HEADER] = section.start
        if section.code < DATA:
            message.properties_bytes += section.end - section.start
        if bit & BITS_BODY:
            if message.seen & BITS_BODY & ~bit:
                return NOWHERE
            if message.body == NOWHERE:
                message.body = section.start
                message.body_value = section.value
                message.body_end = section.end
            if section.code == DATA:
                if variable(data, section.value, section.end, &start) == NOWHERE:
                    return NOWHERE
                message.data_count += 1
                message.data_bytes += section.end - start
        elif section.code == MESSAGE_ANNOTATIONS:
            if check_map(data, section.value, section.end) == NOWHERE:
                return NOWHERE
            message.annotations = section.value
            message.annotations_end = section.end
        elif section.code == HEADER:
            message.header_end = section.end
        message.seen |= bit
    return 0


cdef inline int fields_of(
    const uint8_t* data, int64_t start, int64_t end, int most, int64_t* at, int64_t* stop
) noexcept nogil:
    """Where the fields of the list section data[start:end] lie, NOWHERE from its end to `most`; start NOWHERE: no list."""
    cdef Section section
    cdef Items items
    cdef int index
    cdef int64_t position
    for index in range(most):
        at[index] = stop[index] = NOWHERE
    if start == NOWHERE:
        return 0
    if read_section(data, start, end, &section) == NOWHERE:
        return NOWHERE
    if compound(data, section.value, section.end, &items) == NOWHERE or items.count > <uint32_t>most:
        return NOWHERE
    position = items.start
    for index in range(<int>items.count):
        at[index] = position
        position = skip_value(data, position, items.end)
        if position == NOWHERE:
            return NOWHERE
        stop[index] = position
    return 0 if position == items.end else NOWHERE
