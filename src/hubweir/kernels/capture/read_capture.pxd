"""Avro records of Capture as columns, compiled; the door is in _capture.pyx. The twin: read_capture.py."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcmp

from hubweir.kernels.capture.avro cimport BYTES, DOUBLE, LONG, STRING, load_double_little, read_long, read_octets
from hubweir.kernels.buffers.bytes cimport NOWHERE, take
from hubweir.kernels.columns.column_buffers cimport Columns, end_map, end_text, has, has_room
from hubweir.kernels.columns_contract cimport *
from hubweir.kernels.columns.decimals cimport write_signed
from hubweir.kernels.columns.event_columns cimport (
    NAME_ENQUEUED_TIME, NAME_PARTITION_KEY, NAME_PUBLISHER, NO_NAME, Text, is_time, put_single, service_name,
)
from hubweir.kernels.buffers.growing cimport Out, put
from hubweir.kernels.columns.scalars cimport put_double
from hubweir.kernels.columns.strings cimport put_base64, put_utf8
from hubweir.kernels.columns.times cimport read_time

cdef struct Value:
    # A value of the union: its branch, a long, or a range.
    int64_t kind
    int64_t number
    int64_t start
    int64_t end

cdef struct Spelled:
    # A time and how it was spelled: all events of a stored batch have the same one. size 0: none yet.
    const uint8_t* text
    int64_t size
    int64_t time_ms

cdef struct Record:
    # One record: where its parts are, and what SystemProperties says of the service's names. spelled outlives it.
    Spelled* spelled
    int64_t number
    int64_t time_ms
    bint timed
    Text offset
    Text told
    Text key
    Text publisher
    int64_t system
    int64_t properties
    Text body
    int64_t end


cdef inline int64_t read_value(const uint8_t* data, int64_t at, int64_t end, Value* value) noexcept nogil:
    at = read_long(data, at, end, &value.kind)
    if at == NOWHERE:
        return NOWHERE
    if value.kind == LONG:
        return read_long(data, at, end, &value.number)
    if value.kind == DOUBLE:
        value.start = at
        return take(at, 8, end)
    if value.kind == STRING or value.kind == BYTES:
        value.end = read_octets(data, at, end, &value.start)
        return value.end
    return NOWHERE


cdef inline bint spells_time(const uint8_t* text, int64_t size, Spelled* last, int64_t* time_ms) noexcept nogil:
    """read_time, but for a text that was read just before."""
    if size == last.size and size > 0 and memcmp(text, last.text, <size_t>size) == 0:
        time_ms[0] = last.time_ms
        return True
    if not read_time(text, size, time_ms):
        return False
    last.text = text
    last.size = size
    last.time_ms = time_ms[0]
    return True


cdef inline void take_named(const uint8_t* data, int name, Value* value, Record* record) noexcept nogil:
    """Keep what SystemProperties says of a service's name; the last one that fits counts."""
    cdef int64_t time_ms = 0
    if name == NAME_ENQUEUED_TIME:
        if value.kind == LONG and is_time(value.number):
            record.time_ms = value.number
            record.timed = True
        elif value.kind == STRING and spells_time(
            data + value.start, value.end - value.start, record.spelled, &time_ms
        ):
            record.time_ms = time_ms
            record.timed = True
    elif value.kind == STRING:
        if name == NAME_PARTITION_KEY:
            record.key.start, record.key.end = value.start, value.end
        elif name == NAME_PUBLISHER:
            record.publisher.start, record.publisher.end = value.start, value.end


cdef inline int64_t walk_map(
    const uint8_t* data, int64_t at, int64_t end, Record* record, Columns* columns, int entries, bint named
) noexcept nogil:
    """The position behind the map at `at`, or NOWHERE. record: keep what its service's names say. columns: append its
    entries, those without a service's name when named.
    """
    cdef int64_t count = 0, start = 0, stop, ignored
    cdef uint64_t left
    cdef Value value
    cdef int name = NO_NAME
    value.number = value.start = value.end = 0
    while True:
        at = read_long(data, at, end, &count)
        if at == NOWHERE:
            return NOWHERE
        if count == 0:
            return at
        left = <uint64_t>count
        if count < 0:  # its size in bytes follows
            left = <uint64_t>0 - left
            at = read_long(data, at, end, &ignored)
            if at == NOWHERE:
                return NOWHERE
        while left:
            left -= 1
            stop = read_octets(data, at, end, &start)
            if stop == NOWHERE:
                return NOWHERE
            at = read_value(data, stop, end, &value)
            if at == NOWHERE:
                return NOWHERE
            if named:
                name = service_name(data + start, stop - start)
            if record != NULL and name != NO_NAME:
                take_named(data, name, &value, record)
            elif columns != NULL and name == NO_NAME:
                put_utf8(&columns.buffers[entries + 2], data + start, stop - start, False)
                end_text(columns, entries + 1)
                put_text_of(&columns.buffers[entries + 4], data, &value)
                end_text(columns, entries + 3)


cdef inline void put_text_of(Out* out, const uint8_t* data, Value* value) noexcept nogil:
    cdef uint8_t digits[20]
    if value.kind == LONG:
        put(out, digits, write_signed(digits, value.number))
    elif value.kind == DOUBLE:
        put_double(out, load_double_little(data + value.start), False)
    elif value.kind == STRING:
        put_utf8(out, data + value.start, value.end - value.start, False)
    else:
        put_base64(out, data + value.start, value.end - value.start, False)


cdef inline int open_record(const uint8_t* data, int64_t at, int64_t end, Record* record) noexcept nogil:
    """Fill record from the one at `at`; NOWHERE when it is none."""
    cdef int64_t kind = 0
    record.timed = False
    record.key.start = record.key.end = record.publisher.start = record.publisher.end = 0
    record.body.start = record.body.end = 0
    at = read_long(data, at, end, &record.number)
    if at == NOWHERE:
        return NOWHERE
    at = record.offset.end = read_octets(data, at, end, &record.offset.start)
    if at == NOWHERE:
        return NOWHERE
    at = record.told.end = read_octets(data, at, end, &record.told.start)
    if at == NOWHERE:
        return NOWHERE
    record.system = at
    at = walk_map(data, at, end, record, NULL, 0, True)
    if at == NOWHERE:
        return NOWHERE
    record.properties = at
    at = walk_map(data, at, end, NULL, NULL, 0, False)
    if at == NOWHERE:
        return NOWHERE
    at = read_long(data, at, end, &kind)
    if at == NOWHERE or kind < 0 or kind > 1:
        return NOWHERE
    if kind == 1:
        at = record.body.end = read_octets(data, at, end, &record.body.start)
        if at == NOWHERE:
            return NOWHERE
    record.end = at
    if record.timed:
        return 0
    if spells_time(data + record.told.start, record.told.end - record.told.start, record.spelled, &record.time_ms):
        return 0
    return NOWHERE


cdef inline void put_captured(Columns* columns, const uint8_t* data, Record* record) noexcept nogil:
    """Append the row of one record."""
    put_single(columns, data, record.number, &record.offset, record.time_ms * 1000, &record.key, &record.publisher)
    if has(columns, COLUMN_BODY):
        put(&columns.buffers[BODY_BYTES], data + record.body.start, record.body.end - record.body.start)
        end_text(columns, BODY_OFFSETS)
    if has(columns, COLUMN_PROPERTIES):
        walk_map(data, record.properties, record.end, NULL, columns, PROPERTIES_OFFSETS, False)
        end_map(columns, PROPERTIES_OFFSETS)
    if has(columns, COLUMN_SYSTEM_PROPERTIES):
        walk_map(data, record.system, record.end, NULL, columns, SYSTEM_OFFSETS, True)
        end_map(columns, SYSTEM_OFFSETS)
    columns.rows += 1


cdef inline int read_records(
    const uint8_t* data, int64_t* at, int64_t end, int64_t count, int64_t since, int64_t until, Columns* columns,
    int64_t* counts
) noexcept nogil:
    """Read records from at[0] on; counts: records read, rows taken, first and last sequence number. A status."""
    cdef Record record
    cdef Spelled spelled
    spelled.size = 0
    record.spelled = &spelled
    while counts[0] < count:
        if open_record(data, at[0], end, &record) == NOWHERE:
            return COLUMNS_MALFORMED
        if since <= record.time_ms < until:
            if not has_room(columns, record.end - at[0], 1):
                return COLUMNS_FULL
            if counts[1] == 0:
                counts[2] = record.number
            counts[1] += 1
            counts[3] = record.number
            put_captured(columns, data, &record)
        counts[0] += 1
        at[0] = record.end
    return COLUMNS_OK if at[0] == end else COLUMNS_MALFORMED
