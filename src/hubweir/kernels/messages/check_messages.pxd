"""Find what is wrong with a message for a queue, compiled. The twin: check_messages.py."""

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcmp

from hubweir.kernels.buffers.bytes cimport NOWHERE
from hubweir.kernels.contract cimport CHECK_KEY, CHECK_LONG, CHECK_MALFORMED, CHECK_OK, CHECK_SESSION
from hubweir.kernels.keys.keys cimport characters
from hubweir.kernels.messages.sections cimport (
    DELIVERY_ANNOTATIONS, HEADER, HEADER_FIELDS, MESSAGE_ANNOTATIONS, PROPERTIES, PROPERTIES_FIELDS, Items, Message,
    Section, check_map, compound, fields_of, is_name, read_message, read_section, skip_value, variable,
)

cdef struct Text:
    # What an encoded string holds; start NOWHERE: null, or not there.
    int64_t start
    int64_t end


cdef inline int text_at(const uint8_t* data, int64_t at, int64_t end, Text* text) noexcept nogil:
    """Open the string or null at `at` (NOWHERE: there is none); NOWHERE for another type."""
    text.start = text.end = NOWHERE
    if at == NOWHERE or data[at] == 0x40:
        return 0
    if data[at] != 0xA1 and data[at] != 0xB1:
        return NOWHERE
    text.end = variable(data, at, end, &text.start)
    return 0


cdef inline int key_at(const uint8_t* data, int64_t at, int64_t end, Text* text) noexcept nogil:
    """The same for a key: azure-servicebus for Python sends the one that it received as a binary."""
    if data[at] != 0xA0 and data[at] != 0xB0:
        return text_at(data, at, end, text)
    text.end = variable(data, at, end, &text.start)
    return 0


cdef inline bint is_long(const uint8_t* data, Text* text, int64_t most) noexcept nogil:
    return text.start != NOWHERE and characters(data + text.start, text.end - text.start) > most


cdef inline int keys_of(const uint8_t* data, int64_t start, int64_t end, Text* key, Text* via) noexcept nogil:
    """Open the partition keys in the annotations section at start (NOWHERE: there is none), which was walked before."""
    cdef Section section
    cdef Items items
    cdef int64_t at, value, behind
    key.start = key.end = via.start = via.end = NOWHERE
    if start == NOWHERE:
        return 0
    if read_section(data, start, end, &section) == NOWHERE:
        return NOWHERE
    if compound(data, section.value, section.end, &items) == NOWHERE:
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
            if key_at(data, value, behind, key) == NOWHERE:
                return NOWHERE
        elif is_name(data, at, value, b"x-opt-via-partition-key", 23):
            if key_at(data, value, behind, via) == NOWHERE:
                return NOWHERE
        at = behind
    return 0


cdef inline int id_at(const uint8_t* data, int64_t at, int64_t end, Text* text) noexcept nogil:
    """Open the message id at `at`; text is set for strings and binaries. NOWHERE for a type that no id has."""
    cdef uint8_t code
    text.start = text.end = NOWHERE
    if at == NOWHERE:
        return 0
    code = data[at]
    if code == 0xA0 or code == 0xA1 or code == 0xB0 or code == 0xB1:
        text.end = variable(data, at, end, &text.start)
        return 0
    return 0 if code == 0x40 or code == 0x44 or code == 0x53 or code == 0x80 or code == 0x98 else NOWHERE


cdef inline int check_message(
    const uint8_t* data, int64_t start, int64_t end, int64_t most, bint needs_session
) noexcept nogil:
    """CHECK_OK, or what is wrong with the message data[start:end]."""
    cdef Message message
    cdef Section section
    cdef Text identifier, session, reply, key, via
    cdef int64_t at[PROPERTIES_FIELDS]
    cdef int64_t stop[PROPERTIES_FIELDS]
    if read_message(data, start, end, &message) == NOWHERE:
        return CHECK_MALFORMED
    if fields_of(data, message.at[0], end, HEADER_FIELDS, at, stop) == NOWHERE:
        return CHECK_MALFORMED
    if message.at[DELIVERY_ANNOTATIONS - HEADER] != NOWHERE:
        if read_section(data, message.at[DELIVERY_ANNOTATIONS - HEADER], end, &section) == NOWHERE:
            return CHECK_MALFORMED
        if check_map(data, section.value, section.end) == NOWHERE:
            return CHECK_MALFORMED
    if fields_of(data, message.at[PROPERTIES - HEADER], end, PROPERTIES_FIELDS, at, stop) == NOWHERE:
        return CHECK_MALFORMED
    if keys_of(data, message.at[MESSAGE_ANNOTATIONS - HEADER], end, &key, &via) == NOWHERE:
        return CHECK_MALFORMED
    if id_at(data, at[0], stop[0], &identifier) == NOWHERE or text_at(data, at[10], stop[10], &session) == NOWHERE:
        return CHECK_MALFORMED
    if text_at(data, at[12], stop[12], &reply) == NOWHERE:
        return CHECK_MALFORMED
    if (
        is_long(data, &identifier, most) or is_long(data, &session, most) or is_long(data, &reply, most)
        or is_long(data, &key, most) or is_long(data, &via, most)
    ):
        return CHECK_LONG
    if needs_session and session.start == NOWHERE:
        return CHECK_SESSION
    if session.start != NOWHERE and key.start != NOWHERE and (
        session.end - session.start != key.end - key.start
        or memcmp(data + session.start, data + key.start, <size_t>(key.end - key.start)) != 0
    ):
        return CHECK_KEY
    return CHECK_OK


cdef inline int check_envelope(
    const uint8_t* data, int64_t at, int64_t end, int64_t most, bint needs_session
) noexcept nogil:
    """CHECK_OK, or what is wrong with the first message of an envelope that no queue takes."""
    cdef Section section
    cdef int64_t start = 0, stop
    cdef int status
    while at < end:
        stop = read_section(data, at, end, &section)
        if stop == NOWHERE:
            return CHECK_MALFORMED
        if section.code == 0x75:
            if variable(data, section.value, stop, &start) == NOWHERE:
                return CHECK_MALFORMED
            status = check_message(data, start, stop, most, needs_session)
            if status != CHECK_OK:
                return status
        at = stop
    return CHECK_OK
