"""Stored events as columns, compiled; the door in _columns.pyx borrows the buffers. The twin: stored_columns.py.

A record's header says where its sections start, so only those that a wanted column needs are looked at. The batches
may come from a peer: every position is checked against its record before it is followed.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from hubweir.kernels.batches.batches cimport Batch, open_batch, record_end
from hubweir.kernels.columns.bodies cimport BODY_NONE, body_kind, put_body
from hubweir.kernels.buffers.bytes cimport NOWHERE
from hubweir.kernels.columns.column_buffers cimport MOST_NAMES, Columns, end_map, end_text, has, has_room, put_number
from hubweir.kernels.columns_contract cimport *
from hubweir.kernels.contract cimport BATCH_WIDTH, B_COUNT, B_POSITION
from hubweir.kernels.columns.decimals cimport write_unsigned
from hubweir.kernels.messages.entries cimport Entry, next_entry, open_entries
from hubweir.kernels.columns.event_columns cimport (
    NAME_PARTITION_KEY, NO_NAME, Text, is_time, name_at, put_entries, put_nullable, put_properties,
)
from hubweir.kernels.buffers.growing cimport put
from hubweir.kernels.frames.deliver cimport open_section
from hubweir.kernels.messages.sections cimport (
    APPLICATION_PROPERTIES, DATA, MESSAGE_ANNOTATIONS, PROPERTIES, Message, Section, read_message, variable,
)
from hubweir.kernels.stored_batch cimport (
    AT_APPLICATION_PROPERTIES, AT_BODY, AT_MESSAGE_ANNOTATIONS, AT_PROPERTIES, FLAG_NAME_IS_KEY,
    FLAG_NAME_IS_PUBLISHER, KIND_EVENTS, RECORD_HEADER_SIZE,
)
from hubweir.kernels.messages.walk cimport content_of

cdef struct Stored:
    # One event's sections that columns are made of; `code` 0: absent or not looked at.
    Section annotations
    Section properties
    Section application
    Message message      # of a body that is more than one data section
    Text body            # of one that is
    bint is_plain


cdef inline int read_wanted(
    const uint8_t* data, int64_t record, int64_t end, bint wanted, int field, int code, Section* section
) noexcept nogil:
    cdef int found
    section.code = 0
    if not wanted:
        return 0
    found = open_section(data, record, end, field, code, section)
    if found == 0:
        section.code = 0
    return found


cdef inline int open_body(const uint8_t* data, int64_t record, int64_t end, Stored* event) noexcept nogil:
    """Find the body: as a range where it is one data section that ends the message, else by reading all of it."""
    cdef Section section
    event.is_plain = open_section(data, record, end, AT_BODY, DATA, &section) == 1 and section.end == end
    if event.is_plain:
        event.body.end = variable(data, section.value, section.end, &event.body.start)
        return 0 if event.body.end == end else NOWHERE
    return read_message(data, record + RECORD_HEADER_SIZE, end, &event.message)


cdef inline int open_stored(
    const uint8_t* data, int64_t record, int64_t end, Columns* columns, bint named, Stored* event
) noexcept nogil:
    """Find the sections that the columns need; NOWHERE when one is not where the record says, or is none."""
    cdef bint system = has(columns, COLUMN_SYSTEM_PROPERTIES)
    cdef bint annotations = system or (has(columns, COLUMN_PARTITION_KEY) and not named)
    if read_wanted(
        data, record, end, annotations, AT_MESSAGE_ANNOTATIONS, MESSAGE_ANNOTATIONS, &event.annotations
    ) == NOWHERE:
        return NOWHERE
    if read_wanted(data, record, end, system, AT_PROPERTIES, PROPERTIES, &event.properties) == NOWHERE:
        return NOWHERE
    if read_wanted(
        data, record, end, has(columns, COLUMN_PROPERTIES), AT_APPLICATION_PROPERTIES, APPLICATION_PROPERTIES,
        &event.application,
    ) == NOWHERE:
        return NOWHERE
    if has(columns, COLUMN_BODY):
        return open_body(data, record, end, event)
    return 0


cdef inline void find_key(const uint8_t* data, Section* annotations, Text* key) noexcept nogil:
    """The sender's own partition key: the last one that is a string."""
    cdef Entry entry
    open_entries(data, annotations.value, annotations.end, &entry)
    while next_entry(data, &entry):
        if data[entry.value] == 0xA1 or data[entry.value] == 0xB1:
            if name_at(data, entry.key, entry.value) == NAME_PARTITION_KEY:
                key.end = content_of(data, entry.value, entry.stop, &key.start)


cdef inline void put_stored_body(Columns* columns, const uint8_t* data, int64_t start, int64_t end, Stored* event) noexcept nogil:
    cdef int64_t body = 0, body_end = 0
    cdef int kind
    if event.is_plain:
        put(&columns.buffers[BODY_BYTES], data + event.body.start, event.body.end - event.body.start)
    else:
        kind = body_kind(data, &event.message, &body, &body_end)
        if kind != BODY_NONE:
            put_body(&columns.buffers[BODY_BYTES], data, start, end, kind, body, body_end)
    end_text(columns, BODY_OFFSETS)


cdef inline void put_stored(
    Columns* columns, const uint8_t* data, Batch* batch, int64_t record, int64_t end, int64_t number, bint named,
    Stored* event
) noexcept nogil:
    """Append the row of one event."""
    cdef uint8_t digits[20]
    cdef Text key
    if has(columns, COLUMN_SEQUENCE_NUMBER):
        put_number(columns, SEQUENCE_NUMBERS, number)
    if has(columns, COLUMN_ENQUEUED_TIME):
        put_number(columns, ENQUEUED_TIMES, <int64_t>batch.enqueued_time * 1000)
    if has(columns, COLUMN_OFFSET):
        put(
            &columns.buffers[OFFSET_BYTES], digits,
            write_unsigned(digits, batch.first_offset + <uint64_t>(record - batch.records)),
        )
        end_text(columns, OFFSET_OFFSETS)
    key.start = key.end = 0
    if named:
        key.start = batch.name
        key.end = batch.name + batch.name_length
    elif has(columns, COLUMN_PARTITION_KEY) and event.annotations.code:
        find_key(data, &event.annotations, &key)
    if has(columns, COLUMN_PARTITION_KEY):
        put_nullable(columns, PARTITION_KEY_VALIDITY, data, key.start, key.end)
    if has(columns, COLUMN_PUBLISHER):
        if not batch.flags & FLAG_NAME_IS_PUBLISHER or not named:
            key.end = key.start
        put_nullable(columns, PUBLISHER_VALIDITY, data, key.start, key.end)
    if has(columns, COLUMN_BODY):
        put_stored_body(columns, data, record + RECORD_HEADER_SIZE, end, event)
    if has(columns, COLUMN_PROPERTIES):
        if event.application.code:
            put_entries(columns, PROPERTIES_OFFSETS, data, event.application.value, event.application.end, False)
        end_map(columns, PROPERTIES_OFFSETS)
    if has(columns, COLUMN_SYSTEM_PROPERTIES):
        if event.annotations.code:
            put_entries(columns, SYSTEM_OFFSETS, data, event.annotations.value, event.annotations.end, True)
        if event.properties.code:
            put_properties(columns, data, event.properties.value, event.properties.end)
        end_map(columns, SYSTEM_OFFSETS)
    columns.rows += 1


cdef inline int batch_columns(
    const uint8_t* data, Batch* batch, int64_t* row, int64_t base, int64_t last, int64_t* expected, int64_t until,
    Columns* columns, int64_t* span, bint roomy
) noexcept nogil:
    """Append the events of one batch, whose first is row `base`, from row[0] to last; a status."""
    cdef Stored event
    cdef int64_t at = batch.records, stop, number, ordinal = 0
    cdef bint named = batch.name_length != 0 and batch.flags & (FLAG_NAME_IS_KEY | FLAG_NAME_IS_PUBLISHER) != 0
    while row[0] < last and row[0] - base < batch.count:
        stop = record_end(data, at, batch)
        if stop == NOWHERE:
            return COLUMNS_MALFORMED
        if base + ordinal == row[0]:
            number = <int64_t>(batch.first_index + <uint64_t>ordinal)
            if open_stored(data, at, stop, columns, named, &event) == NOWHERE:
                return COLUMNS_MALFORMED
            if until >= 0 and number >= until:
                return COLUMNS_UNTIL
            if not roomy and not has_room(columns, stop - at + batch.name_length, 1):
                return COLUMNS_FULL
            if span[2] < 0 and expected[0] >= 0 and number != expected[0]:
                span[2] = row[0]
            if span[3] == 0:
                span[0] = number
                span[3] = 1
            span[1] = number
            expected[0] = <int64_t>(<uint64_t>number + 1)
            put_stored(columns, data, batch, at, stop, number, named, &event)
            row[0] += 1
        at = stop
        ordinal += 1
    return COLUMNS_OK


cdef inline int stored_rows(
    const uint8_t* data, int64_t size, const int64_t* batches, int64_t count, int64_t* row, int64_t last,
    int64_t expected, int64_t until, Columns* columns, int64_t* span
) noexcept nogil:
    """Append the events row[0] to last of the batches; span: first, last, gap, whether there is one. A status."""
    cdef Batch batch
    cdef int64_t place, rows, base = 0
    cdef int status
    cdef bint roomy
    for place in range(count):
        if row[0] >= last:
            break
        if open_batch(data, size, batches[place * BATCH_WIDTH + B_POSITION], &batch) == NOWHERE:
            return COLUMNS_MALFORMED
        if batch.kind != KIND_EVENTS or not is_time(<int64_t>batch.enqueued_time):
            return COLUMNS_MALFORMED
        batch.count = batches[place * BATCH_WIDTH + B_COUNT]
        if row[0] < base + batch.count:
            # Of the whole batch at once, its name once a row: then no row has to be asked about.
            rows = min(base + batch.count, last) - row[0]
            roomy = rows <= MOST_COLUMN_BYTES // MOST_NAMES and has_room(
                columns, batch.end - batch.records + rows * batch.name_length, rows
            )
            status = batch_columns(data, &batch, row, base, last, &expected, until, columns, span, roomy)
            if status != COLUMNS_OK:
                return status
        base += batch.count
    return COLUMNS_OK
