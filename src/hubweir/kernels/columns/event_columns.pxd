"""Delivered events as columns, compiled; the door in _columns.pyx walks the rows. The twin: event_columns.py."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcmp

from hubweir.kernels.columns.bodies cimport BODY_NONE, body_kind, put_body
from hubweir.kernels.buffers.bytes cimport NOWHERE, load64
from hubweir.kernels.columns.column_buffers cimport (
    Columns, end_map, end_text, has, has_room, put_number, put_validity,
)
from hubweir.kernels.columns_contract cimport *
from hubweir.kernels.contract cimport D_FORMAT, D_LENGTH, D_START, DELIVERY_WIDTH
from hubweir.kernels.messages.entries cimport Entry, next_entry, next_field, open_entries, open_fields
from hubweir.kernels.buffers.growing cimport put
from hubweir.kernels.messages.property_names cimport property_names, property_sizes
from hubweir.kernels.messages.sections cimport (
    APPLICATION_PROPERTIES, HEADER, PROPERTIES, Items, Message, Section, compound, read_message, read_section,
)
from hubweir.kernels.columns.strings cimport is_text, put_utf8
from hubweir.kernels.columns.text cimport put_value
from hubweir.kernels.messages.walk cimport content_of, step

cdef enum:
    NO_NAME = -1
    NAME_SEQUENCE_NUMBER = 0
    NAME_OFFSET = 1
    NAME_ENQUEUED_TIME = 2
    NAME_PARTITION_KEY = 3
    NAME_PUBLISHER = 4

cdef struct Text:
    # A range of the message; NOWHERE for none.
    int64_t start
    int64_t end

cdef struct Delivered:
    # What the service's annotations say, and how many others there are.
    Message message
    int64_t number
    int64_t time_ms
    Text offset
    Text key
    Text publisher
    int64_t others


cdef inline bint is_time(int64_t time_ms) noexcept nogil:
    """Whether a time in milliseconds is one in microseconds, too."""
    return -<int64_t>9223372036854775 <= time_ms <= <int64_t>9223372036854775


cdef inline int service_name(const uint8_t* name, int64_t size) noexcept nogil:
    """Which of the service's names this is."""
    if size < 12 or memcmp(name, b"x-opt-", 6) != 0:
        return NO_NAME
    if size == 21 and memcmp(name, b"x-opt-sequence-number", 21) == 0:
        return NAME_SEQUENCE_NUMBER
    if size == 12 and memcmp(name, b"x-opt-offset", 12) == 0:
        return NAME_OFFSET
    if size == 19 and memcmp(name, b"x-opt-enqueued-time", 19) == 0:
        return NAME_ENQUEUED_TIME
    if size == 19 and memcmp(name, b"x-opt-partition-key", 19) == 0:
        return NAME_PARTITION_KEY
    if size == 15 and memcmp(name, b"x-opt-publisher", 15) == 0:
        return NAME_PUBLISHER
    return NO_NAME


cdef inline int name_at(const uint8_t* data, int64_t at, int64_t end) noexcept nogil:
    """Which of the service's names the whole value data[at:end] is."""
    cdef int64_t start = 0, stop
    if not is_text(data[at]):
        return NO_NAME
    stop = content_of(data, at, end, &start)
    return service_name(data + start, stop - start)


cdef inline void take_annotation(const uint8_t* data, int name, int64_t value, int64_t end, Delivered* event, int* seen) noexcept nogil:
    """Keep a service's annotation when it has its type."""
    cdef uint8_t code = data[value]
    cdef Text* text
    if name == NAME_SEQUENCE_NUMBER:
        if code == 0x81 or code == 0x55:
            event.number = <int64_t>load64(data + value + 1) if code == 0x81 else <signed char>data[value + 1]
            seen[0] |= 1
    elif name == NAME_ENQUEUED_TIME:
        if code == 0x83:
            event.time_ms = <int64_t>load64(data + value + 1)
            seen[0] |= 2
    elif code == 0xA1 or code == 0xB1:
        text = &event.offset
        if name == NAME_OFFSET:
            seen[0] |= 4
        else:
            text = &event.key if name == NAME_PARTITION_KEY else &event.publisher
        text.end = content_of(data, value, end, &text.start)


cdef inline int open_delivered(const uint8_t* data, int64_t start, int64_t end, Delivered* event) noexcept nogil:
    """Fill event from the message data[start:end]; NOWHERE when it is none, or lacks what the service gives."""
    cdef Items items
    cdef int64_t at, value, behind
    cdef int name, seen = 0
    event.offset.start = event.offset.end = event.key.start = event.key.end = 0
    event.publisher.start = event.publisher.end = 0
    event.others = event.number = event.time_ms = 0
    if read_message(data, start, end, &event.message) == NOWHERE or event.message.annotations == NOWHERE:
        return NOWHERE
    if compound(data, event.message.annotations, event.message.annotations_end, &items) == NOWHERE:
        return NOWHERE
    at = items.start
    while at < items.end:
        value = step(data, at, items.end)
        if value == NOWHERE:
            return NOWHERE
        behind = step(data, value, items.end)
        if behind == NOWHERE:
            return NOWHERE
        name = name_at(data, at, value)
        if name == NO_NAME:
            event.others += 1
        else:
            take_annotation(data, name, value, behind, event, &seen)
        at = behind
    return 0 if seen == 7 and is_time(event.time_ms) else NOWHERE


cdef inline void put_text_value(Columns* columns, int buffer, const uint8_t* data, int64_t at, int64_t end) noexcept nogil:
    """One key or value of a map; buffer: its offsets."""
    cdef int64_t start = 0, stop
    if is_text(data[at]):
        stop = content_of(data, at, end, &start)
        put_utf8(&columns.buffers[buffer + 1], data + start, stop - start, False)
    else:
        put_value(&columns.buffers[buffer + 1], data, at, end, False)
    end_text(columns, buffer)


cdef inline void put_entries(Columns* columns, int entries, const uint8_t* data, int64_t at, int64_t end, bint others) noexcept nogil:
    """The entries of the map at `at` as far as they can be walked; others: without the service's names."""
    cdef Entry entry
    open_entries(data, at, end, &entry)
    while next_entry(data, &entry):
        if not others or name_at(data, entry.key, entry.value) == NO_NAME:
            put_text_value(columns, entries + 1, data, entry.key, entry.value)
            put_text_value(columns, entries + 3, data, entry.value, entry.stop)


cdef inline void put_properties(Columns* columns, const uint8_t* data, int64_t at, int64_t end) noexcept nogil:
    """The fields of the properties list at `at` that are not null, as far as they can be walked."""
    cdef Entry field
    open_fields(data, at, end, &field)
    while next_field(data, &field):
        put(&columns.buffers[SYSTEM_KEY_BYTES], property_names[field.index], property_sizes[field.index])
        end_text(columns, SYSTEM_KEY_OFFSETS)
        put_text_value(columns, SYSTEM_VALUE_OFFSETS, data, field.value, field.stop)


cdef inline void put_nullable(Columns* columns, int validity, const uint8_t* data, int64_t start, int64_t end) noexcept nogil:
    """A text or, when it is empty, null. Behind the validity stand offsets and bytes."""
    put_validity(columns, validity, end > start)
    if end > start:
        put_utf8(&columns.buffers[validity + 2], data + start, end - start, False)
    end_text(columns, validity + 1)


cdef inline void put_single(
    Columns* columns, const uint8_t* data, int64_t number, Text* offset, int64_t time_us, Text* key, Text* publisher
) noexcept nogil:
    """The columns that are one value each, but the body."""
    if has(columns, COLUMN_SEQUENCE_NUMBER):
        put_number(columns, SEQUENCE_NUMBERS, number)
    if has(columns, COLUMN_ENQUEUED_TIME):
        put_number(columns, ENQUEUED_TIMES, time_us)
    if has(columns, COLUMN_OFFSET):
        put_utf8(&columns.buffers[OFFSET_BYTES], data + offset.start, offset.end - offset.start, False)
        end_text(columns, OFFSET_OFFSETS)
    if has(columns, COLUMN_PARTITION_KEY):
        put_nullable(columns, PARTITION_KEY_VALIDITY, data, key.start, key.end)
    if has(columns, COLUMN_PUBLISHER):
        put_nullable(columns, PUBLISHER_VALIDITY, data, publisher.start, publisher.end)


cdef inline void put_event(Columns* columns, const uint8_t* data, int64_t start, int64_t end, Delivered* event) noexcept nogil:
    """Append the row of one event."""
    cdef Message* message = &event.message
    cdef Section section
    cdef int64_t body = 0, body_end = 0
    cdef int kind
    put_single(columns, data, event.number, &event.offset, event.time_ms * 1000, &event.key, &event.publisher)
    if has(columns, COLUMN_BODY):
        kind = body_kind(data, message, &body, &body_end)
        if kind != BODY_NONE:
            put_body(&columns.buffers[BODY_BYTES], data, start, end, kind, body, body_end)
        end_text(columns, BODY_OFFSETS)
    if has(columns, COLUMN_PROPERTIES):
        if message.at[APPLICATION_PROPERTIES - HEADER] != NOWHERE:
            read_section(data, message.at[APPLICATION_PROPERTIES - HEADER], end, &section)
            put_entries(columns, PROPERTIES_OFFSETS, data, section.value, section.end, False)
        end_map(columns, PROPERTIES_OFFSETS)
    if has(columns, COLUMN_SYSTEM_PROPERTIES):
        if event.others:
            put_entries(columns, SYSTEM_OFFSETS, data, message.annotations, message.annotations_end, True)
        if message.at[PROPERTIES - HEADER] != NOWHERE:
            read_section(data, message.at[PROPERTIES - HEADER], end, &section)
            put_properties(columns, data, section.value, section.end)
        end_map(columns, SYSTEM_OFFSETS)
    columns.rows += 1


cdef inline void columns_of(
    const uint8_t* data, int64_t* deliveries, int64_t* row, int64_t last, int64_t expected, int64_t until,
    Columns* columns, int64_t* span, int* status
) noexcept nogil:
    """Append rows[row[0]:last]; span: first, last, gap. Each delivery row is known to lie in data."""
    cdef Delivered event
    cdef int64_t* delivery
    cdef int64_t start, end, begun = row[0], size = 0
    cdef bint roomy
    status[0] = COLUMNS_OK
    for start in range(begun, last):
        size += deliveries[start * DELIVERY_WIDTH + D_LENGTH]
        if size > MOST_COLUMN_BYTES:
            break
    roomy = has_room(columns, size, last - begun)  # for all of them: then no row has to be asked about
    while row[0] < last:
        delivery = deliveries + row[0] * DELIVERY_WIDTH
        start = delivery[D_START]
        end = start + delivery[D_LENGTH]
        if delivery[D_FORMAT] != 0 or open_delivered(data, start, end, &event) == NOWHERE:
            status[0] = COLUMNS_MALFORMED
            return
        if until >= 0 and event.number >= until:
            status[0] = COLUMNS_UNTIL
            return
        if not roomy and not has_room(columns, end - start, 1):
            status[0] = COLUMNS_FULL
            return
        if span[2] < 0 and expected >= 0 and event.number != expected:
            span[2] = row[0]
        if row[0] == begun:
            span[0] = event.number
        span[1] = event.number
        expected = <int64_t>(<uint64_t>event.number + 1)
        put_event(columns, data, start, end, &event)
        row[0] += 1
