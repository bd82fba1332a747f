"""Open delivered messages for a client, compiled; the door in _messages.pyx walks the rows."""

from libc.stdint cimport int64_t, uint8_t

from hubweir.kernels.buffers.bytes cimport NOWHERE, load64
from hubweir.kernels.contract cimport (
    E_APPLICATION_PROPERTIES, E_BODY, E_BODY_LENGTH, E_ENQUEUED_TIME, E_KEY, E_KEY_LENGTH, E_OFFSET, E_PROPERTIES,
    E_SEQUENCE_NUMBER, EVENT_WIDTH,
)
from hubweir.kernels.messages.sections cimport (
    APPLICATION_PROPERTIES, HEADER, PROPERTIES, Items, Message, compound, is_name, read_message, skip_value, variable,
)


cdef inline int64_t digits(const uint8_t* data, int64_t start, int64_t end) noexcept nogil:
    """The number that 1 to 18 decimal digits spell; -1 for other text."""
    cdef int64_t value = 0, at
    if not 1 <= end - start <= 18:
        return -1
    for at in range(start, end):
        if data[at] < 0x30 or data[at] > 0x39:
            return -1
        value = value * 10 + (data[at] - 0x30)
    return value


cdef inline void fill_annotations(const uint8_t* data, Message* message, int64_t* row) noexcept nogil:
    """The service's names as integers; where a name stands twice the last one that has its type counts."""
    cdef Items items
    cdef int64_t at, value, behind, start = 0, stop, number
    cdef uint8_t code
    if message.annotations == NOWHERE:
        return
    if compound(data, message.annotations, message.annotations_end, &items) == NOWHERE:
        return
    at = items.start
    while at < items.end:
        value = skip_value(data, at, items.end)
        if value == NOWHERE:
            return
        behind = skip_value(data, value, items.end)
        if behind == NOWHERE:
            return
        code = data[value]
        if code == 0x81 or code == 0x55:
            if is_name(data, at, value, b"x-opt-sequence-number", 21):
                row[E_SEQUENCE_NUMBER] = (
                    <int64_t>load64(data + value + 1) if code == 0x81 else <signed char>data[value + 1]
                )
        elif code == 0x83:
            if is_name(data, at, value, b"x-opt-enqueued-time", 19):
                row[E_ENQUEUED_TIME] = <int64_t>load64(data + value + 1)
        elif code == 0xA1 or code == 0xB1:
            stop = variable(data, value, behind, &start)
            if is_name(data, at, value, b"x-opt-offset", 12):
                number = digits(data, start, stop)
                if number >= 0:
                    row[E_OFFSET] = number
            elif is_name(data, at, value, b"x-opt-partition-key", 19):
                row[E_KEY] = start
                row[E_KEY_LENGTH] = stop - start
        at = behind


cdef inline int open_event(const uint8_t* data, int64_t start, int64_t end, int64_t* row) noexcept nogil:
    cdef Message message
    cdef int index
    cdef int64_t content = 0, stop
    if read_message(data, start, end, &message) == NOWHERE:
        return NOWHERE
    for index in range(EVENT_WIDTH):
        row[index] = -1
    fill_annotations(data, &message, row)
    row[E_PROPERTIES] = message.at[PROPERTIES - HEADER]
    row[E_APPLICATION_PROPERTIES] = message.at[APPLICATION_PROPERTIES - HEADER]
    row[E_BODY] = message.body
    if message.data_count == 1:
        stop = variable(data, message.body_value, message.body_end, &content)
        row[E_BODY] = content
        row[E_BODY_LENGTH] = stop - content
    return 0
