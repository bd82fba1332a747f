"""The keys that choose the fragments of messages, compiled. The twin: message_keys.py."""

from libc.stdint cimport int64_t, uint8_t

from hubweir.kernels.buffers.bytes cimport NOWHERE
from hubweir.kernels.contract cimport KEY_MALFORMED, KEY_MESSAGE, KEY_NONE, KEY_SCATTERED
from hubweir.kernels.keys.keys cimport hash_of
from hubweir.kernels.messages.check_messages cimport Text, id_at, keys_of, text_at
from hubweir.kernels.messages.ingest cimport open_envelope
from hubweir.kernels.messages.sections cimport (
    DATA, HEADER, MESSAGE_ANNOTATIONS, PROPERTIES, PROPERTIES_FIELDS, Message, Section, fields_of, read_message,
    read_section, variable,
)


cdef inline int64_t hash_of_id(const uint8_t* data, int64_t at, int64_t end, Text* text) noexcept nogil:
    """The hash of the message id at `at`, which id_at opened."""
    cdef uint8_t number[8]
    cdef int64_t index, size = end - at - 1
    if text.start != NOWHERE:
        return hash_of(data + text.start, text.end - text.start)
    if data[at] == 0x98:
        return hash_of(data + at + 1, size)
    for index in range(8):
        number[index] = data[end - 8 + index] if index >= 8 - size else 0
    return hash_of(number, 8)


cdef inline int message_key(
    const uint8_t* data, int64_t start, int64_t end, bint takes_ids, int64_t* hashed
) noexcept nogil:
    """1 and the hash of the key of the message data[start:end]; 0: it has none; NOWHERE for one that is malformed."""
    cdef Message message
    cdef Text identifier, session, key, via
    cdef int64_t at[PROPERTIES_FIELDS]
    cdef int64_t stop[PROPERTIES_FIELDS]
    if read_message(data, start, end, &message) == NOWHERE:
        return NOWHERE
    if fields_of(data, message.at[PROPERTIES - HEADER], end, PROPERTIES_FIELDS, at, stop) == NOWHERE:
        return NOWHERE
    if keys_of(data, message.at[MESSAGE_ANNOTATIONS - HEADER], end, &key, &via) == NOWHERE:
        return NOWHERE
    if id_at(data, at[0], stop[0], &identifier) == NOWHERE or text_at(data, at[10], stop[10], &session) == NOWHERE:
        return NOWHERE
    if session.start != NOWHERE:
        hashed[0] = hash_of(data + session.start, session.end - session.start)
        return 1
    if key.start != NOWHERE and key.end > key.start:
        hashed[0] = hash_of(data + key.start, key.end - key.start)
        return 1
    if not takes_ids or at[0] == NOWHERE or data[at[0]] == 0x40:
        return 0
    hashed[0] = hash_of_id(data, at[0], stop[0], &identifier)
    return 1


cdef inline int64_t fragment_of(int64_t hashed, int64_t fragments) noexcept nogil:
    return (-hashed if hashed < 0 else hashed) % fragments


cdef inline int delivery_key(
    const uint8_t* data, int64_t start, int64_t end, int64_t message_format, bint takes_ids, int64_t fragments,
    int64_t* hashed
) noexcept nogil:
    """K_WHERE and the hash of a delivery."""
    cdef Message message
    cdef Section section
    cdef int64_t at = start, stop, content = 0, behind, inner = 0
    cdef int found, where = KEY_NONE
    hashed[0] = 0
    if open_envelope(data, start, end, message_format, &message) == NOWHERE:
        return KEY_MALFORMED
    if message_format == 0:
        found = message_key(data, start, end, takes_ids, hashed)
        return KEY_MALFORMED if found == NOWHERE else KEY_MESSAGE if found else KEY_NONE
    while at < end:
        stop = read_section(data, at, end, &section)
        if section.code == DATA:
            behind = variable(data, section.value, stop, &content)
            found = message_key(data, content, behind, takes_ids, &inner)
            if found == NOWHERE:
                hashed[0] = 0
                return KEY_MALFORMED
            if found and where == KEY_NONE:
                where, hashed[0] = KEY_MESSAGE, inner
            elif found and fragment_of(inner, fragments) != fragment_of(hashed[0], fragments):
                where = KEY_SCATTERED
        at = stop
    if where == KEY_SCATTERED:
        hashed[0] = 0
    return where
