"""Stored events as Avro records of Capture, compiled; the door in _capture.pyx walks the run. The twin: capture_block.py."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from hubweir.kernels.capture.avro cimport (
    BYTES, DOUBLE, LONG, STRING, Entries, begin_entry, begin_map, begin_octets, end_map, end_octets,
    put_double_little, put_long, put_octets,
)
from hubweir.kernels.batches.batches cimport Batch
from hubweir.kernels.columns.bodies cimport BODY_NONE, BODY_RANGE, body_kind, put_body
from hubweir.kernels.buffers.bytes cimport NOWHERE
from hubweir.kernels.columns.decimals cimport write_unsigned
from hubweir.kernels.messages.entries cimport Entry, next_entry, next_field, open_entries, open_fields
from hubweir.kernels.buffers.growing cimport Out
from hubweir.kernels.columns.event_columns cimport NAME_PARTITION_KEY, NO_NAME, name_at
from hubweir.kernels.messages.property_names cimport property_names, property_sizes
from hubweir.kernels.columns.scalars cimport load_double, load_integer
from hubweir.kernels.messages.sections cimport (
    APPLICATION_PROPERTIES, HEADER, PROPERTIES, Message, Section, read_message, read_section,
)
from hubweir.kernels.stored_batch cimport FLAG_NAME_IS_KEY, FLAG_NAME_IS_PUBLISHER, RECORD_HEADER_SIZE
from hubweir.kernels.columns.strings cimport is_ascii, is_binary, is_text, is_utf8, put_utf8
from hubweir.kernels.columns.text cimport put_value, undescribed
from hubweir.kernels.columns.times cimport TIME_SIZE, write_time, write_us_time
from hubweir.kernels.messages.walk cimport content_of

cdef struct Times:
    # A batch's enqueued time, spelled once for all of its events.
    int us_size
    int iso_size
    uint8_t us[TIME_SIZE]
    uint8_t iso[TIME_SIZE]


cdef inline void open_times(Times* times, int64_t time_ms) noexcept nogil:
    times.us_size = write_us_time(times.us, time_ms)
    times.iso_size = write_time(times.iso, time_ms)


cdef inline void put_text(Out* out, const uint8_t* data, int64_t at, int64_t end) noexcept nogil:
    """The text of the whole value data[at:end] as an Avro string."""
    cdef int64_t start = 0, stop, begun
    if is_text(data[at]):
        stop = content_of(data, at, end, &start)
        if is_ascii(data + start, stop - start) or is_utf8(data + start, stop - start):
            put_octets(out, data + start, stop - start)
            return
    begun = begin_octets(out)
    put_value(out, data, at, end, False)
    end_octets(out, begun)


cdef inline void put_union(Out* out, const uint8_t* data, int64_t at, int64_t end) noexcept nogil:
    """The whole value data[at:end] as a branch of the union of map values."""
    cdef int64_t start = undescribed(data, at, end), content = 0, stop
    cdef int code = data[start], kind
    cdef uint64_t number = 0
    if code == 0x41 or code == 0x42 or code == 0x56:
        put_long(out, LONG)
        put_long(out, 1 if code == 0x41 or (code == 0x56 and data[start + 1] != 0) else 0)
        return
    kind = load_integer(data + start + 1, code, &number)
    if kind == 1 or (kind == 0 and number <= <uint64_t>0x7FFFFFFFFFFFFFFF):
        put_long(out, LONG)
        put_long(out, <int64_t>number)
    elif code == 0x72 or code == 0x82:
        put_long(out, DOUBLE)
        put_double_little(out, load_double(data + start + 1, code))
    elif is_binary(code):
        stop = content_of(data, start, end, &content)
        put_long(out, BYTES)
        put_octets(out, data + content, stop - content)
    else:
        put_long(out, STRING)
        put_text(out, data, at, end)


cdef inline void put_named(Out* out, Entries* entries, const char* name, int64_t size) noexcept nogil:
    begin_entry(out, entries)
    put_octets(out, <const uint8_t*>name, size)


cdef inline void put_map_entries(
    Out* out, Entries* entries, const uint8_t* data, int64_t at, int64_t end, bint stored, bint named
) noexcept nogil:
    """The entries of the map at `at` as far as they can be walked; stored: without the service's names."""
    cdef Entry entry
    cdef int name
    open_entries(data, at, end, &entry)
    while next_entry(data, &entry):
        name = name_at(data, entry.key, entry.value) if stored else NO_NAME
        if name == NO_NAME or (name == NAME_PARTITION_KEY and not named):
            begin_entry(out, entries)
            put_text(out, data, entry.key, entry.value)
            put_union(out, data, entry.value, entry.stop)


cdef inline void put_property_fields(Out* out, Entries* entries, const uint8_t* data, int64_t at, int64_t end) noexcept nogil:
    cdef Entry field
    open_fields(data, at, end, &field)
    while next_field(data, &field):
        put_named(out, entries, property_names[field.index], property_sizes[field.index])
        put_union(out, data, field.value, field.stop)


cdef inline void put_name_text(Out* out, const uint8_t* data, Batch* batch) noexcept nogil:
    """The text of the name block as a string of the union."""
    cdef int64_t begun
    put_long(out, STRING)
    begun = begin_octets(out)
    put_utf8(out, data + batch.name, batch.name_length, False)
    end_octets(out, begun)


cdef inline void put_system(
    Out* out, const uint8_t* data, Batch* batch, Times* times, Message* message, int64_t end, int64_t number,
    const uint8_t* offset, int offset_size
) noexcept nogil:
    """The map SystemProperties."""
    cdef Entries entries
    cdef Section section
    cdef bint named = batch.name_length != 0 and batch.flags & (FLAG_NAME_IS_KEY | FLAG_NAME_IS_PUBLISHER)
    begin_map(&entries)
    put_named(out, &entries, b"x-opt-sequence-number", 21)
    put_long(out, LONG)
    put_long(out, number)
    put_named(out, &entries, b"x-opt-offset", 12)
    put_long(out, STRING)
    put_octets(out, offset, offset_size)
    put_named(out, &entries, b"x-opt-enqueued-time", 19)
    put_long(out, STRING)
    put_octets(out, times.iso, times.iso_size)
    if named:
        put_named(out, &entries, b"x-opt-partition-key", 19)
        put_name_text(out, data, batch)
        if batch.flags & FLAG_NAME_IS_PUBLISHER:
            put_named(out, &entries, b"x-opt-publisher", 15)
            put_name_text(out, data, batch)
    if message.annotations != NOWHERE:
        put_map_entries(out, &entries, data, message.annotations, message.annotations_end, True, named)
    if message.at[PROPERTIES - HEADER] != NOWHERE:
        read_section(data, message.at[PROPERTIES - HEADER], end, &section)
        put_property_fields(out, &entries, data, section.value, section.end)
    end_map(out, &entries)


cdef inline void put_captured_body(Out* out, const uint8_t* data, Message* message, int64_t at, int64_t end) noexcept nogil:
    """The field Body: null, or bytes."""
    cdef int64_t start = 0, stop = 0, begun
    cdef int kind = body_kind(data, message, &start, &stop)
    if kind == BODY_NONE:
        put_long(out, 0)
        return
    put_long(out, 1)
    if kind == BODY_RANGE:
        put_octets(out, data + start, stop - start)
        return
    begun = begin_octets(out)
    put_body(out, data, at, end, kind, start, stop)
    end_octets(out, begun)


cdef inline int put_record(
    Out* out, const uint8_t* data, Batch* batch, Times* times, int64_t record, int64_t end, int64_t number
) noexcept nogil:
    """Append the Avro record of the stored record data[record:end]; NOWHERE when it holds no legal message."""
    cdef Message message
    cdef Entries entries
    cdef Section section
    cdef uint8_t offset[20]
    cdef int offset_size
    cdef int64_t at = record + RECORD_HEADER_SIZE
    if read_message(data, at, end, &message) == NOWHERE:
        return NOWHERE
    offset_size = write_unsigned(offset, batch.first_offset + <uint64_t>(record - batch.records))
    put_long(out, number)
    put_octets(out, offset, offset_size)
    put_octets(out, times.us, times.us_size)
    put_system(out, data, batch, times, &message, end, number, offset, offset_size)
    begin_map(&entries)
    if message.at[APPLICATION_PROPERTIES - HEADER] != NOWHERE:
        read_section(data, message.at[APPLICATION_PROPERTIES - HEADER], end, &section)
        put_map_entries(out, &entries, data, section.value, section.end, False, False)
    end_map(out, &entries)
    put_captured_body(out, data, &message, at, end)
    return 0
