"""Turn deliveries into event records, compiled; the door in _messages.pyx walks the rows."""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcmp, memcpy

from hubweir.kernels.buffers.bytes cimport NOWHERE, store32
from hubweir.kernels.contract cimport (
    BATCH_FORMAT, INGEST_DONE, INGEST_MALFORMED, INGEST_NAME, INGEST_PROPERTIES, INGEST_ROOM, KEY_ENVELOPE, KEY_MALFORMED,
    KEY_MESSAGE, KEY_NONE, PROPERTIES_LIMIT, PROPERTY_LIMIT,
)
from hubweir.kernels.messages.sections cimport (
    APPLICATION_PROPERTIES, DATA, DELIVERY_ANNOTATIONS, FOOTER, HEADER, MESSAGE_ANNOTATIONS, PROPERTIES, Items, Message,
    Section, compound, is_name, read_message, read_section, skip_value, variable,
)
from hubweir.kernels.stored_batch cimport (
    ABSENT, AT_APPLICATION_PROPERTIES, AT_BODY, AT_DELIVERY_ANNOTATIONS, AT_FOOTER, AT_HEADER_END,
    AT_MESSAGE_ANNOTATIONS, AT_PROPERTIES, AT_RECORD_LENGTH, RECORD_HEADER_SIZE,
)

cdef enum:
    GROW = -1  # more space is needed in out; not a status, the wrapper grows it and goes on

cdef struct Records:
    # The end of out while records are appended: what was there before the call, what is used, what there is.
    uint8_t* out
    int64_t begun
    int64_t used
    int64_t capacity
    int64_t room
    int64_t needed
    int64_t events


cdef inline uint32_t position(int64_t at, int64_t start) noexcept nogil:
    return <uint32_t>ABSENT if at == NOWHERE else <uint32_t>(at - start)


cdef inline int check_entries(const uint8_t* data, int64_t at, int64_t end, bint is_map) noexcept nogil:
    """INGEST_DONE when nothing in the section at `at` is over PROPERTY_LIMIT, INGEST_PROPERTIES or INGEST_MALFORMED."""
    cdef Section section
    cdef Items items
    cdef int64_t behind
    cdef uint32_t left
    if read_section(data, at, end, &section) == NOWHERE:
        return INGEST_MALFORMED
    if section.end - section.start <= PROPERTY_LIMIT:
        return INGEST_DONE
    if compound(data, section.value, section.end, &items) == NOWHERE or (is_map and items.count % 2):
        return INGEST_MALFORMED
    left = items.count
    at = items.start
    while left:
        behind = skip_value(data, at, items.end)
        if behind != NOWHERE and is_map:
            behind = skip_value(data, behind, items.end)
            left -= 1
        if behind == NOWHERE:
            return INGEST_MALFORMED
        if behind - at > PROPERTY_LIMIT:
            return INGEST_PROPERTIES
        left -= 1
        at = behind
    return INGEST_DONE


cdef inline int check_properties(const uint8_t* data, int64_t end, Message* message) noexcept nogil:
    """As check_entries, for a message; called where its properties have over PROPERTY_LIMIT bytes together."""
    cdef int code, status
    if message.properties_bytes > PROPERTIES_LIMIT:
        return INGEST_PROPERTIES
    for code in range(MESSAGE_ANNOTATIONS, APPLICATION_PROPERTIES + 1):
        if message.at[code - HEADER] != NOWHERE:
            status = check_entries(data, message.at[code - HEADER], end, code != PROPERTIES)
            if status != INGEST_DONE:
                return status
    return INGEST_DONE


cdef inline int append_record(const uint8_t* data, int64_t start, int64_t end, Records* records) noexcept nogil:
    """Append the record of the message data[start:end]; a status of ingest, or GROW."""
    cdef int64_t size = RECORD_HEADER_SIZE + (end - start), written = records.used - records.begun
    cdef Message message
    cdef uint8_t* to
    cdef int status
    if written > 0 and size > records.room - written:
        return INGEST_ROOM
    if size >= <int64_t><uint32_t>ABSENT:
        return INGEST_MALFORMED
    if size > records.capacity - records.used:
        records.needed = size
        return GROW
    if read_message(data, start, end, &message) == NOWHERE:
        return INGEST_MALFORMED
    if message.properties_bytes > PROPERTY_LIMIT:
        status = check_properties(data, end, &message)
        if status != INGEST_DONE:
            return status
    to = records.out + records.used
    store32(to + AT_RECORD_LENGTH, <uint32_t>size)
    store32(to + AT_HEADER_END, 0 if message.header_end == NOWHERE else <uint32_t>(message.header_end - start))
    store32(to + AT_DELIVERY_ANNOTATIONS, position(message.at[DELIVERY_ANNOTATIONS - HEADER], start))
    store32(to + AT_MESSAGE_ANNOTATIONS, position(message.at[MESSAGE_ANNOTATIONS - HEADER], start))
    store32(to + AT_PROPERTIES, position(message.at[PROPERTIES - HEADER], start))
    store32(to + AT_APPLICATION_PROPERTIES, position(message.at[APPLICATION_PROPERTIES - HEADER], start))
    store32(to + AT_BODY, position(message.body, start))
    store32(to + AT_FOOTER, position(message.at[FOOTER - HEADER], start))
    memcpy(to + RECORD_HEADER_SIZE, data + start, <size_t>(end - start))
    records.used += size
    records.events += 1
    return INGEST_DONE


cdef inline int append_envelope(const uint8_t* data, int64_t* at, int64_t end, Records* records) noexcept nogil:
    """Append a record for each data section from at[0] on; at[0] moves to the first section not finished."""
    cdef Section section
    cdef int64_t start = 0, stop
    cdef int status
    while at[0] < end:
        stop = read_section(data, at[0], end, &section)
        if stop == NOWHERE:
            return INGEST_MALFORMED
        if section.code == DATA:
            if variable(data, section.value, stop, &start) == NOWHERE:
                return INGEST_MALFORMED
            status = append_record(data, start, stop, records)
            if status != INGEST_DONE:
                return status
        at[0] = stop
    return INGEST_DONE


cdef inline int open_envelope(
    const uint8_t* data, int64_t start, int64_t end, int64_t message_format, Message* message
) noexcept nogil:
    """Read the sections of a delivery: its envelope's, or those of the single message that it is."""
    if message_format != 0 and message_format != <int64_t><uint32_t>BATCH_FORMAT:
        return NOWHERE
    if read_message(data, start, end, message) == NOWHERE:
        return NOWHERE
    if message_format != 0 and message.body != NOWHERE and message.data_count == 0:
        return NOWHERE
    return 0


cdef inline int key_of(const uint8_t* data, Message* message, int64_t* start, int64_t* end) noexcept nogil:
    """1 and where the text of the partition key is; 0 when it is absent, null or empty; NOWHERE for no string."""
    cdef Items items
    cdef int64_t at, value, behind
    if message.annotations == NOWHERE:
        return 0
    if compound(data, message.annotations, message.annotations_end, &items) == NOWHERE:
        return NOWHERE
    at = items.start
    while at < items.end:
        value = skip_value(data, at, items.end)
        if value == NOWHERE:
            return NOWHERE
        behind = skip_value(data, value, items.end)
        if behind == NOWHERE:
            return NOWHERE
        if is_name(data, at, value, b"x-opt-partition-key", 19):
            if data[value] == 0x40:
                return 0
            if data[value] != 0xA1 and data[value] != 0xB1:
                return NOWHERE
            end[0] = variable(data, value, behind, start)
            return 1 if end[0] > start[0] else 0
        at = behind
    return 0


cdef inline int first_message(const uint8_t* data, Message* envelope, int64_t* start, int64_t* end) noexcept nogil:
    """Where the first inner message of an envelope is; 0 when it has none."""
    if envelope.data_count == 0:
        return 0
    end[0] = variable(data, envelope.body_value, envelope.body_end, start)
    return 1


cdef inline int is_taken(
    const uint8_t* data, Message* message, int64_t message_format, const uint8_t* name, int64_t name_length
) noexcept nogil:
    """INGEST_DONE when the delivery may lie under this name, INGEST_NAME or INGEST_MALFORMED otherwise."""
    cdef int64_t start = 0, end = 0
    cdef int found
    if message_format == 0 and name_length == 0:
        return INGEST_DONE
    found = key_of(data, message, &start, &end)
    if found == NOWHERE:
        return INGEST_MALFORMED
    if found == 0:
        return INGEST_DONE if name_length == 0 else INGEST_NAME
    if end - start != name_length or memcmp(data + start, name, <size_t>name_length) != 0:
        return INGEST_NAME
    return INGEST_DONE


cdef inline int key_at(
    const uint8_t* data, int64_t start, int64_t end, int64_t message_format, int64_t* key, int64_t* key_length
) noexcept nogil:
    """Where the key of a delivery is, as find_key says it."""
    cdef Message message
    cdef int64_t key_end = 0, inner = 0, inner_end = 0
    cdef int found, where
    key[0] = key_length[0] = 0
    if open_envelope(data, start, end, message_format, &message) == NOWHERE:
        return KEY_MALFORMED
    found = key_of(data, &message, key, &key_end)
    where = KEY_MESSAGE if message_format == 0 else KEY_ENVELOPE
    if found == 0 and message_format != 0 and first_message(data, &message, &inner, &inner_end):
        if read_message(data, inner, inner_end, &message) == NOWHERE:
            found = NOWHERE
        else:
            found = key_of(data, &message, key, &key_end)
        where = KEY_MESSAGE
    if found != 1:
        key[0] = 0
        return KEY_NONE if found == 0 else KEY_MALFORMED
    key_length[0] = key_end - key[0]
    return where
