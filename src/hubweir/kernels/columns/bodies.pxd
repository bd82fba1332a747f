"""The body of a message as bytes, whatever its kind, compiled. The twin: body_of in text.py."""

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memmove

from hubweir.kernels.buffers.bytes cimport NOWHERE
from hubweir.kernels.buffers.growing cimport Out, put, put_byte, room
from hubweir.kernels.messages.sections cimport (
    DATA, HEADER, SEQUENCE, VALUE, Items, Message, Section, compound, read_section, variable,
)
from hubweir.kernels.columns.strings cimport is_binary, is_text, put_base64, put_utf8
from hubweir.kernels.columns.text cimport put_items, put_value, undescribed

cdef enum:
    # What a body is made of.
    BODY_NONE = 0
    BODY_RANGE = 1     # one range of the message's bytes
    BODY_DATA = 2      # several data sections
    BODY_STRING = 3    # a string, to be written as legal UTF-8
    BODY_VALUE = 4     # an amqp-value, to be written as JSON
    BODY_SEQUENCE = 5


cdef inline int body_kind(const uint8_t* data, Message* message, int64_t* start, int64_t* end) noexcept nogil:
    """What the body is made of; *start and *end the range of BODY_RANGE, BODY_STRING and BODY_VALUE."""
    cdef int64_t at
    if message.body == NOWHERE:
        return BODY_NONE
    if message.data_count:
        if message.data_count > 1:
            return BODY_DATA
        end[0] = variable(data, message.body_value, message.body_end, start)
        return BODY_RANGE
    if message.at[VALUE - HEADER] == NOWHERE:
        return BODY_SEQUENCE
    at = undescribed(data, message.body_value, message.body_end)
    if data[at] == 0x40:
        return BODY_NONE
    if is_text(data[at]) or is_binary(data[at]):
        end[0] = variable(data, at, message.body_end, start)
        return BODY_RANGE if is_binary(data[at]) else BODY_STRING
    start[0] = message.body_value
    end[0] = message.body_end
    return BODY_VALUE


cdef inline void put_sections(Out* out, const uint8_t* data, int64_t at, int64_t end, int code) noexcept nogil:
    """The contents of all data sections of a message, or the encoded values of its other sections of this code."""
    cdef Section section
    cdef int64_t start = 0, stop
    while at < end:
        at = read_section(data, at, end, &section)
        if at == NOWHERE:
            return
        if section.code == code:
            start = section.value
            stop = section.end
            if code == DATA:
                stop = variable(data, section.value, section.end, &start)
            put(out, data + start, stop - start)


cdef inline int put_sequences(Out* out, const uint8_t* data, int64_t at, int64_t end) noexcept nogil:
    """The items of all sequence sections of a message as one JSON array."""
    cdef Section section
    cdef Items items
    cdef int64_t begun
    put_byte(out, c"[")
    begun = out.used
    while at < end:
        at = read_section(data, at, end, &section)
        if at == NOWHERE:
            return NOWHERE
        if section.code == SEQUENCE:
            if compound(data, section.value, section.end, &items) == NOWHERE:
                return NOWHERE
            if items.count and out.used > begun:
                put_byte(out, c",")
            if put_items(out, data, items.count, items.start, items.end, 1) == NOWHERE:
                return NOWHERE
    put_byte(out, c"]")
    return 0


cdef inline void put_body(
    Out* out, const uint8_t* data, int64_t at, int64_t end, int kind, int64_t start, int64_t stop
) noexcept nogil:
    """The bytes of the body of the message data[at:end], as body_kind described it."""
    cdef int64_t mark = out.used, raw
    if kind == BODY_RANGE:
        put(out, data + start, stop - start)
    elif kind == BODY_DATA:
        put_sections(out, data, at, end, DATA)
    elif kind == BODY_STRING:
        put_utf8(out, data + start, stop - start, False)
    elif kind == BODY_VALUE:
        put_value(out, data, start, stop, True)
    elif kind == BODY_SEQUENCE and put_sequences(out, data, at, end) == NOWHERE:
        put_unwalkable_sequences(out, data, at, end, mark)


cdef inline void put_unwalkable_sequences(
    Out* out, const uint8_t* data, int64_t at, int64_t end, int64_t mark
) noexcept nogil:
    """The encoded values of all sequence sections, together as base64: they are joined behind where it will stand."""
    cdef int64_t size, room_for_text
    out.used = mark
    put_sections(out, data, at, end, SEQUENCE)
    if out.failed:
        return
    size = out.used - mark
    room_for_text = (size + 2) // 3 * 4 + 2
    out.used = mark
    if room(out, room_for_text + size) == NULL:
        return
    # The joined bytes move behind the room of their own text, which is then made from them.
    memmove(out.bytes + mark + room_for_text, out.bytes + mark, <size_t>size)
    put_base64(out, out.bytes + mark + room_for_text, size, True)
