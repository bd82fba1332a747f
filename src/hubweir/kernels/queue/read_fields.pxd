"""Reads what a record says of its message, compiled. The twin is read_fields.py."""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from hubweir.kernels.buffers.bytes cimport NOWHERE, load32, load64
from hubweir.kernels.messages.sections cimport (
    Items, Section, check_map, compound, is_name, read_section, skip_value, variable,
)
from hubweir.kernels.queue_contract cimport *
from hubweir.kernels.stored_batch cimport (
    ABSENT, AT_HEADER_END, AT_MESSAGE_ANNOTATIONS, AT_PROPERTIES, RECORD_HEADER_SIZE,
)


cdef inline int is_string(uint8_t code) noexcept nogil:
    return code == 0xA1 or code == 0xB1


cdef inline int64_t section_at(const uint8_t* data, int64_t at, int64_t end, uint32_t place, Section* section) noexcept nogil:
    """Read the section at that place of the message; NOWHERE when it is not in the record."""
    if place >= end - at - RECORD_HEADER_SIZE:
        return NOWHERE
    return read_section(data, at + RECORD_HEADER_SIZE + place, end, section)


cdef inline int64_t field_of(const uint8_t* data, Section* section, uint32_t wanted, int64_t* field) noexcept nogil:
    """The end of the wanted field of a section's list; NOWHERE when it has none."""
    cdef Items items
    cdef int64_t at
    cdef uint32_t place
    if data[section.value] != 0xC0 and data[section.value] != 0xD0 and data[section.value] != 0x45:
        return NOWHERE
    if compound(data, section.value, section.end, &items) == NOWHERE or wanted >= items.count:
        return NOWHERE
    at = items.start
    for place in range(wanted):
        at = skip_value(data, at, items.end)
        if at == NOWHERE:
            return NOWHERE
    field[0] = at
    return skip_value(data, at, items.end)


cdef inline void read_header_fields(const uint8_t* data, int64_t at, int64_t end, int64_t* row) noexcept nogil:
    cdef Section section
    cdef int64_t stop, here, field = 0, behind
    cdef uint32_t header_end = load32(data + at + AT_HEADER_END)
    cdef uint8_t code
    if header_end == 0 or header_end > end - at - RECORD_HEADER_SIZE:
        return
    # A header section may stand behind others: its end is all that the record tells. It nearly always stands first.
    here = at + RECORD_HEADER_SIZE
    stop = here + header_end
    while here < stop:
        here = read_section(data, here, stop, &section)
        if here == NOWHERE:
            return
    behind = field_of(data, &section, 2, &field)
    if behind == NOWHERE:
        return
    code = data[field]
    if code == 0x43:
        row[I_TTL] = 0
    elif code == 0x52:
        row[I_TTL] = data[field + 1]
    elif code == 0x70:
        row[I_TTL] = load32(data + field + 1)


cdef inline void read_properties_fields(const uint8_t* data, int64_t at, int64_t end, int64_t* row) noexcept nogil:
    cdef Section section
    cdef int64_t field = 0, behind, start = 0, stop
    cdef uint32_t place = load32(data + at + AT_PROPERTIES)
    if place == <uint32_t>ABSENT or section_at(data, at, end, place, &section) == NOWHERE:
        return
    behind = field_of(data, &section, 0, &field)
    if behind == NOWHERE:
        return
    if data[field] != 0x40 and data[field] != 0x00:
        row[I_ID] = field
        row[I_ID_LENGTH] = behind - field
    behind = field_of(data, &section, 10, &field)
    if behind == NOWHERE or not is_string(data[field]):
        return
    stop = variable(data, field, behind, &start)
    row[I_SESSION] = start
    row[I_SESSION_LENGTH] = stop - start


cdef inline void read_annotations_fields(const uint8_t* data, int64_t at, int64_t end, int64_t* row) noexcept nogil:
    """Where a name stands twice the last one that has its type counts."""
    cdef Section section
    cdef Items items
    cdef int64_t here, value, behind, start = 0, stop
    cdef uint32_t place = load32(data + at + AT_MESSAGE_ANNOTATIONS)
    if place == <uint32_t>ABSENT or section_at(data, at, end, place, &section) == NOWHERE:
        return
    if check_map(data, section.value, section.end) == NOWHERE:
        return
    if data[section.value] != 0xC1 and data[section.value] != 0xD1:
        return
    if compound(data, section.value, section.end, &items) == NOWHERE:
        return
    here = items.start
    while here < items.end:
        value = skip_value(data, here, items.end)
        behind = skip_value(data, value, items.end)
        if data[value] == 0x83:
            if is_name(data, here, value, b"x-opt-scheduled-enqueue-time", 28):
                row[I_SCHEDULED] = <int64_t>load64(data + value + 1)
        elif is_string(data[value]) or data[value] == 0xA0 or data[value] == 0xB0:
            if is_name(data, here, value, b"x-opt-partition-key", 19):
                stop = variable(data, value, behind, &start)
                row[I_KEY] = start
                row[I_KEY_LENGTH] = stop - start
        here = behind


cdef inline void fill_incoming(const uint8_t* data, int64_t at, int64_t end, int64_t ordinal, int64_t* row) noexcept nogil:
    cdef int column
    for column in range(INCOMING_WIDTH):
        row[column] = -1
    row[I_ORDINAL] = ordinal
    row[I_RECORD] = at
    row[I_LENGTH] = end - at
    read_header_fields(data, at, end, row)
    read_properties_fields(data, at, end, row)
    read_annotations_fields(data, at, end, row)
