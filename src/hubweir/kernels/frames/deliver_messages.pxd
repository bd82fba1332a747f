"""Write a stored message of a queue as it goes out, compiled. The twin: deliver_messages.py.

The message is put together in a scratch buffer that is GROWTH bytes longer than the stored one: what the broker writes
is bounded, and of every stored byte at most one copy goes out. A section of the broker's is begun behind room for its
wide form, and moved to the front when it turns out small.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memmove

from hubweir.kernels.buffers.bytes cimport NOWHERE, load32, store16, store32, store64
from hubweir.kernels.contract cimport (
    FORWARDED_BIT, Q_DELIVERY_COUNT, Q_ENQUEUED_MS, Q_ENQUEUE_NUMBER, Q_EXPIRES_MS, Q_ID_NUMBER, Q_LOCK,
    Q_LOCKED_UNTIL_MS, Q_LOCK_CHECK, Q_PARTITION, Q_RECORD, Q_SEQUENCE_NUMBER, Q_STATE, Q_TTL_MS,
)
from hubweir.kernels.messages.sections cimport (
    DELIVERY_ANNOTATIONS, HEADER, HEADER_FIELDS, MESSAGE_ANNOTATIONS, PROPERTIES, PROPERTIES_FIELDS, Items, Message,
    Section, compound, fields_of, is_name, read_message, read_section, skip_value,
)
from hubweir.kernels.stored_batch cimport RECORD_HEADER_SIZE

cdef enum:
    GROWTH = 512
    WIDE_HEAD = 12
    SMALL_HEAD = 6
    ID_DIGITS = 16
    TAG_SIZE = 16

cdef struct Outgoing:
    # The message that is put together: bytes[:size] of it are written.
    uint8_t* bytes
    int64_t size
    int64_t section        # where the content of the open section starts
    int64_t count          # its items so far
    int64_t last           # its items up to the last that is not null, and where that one ends
    int64_t last_end


cdef inline void open_out(Outgoing* to) noexcept nogil:
    to.size += WIDE_HEAD
    to.section = to.last_end = to.size
    to.count = to.last = 0


cdef inline void close_out(Outgoing* to, int code, int constructor) noexcept nogil:
    """Write the head of the open section, as small as it can be."""
    cdef int64_t content = to.size - to.section
    cdef uint8_t* head = to.bytes + to.section - WIDE_HEAD
    head[0] = 0
    head[1] = 0x53
    head[2] = <uint8_t>code
    if content + 1 <= 0xFF and to.count <= 0xFF:
        head[3] = <uint8_t>constructor
        head[4] = <uint8_t>(content + 1)
        head[5] = <uint8_t>to.count
        memmove(head + SMALL_HEAD, to.bytes + to.section, <size_t>content)
        to.size -= WIDE_HEAD - SMALL_HEAD
        return
    head[3] = <uint8_t>(constructor | 0x10)
    store32(head + 4, <uint32_t>(content + 4))
    store32(head + 8, <uint32_t>to.count)


cdef inline void put_bytes(Outgoing* to, const uint8_t* source, int64_t size) noexcept nogil:
    memcpy(to.bytes + to.size, source, <size_t>size)
    to.size += size


cdef inline void put_number(Outgoing* to, int constructor, int64_t number, int size) noexcept nogil:
    """Append a number of 2, 4 or 8 bytes."""
    to.bytes[to.size] = <uint8_t>constructor
    if size == 8:
        store64(to.bytes + to.size + 1, <uint64_t>number)
    elif size == 4:
        store32(to.bytes + to.size + 1, <uint32_t>number)
    else:
        store16(to.bytes + to.size + 1, <uint32_t>(number & 0xFFFF))
    to.size += 1 + size


cdef inline void put_entry(
    Outgoing* to, const char* name, int length, int constructor, int64_t number, int size
) noexcept nogil:
    """Append one entry of a map: a symbol and a number."""
    to.bytes[to.size] = 0xA3
    to.bytes[to.size + 1] = <uint8_t>length
    to.size += 2
    put_bytes(to, <const uint8_t*>name, length)
    put_number(to, constructor, number, size)
    to.count += 2


cdef inline void field_done(Outgoing* to, bint is_null) noexcept nogil:
    """A field of a list was written; nulls at the end of the list are left out when it is closed."""
    to.count += 1
    if not is_null:
        to.last = to.count
        to.last_end = to.size


cdef inline void put_field(Outgoing* to, const uint8_t* data, int64_t at, int64_t end) noexcept nogil:
    """Append a stored field, or null where there is none (at is NOWHERE)."""
    if at == NOWHERE:
        to.bytes[to.size] = 0x40
        to.size += 1
        field_done(to, True)
        return
    put_bytes(to, data + at, end - at)
    field_done(to, end - at == 1 and data[at] == 0x40)


cdef inline void close_list(Outgoing* to, int code) noexcept nogil:
    to.count = to.last
    to.size = to.last_end
    close_out(to, code, 0xC0)


cdef inline bint is_of_broker(const uint8_t* data, int64_t key, int64_t value) noexcept nogil:
    return (
        is_name(data, key, value, b"x-opt-enqueued-time", 19)
        or is_name(data, key, value, b"x-opt-sequence-number", 21)
        or is_name(data, key, value, b"x-opt-enqueue-sequence-number", 29)
        or is_name(data, key, value, b"x-opt-locked-until", 18)
        or is_name(data, key, value, b"x-opt-message-state", 19)
        or is_name(data, key, value, b"x-opt-partition-id", 18)
    )


cdef inline bint is_left_out_when_null(const uint8_t* data, int64_t key, int64_t value) noexcept nogil:
    return (
        is_name(data, key, value, b"x-opt-partition-key", 19)
        or is_name(data, key, value, b"x-opt-via-partition-key", 23)
        or is_name(data, key, value, b"x-opt-deadletter-source", 23)
        or is_name(data, key, value, b"x-opt-scheduled-enqueue-time", 28)
    )


cdef inline int put_stored(
    Outgoing* to, const uint8_t* data, int64_t start, int64_t end, bint of_delivery, bint was_forwarded
) noexcept nogil:
    """Append the entries of a stored map section that go out; of delivery annotations all but a lock token.

    A dead-letter source that no forward wrote is the sender's, and does not go out.
    """
    cdef Section section
    cdef Items items
    cdef int64_t at, value, behind
    cdef uint32_t left
    cdef bint is_left_out
    if start == NOWHERE:
        return 0
    if read_section(data, start, end, &section) == NOWHERE:
        return NOWHERE
    if compound(data, section.value, section.end, &items) == NOWHERE or items.count % 2:
        return NOWHERE
    at = items.start
    left = items.count // 2
    while left:
        left -= 1
        value = skip_value(data, at, items.end)
        if value == NOWHERE:
            return NOWHERE
        behind = skip_value(data, value, items.end)
        if behind == NOWHERE:
            return NOWHERE
        if of_delivery:
            is_left_out = is_name(data, at, value, b"x-opt-lock-token", 16)
        else:
            is_left_out = (
                is_of_broker(data, at, value)
                or (not was_forwarded and is_name(data, at, value, b"x-opt-deadletter-source", 23))
                or (data[value] == 0x40 and is_left_out_when_null(data, at, value))
            )
        if not is_left_out:
            put_bytes(to, data + at, behind - at)
            to.count += 2
        at = behind
    return 0 if at == items.end else NOWHERE


cdef inline int put_header(Outgoing* to, const uint8_t* data, int64_t start, int64_t end, const int64_t* row) noexcept nogil:
    cdef int64_t at[HEADER_FIELDS]
    cdef int64_t stop[HEADER_FIELDS]
    if fields_of(data, start, end, HEADER_FIELDS, at, stop) == NOWHERE:
        return NOWHERE
    open_out(to)
    put_field(to, data, at[0], stop[0])
    put_field(to, data, at[1], stop[1])
    if row[Q_TTL_MS] < 0:
        put_field(to, data, NOWHERE, NOWHERE)
    else:
        put_number(to, 0x70, min(row[Q_TTL_MS], <int64_t>0xFFFFFFFF), 4)
        field_done(to, False)
    put_field(to, data, at[3], stop[3])
    put_number(to, 0x70, row[Q_DELIVERY_COUNT], 4)
    field_done(to, False)
    close_list(to, HEADER)
    return 0


cdef inline int put_properties(
    Outgoing* to, const uint8_t* data, int64_t start, int64_t end, const int64_t* row, const uint8_t* id_prefix
) noexcept nogil:
    cdef int64_t at[PROPERTIES_FIELDS]
    cdef int64_t stop[PROPERTIES_FIELDS]
    cdef int index
    cdef uint64_t number
    if fields_of(data, start, end, PROPERTIES_FIELDS, at, stop) == NOWHERE:
        return NOWHERE
    open_out(to)
    if at[0] == NOWHERE or (stop[0] - at[0] == 1 and data[at[0]] == 0x40):
        to.bytes[to.size] = 0xA1
        to.bytes[to.size + 1] = 2 * ID_DIGITS
        to.size += 2
        put_bytes(to, id_prefix, ID_DIGITS)
        number = <uint64_t>row[Q_ID_NUMBER]
        for index in range(ID_DIGITS):
            to.bytes[to.size] = b"0123456789abcdef"[(number >> (4 * (ID_DIGITS - 1 - index))) & 15]
            to.size += 1
        field_done(to, False)
    else:
        put_field(to, data, at[0], stop[0])
    for index in range(1, PROPERTIES_FIELDS):
        if index != 8:
            put_field(to, data, at[index], stop[index])
        elif row[Q_EXPIRES_MS] < 0:
            put_field(to, data, NOWHERE, NOWHERE)
        else:
            put_number(to, 0x83, row[Q_EXPIRES_MS], 8)
            field_done(to, False)
    close_list(to, PROPERTIES)
    return 0


cdef inline int put_annotations(
    Outgoing* to, const uint8_t* data, Message* message, int64_t end, const int64_t* row
) noexcept nogil:
    """Append both sections of annotations, as far as something is in them."""
    cdef int64_t begun = to.size
    cdef bint was_forwarded = row[Q_ID_NUMBER] >> FORWARDED_BIT & 1
    open_out(to)
    if put_stored(to, data, message.at[DELIVERY_ANNOTATIONS - HEADER], end, True, was_forwarded) == NOWHERE:
        return NOWHERE
    if row[Q_LOCK]:
        put_bytes(to, b"\xa3\x10x-opt-lock-token\x98", 19)
        store64(to.bytes + to.size, <uint64_t>row[Q_LOCK])
        store64(to.bytes + to.size + 8, <uint64_t>row[Q_LOCK_CHECK])
        to.size += 16
        to.count += 2
    if to.count:
        close_out(to, DELIVERY_ANNOTATIONS, 0xC1)
    else:
        to.size = begun
    begun = to.size
    open_out(to)
    if row[Q_ENQUEUED_MS] >= 0:
        put_entry(to, b"x-opt-enqueued-time", 19, 0x83, row[Q_ENQUEUED_MS], 8)
    if row[Q_SEQUENCE_NUMBER] >= 0:
        put_entry(to, b"x-opt-sequence-number", 21, 0x81, row[Q_SEQUENCE_NUMBER], 8)
    if row[Q_ENQUEUE_NUMBER] >= 0:
        put_entry(to, b"x-opt-enqueue-sequence-number", 29, 0x81, row[Q_ENQUEUE_NUMBER], 8)
    if row[Q_LOCKED_UNTIL_MS] >= 0:
        put_entry(to, b"x-opt-locked-until", 18, 0x83, row[Q_LOCKED_UNTIL_MS], 8)
    if row[Q_STATE] > 0:
        put_entry(to, b"x-opt-message-state", 19, 0x71, row[Q_STATE], 4)
    if row[Q_PARTITION] >= 0:
        put_entry(to, b"x-opt-partition-id", 18, 0x61, row[Q_PARTITION], 2)
    if put_stored(to, data, message.at[MESSAGE_ANNOTATIONS - HEADER], end, False, was_forwarded) == NOWHERE:
        return NOWHERE
    if to.count:
        close_out(to, MESSAGE_ANNOTATIONS, 0xC1)
    else:
        to.size = begun
    return 0


cdef inline int write_message(
    const uint8_t* data, int64_t start, int64_t end, const int64_t* row, const uint8_t* id_prefix, Outgoing* to
) noexcept nogil:
    """Put the message data[start:end] together as it goes out; 0, or NOWHERE when it is no legal message."""
    cdef Message message
    cdef Section section
    cdef int64_t at = start
    to.size = 0
    if read_message(data, start, end, &message) == NOWHERE:
        return NOWHERE
    if put_header(to, data, message.at[0], end, row) == NOWHERE:
        return NOWHERE
    if put_annotations(to, data, &message, end, row) == NOWHERE:
        return NOWHERE
    if put_properties(to, data, message.at[PROPERTIES - HEADER], end, row, id_prefix) == NOWHERE:
        return NOWHERE
    while at < end:
        at = read_section(data, at, end, &section)
        if at == NOWHERE:
            return NOWHERE
        if section.code > PROPERTIES:
            put_bytes(to, data + section.start, section.end - section.start)
    return 0


cdef inline int64_t record_of(const uint8_t* data, int64_t size, int64_t at) noexcept nogil:
    """The end of the record at `at`, or NOWHERE when no record lies there."""
    cdef int64_t length
    if at < 0 or at > size - RECORD_HEADER_SIZE:
        return NOWHERE
    length = load32(data + at)
    return at + length if RECORD_HEADER_SIZE <= length <= size - at else NOWHERE


cdef inline void write_tag(uint8_t* to, const int64_t* row) noexcept nogil:
    """Write the delivery tag: the lock token as a GUID lies in memory, its first three groups turned round."""
    cdef uint8_t token[TAG_SIZE]
    store64(token, <uint64_t>row[Q_LOCK])
    store64(token + 8, <uint64_t>(row[Q_LOCK_CHECK] if row[Q_LOCK] else row[Q_SEQUENCE_NUMBER]))
    to[0] = token[3]
    to[1] = token[2]
    to[2] = token[1]
    to[3] = token[0]
    to[4] = token[5]
    to[5] = token[4]
    to[6] = token[7]
    to[7] = token[6]
    memcpy(to + 8, token + 8, 8)
