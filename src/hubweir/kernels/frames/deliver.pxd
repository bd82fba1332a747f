"""Find the pieces of a stored message as it goes out, and write what the service adds. The twin: deliver.py."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from hubweir.kernels.batches.batches cimport Batch
from hubweir.kernels.buffers.bytes cimport NOWHERE, load32, store32, store64
from hubweir.kernels.messages.sections cimport (
    DELIVERY_ANNOTATIONS, HEADER, MESSAGE_ANNOTATIONS, Items, Section, compound, is_spelled, read_section, skip_value,
    variable,
)
from hubweir.kernels.stored_batch cimport (
    ABSENT, AT_DELIVERY_ANNOTATIONS, AT_HEADER_END, AT_MESSAGE_ANNOTATIONS, FLAG_NAME_IS_KEY, FLAG_NAME_IS_PUBLISHER,
    RECORD_HEADER_SIZE,
)

cdef struct Range:
    int64_t start
    int64_t end

cdef struct Event:
    # One message as it goes out: pieces of the run, and what goes between them.
    Range header
    Range own              # its own delivery annotations
    Range rest[4]          # what is left between the sections that moved to the front
    Range kept             # entries of the stored message annotations, from which names are left out
    int64_t kept_count
    int64_t kept_size
    int64_t size
    int head_size
    uint8_t head[136]      # start of the message annotations: the service's three

cdef struct Name:
    # What the batch's name block adds to each event: one entry (key) or two (key and publisher) with the same text.
    int entries
    int64_t size
    Range text
    int key_size
    int publisher_size
    uint8_t key[32]
    uint8_t publisher[32]


cdef struct Inserted:
    # Delivery annotations that go out in the place of each event's own; size 0: its own stay.
    const uint8_t* bytes
    int64_t size


cdef inline int write_string(uint8_t* to, int64_t length) noexcept nogil:
    """Write the constructor and size of a string; return how many bytes that took."""
    if length <= 0xFF:
        to[0] = 0xA1
        to[1] = <uint8_t>length
        return 2
    to[0] = 0xB1
    store32(to + 1, <uint32_t>length)
    return 5


cdef inline int write_symbol(uint8_t* to, const char* name, int size) noexcept nogil:
    to[0] = 0xA3
    to[1] = <uint8_t>size
    memcpy(to + 2, name, <size_t>size)
    return 2 + size


cdef inline void open_name(const uint8_t* data, Batch* batch, Name* name) noexcept nogil:
    name.entries = 0
    name.size = 0
    if batch.name_length == 0 or not batch.flags & (FLAG_NAME_IS_KEY | FLAG_NAME_IS_PUBLISHER):
        return
    name.text.start = batch.name
    name.text.end = batch.name + batch.name_length
    name.key_size = write_symbol(name.key, b"x-opt-partition-key", 19)
    name.key_size += write_string(name.key + name.key_size, batch.name_length)
    name.entries = 1
    name.size = name.key_size + batch.name_length
    if batch.flags & FLAG_NAME_IS_PUBLISHER:
        name.publisher_size = write_symbol(name.publisher, b"x-opt-publisher", 15)
        name.publisher_size += write_string(name.publisher + name.publisher_size, batch.name_length)
        name.entries = 2
        name.size += name.publisher_size + batch.name_length


cdef inline bint is_replaced(const uint8_t* data, int64_t at, int64_t end, bint named) noexcept nogil:
    """Whether the key at `at` is a name that the service writes itself."""
    cdef int64_t start = 0
    cdef uint8_t code = data[at]
    if code != 0xA3 and code != 0xA1 and code != 0xB3 and code != 0xB1:
        return False
    variable(data, at, end, &start)
    if end - start == 12:
        return is_spelled(data, start, end, b"x-opt-offset", 12)
    if end - start == 15:
        return is_spelled(data, start, end, b"x-opt-publisher", 15)
    if end - start == 21:
        return is_spelled(data, start, end, b"x-opt-sequence-number", 21)
    if is_spelled(data, start, end, b"x-opt-enqueued-time", 19):
        return True
    return named and is_spelled(data, start, end, b"x-opt-partition-key", 19)


cdef inline int count_kept(const uint8_t* data, Section* stored, bint named, Event* event) noexcept nogil:
    """Count the stored annotations that go out unchanged; NOWHERE when they are no map that can be walked."""
    cdef Items items
    cdef int64_t at, value, behind
    cdef uint32_t left
    if compound(data, stored.value, stored.end, &items) == NOWHERE or items.count % 2:
        return NOWHERE
    at = items.start
    for left in range(items.count // 2):
        value = skip_value(data, at, items.end)
        if value == NOWHERE:
            return NOWHERE
        behind = skip_value(data, value, items.end)
        if behind == NOWHERE:
            return NOWHERE
        if not is_replaced(data, at, value, named):
            event.kept_count += 1
            event.kept_size += behind - at
        at = behind
    event.kept.start = items.start
    event.kept.end = items.end
    return 0 if at == items.end else NOWHERE



cdef inline int open_section(
    const uint8_t* data, int64_t record, int64_t end, int field, int code, Section* section
) noexcept nogil:
    """Open the section whose position stands in a field of the record header: 1, 0 when it is absent, NOWHERE."""
    cdef uint32_t position = load32(data + record + field)
    if position == <uint32_t>ABSENT:
        return 0
    if <int64_t>position > end - record - RECORD_HEADER_SIZE:
        return NOWHERE
    if read_section(data, record + RECORD_HEADER_SIZE + position, end, section) == NOWHERE or section.code != code:
        return NOWHERE
    return 1


cdef inline int open_header(const uint8_t* data, int64_t record, int64_t end, Range* header) noexcept nogil:
    """Find the header section. It is first unless a sender put others before it: then walk to it."""
    cdef int64_t at = record + RECORD_HEADER_SIZE, stop
    cdef uint32_t header_end = load32(data + record + AT_HEADER_END)
    cdef int field
    cdef bint first = True
    cdef Section section
    header.start = header.end = at
    if header_end == 0:
        return 0
    if <int64_t>header_end > end - at:
        return NOWHERE
    for field in range(AT_DELIVERY_ANNOTATIONS, RECORD_HEADER_SIZE, 4):
        if load32(data + record + field) < header_end:
            first = False
    stop = at + header_end
    if first:
        header.end = stop
        return 0
    while at < stop:
        if read_section(data, at, stop, &section) == NOWHERE:
            return NOWHERE
        if section.code == HEADER:
            header.start = at
            header.end = section.end
            return 0
        at = section.end
    return NOWHERE


cdef inline void swap_if_later(Range* one, Range* other) noexcept nogil:
    cdef Range kept = one[0]
    if one.start > other.start:
        one[0] = other[0]
        other[0] = kept


cdef inline int open_event(
    const uint8_t* data, int64_t record, int64_t end, Name* name, Inserted* inserted, Event* event
) noexcept nogil:
    """Find the pieces of the record's message; NOWHERE when the record is damaged."""
    cdef Range moved[3]
    cdef Section section
    cdef int64_t at = record + RECORD_HEADER_SIZE
    cdef int found, index, count = 0
    event.kept_count = event.kept_size = 0
    event.kept.start = event.kept.end = 0
    event.own.start = event.own.end = 0
    event.size = end - at
    if open_header(data, record, end, &event.header) == NOWHERE:
        return NOWHERE
    if event.header.end > event.header.start:
        moved[count] = event.header
        count += 1
    found = open_section(data, record, end, AT_DELIVERY_ANNOTATIONS, DELIVERY_ANNOTATIONS, &section)
    if found == NOWHERE:
        return NOWHERE
    if found:
        event.own.start = section.start
        event.own.end = section.end
        moved[count] = event.own
        count += 1
    found = open_section(data, record, end, AT_MESSAGE_ANNOTATIONS, MESSAGE_ANNOTATIONS, &section)
    if found == NOWHERE:
        return NOWHERE
    if found:
        if count_kept(data, &section, name.entries > 0, event) == NOWHERE:
            return NOWHERE
        moved[count].start = section.start
        moved[count].end = section.end
        event.size -= section.end - section.start
        count += 1
    if inserted.size > 0:
        event.size += inserted.size - (event.own.end - event.own.start)
    if count > 1:
        swap_if_later(&moved[0], &moved[1])
        if count > 2:
            swap_if_later(&moved[1], &moved[2])
            swap_if_later(&moved[0], &moved[1])
    for index in range(count):
        if moved[index].start < at:
            return NOWHERE
        event.rest[index].start = at
        event.rest[index].end = moved[index].start
        at = moved[index].end
    for index in range(count, 4):
        event.rest[index].start = at
        event.rest[index].end = end
        at = end
    return 0


cdef inline void write_head(Event* event, Name* name, uint64_t sequence_number, uint64_t offset, uint64_t time) noexcept nogil:
    """Write the start of the message annotations: section, map, and the service's three entries."""
    cdef uint8_t text[20]
    cdef int length = 0
    cdef int64_t content
    cdef int64_t count = 2 * (3 + name.entries + event.kept_count)
    cdef uint8_t* to = event.head
    while True:
        length += 1
        text[20 - length] = <uint8_t>(0x30 + offset % 10)
        offset = offset // 10
        if offset == 0:
            break
    # Keys of 21, 12 and 19 letters with their 2 bytes, a long, a string with its 2 bytes, a timestamp.
    content = 23 + 9 + 14 + 2 + length + 21 + 9 + name.size + event.kept_size
    memcpy(to, b"\x00\x53\x72", 3)
    if content + 1 <= 0xFF and count <= 0xFF:
        to[3] = 0xC1
        to[4] = <uint8_t>(content + 1)
        to[5] = <uint8_t>count
        to += 6
    else:
        to[3] = 0xD1
        store32(to + 4, <uint32_t>(content + 4))
        store32(to + 8, <uint32_t>count)
        to += 12
    memcpy(to, b"\xa3\x15x-opt-sequence-number\x81", 24)
    store64(to + 24, sequence_number)
    memcpy(to + 32, b"\xa3\x0cx-opt-offset\xa1", 15)
    to[47] = <uint8_t>length
    memcpy(to + 48, text + 20 - length, <size_t>length)
    to += 48 + length
    memcpy(to, b"\xa3\x13x-opt-enqueued-time\x83", 22)
    store64(to + 22, time)
    event.head_size = <int>(to + 30 - event.head)
    event.size += event.head_size + name.size + event.kept_size
