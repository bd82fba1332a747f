"""Arrow buffers as the sink gets them, compiled: values of a row, checked before they are read. The twin: arrow.py."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy

from hubweir.kernels.buffers.bytes cimport NOWHERE

cdef struct Texts:
    # A string or binary array; `there` is false for a column that was not given.
    bint there
    const uint8_t* validity  # NULL: all are valid
    int64_t validity_bytes
    const uint8_t* offsets
    int64_t offset_count
    const uint8_t* content
    int64_t size
    int64_t first

cdef struct Maps:
    # A map<string, string> array: `rows` has offsets only, its children have the entries.
    Texts rows
    Texts keys
    Texts values

cdef struct Value:
    # start NULL: null.
    const uint8_t* start
    int64_t size


cdef inline int is_valid(Texts* texts, int64_t at) noexcept nogil:
    """1 valid, 0 null, NOWHERE when the bitmap ends before it."""
    if texts.validity == NULL:
        return 1
    if at >> 3 >= texts.validity_bytes:
        return NOWHERE
    return texts.validity[at >> 3] >> (at & 7) & 1


cdef inline int range_of(Texts* texts, int64_t row, int64_t* start, int64_t* end) noexcept nogil:
    """1 and the two offsets around the value of a row, 0 for null, NOWHERE when they are not there or fall."""
    cdef int32_t pair[2]
    cdef int64_t at
    cdef int valid
    if row < 0 or row >= texts.offset_count:
        return NOWHERE
    at = texts.first + row  # the door has bounded first
    if at + 1 >= texts.offset_count:
        return NOWHERE
    valid = is_valid(texts, at)
    if valid <= 0:
        return valid
    memcpy(pair, texts.offsets + 4 * at, 8)
    if pair[0] < 0 or pair[1] < pair[0]:
        return NOWHERE
    start[0] = pair[0]
    end[0] = pair[1]
    return 1


cdef inline int value_of(Texts* texts, int64_t row, Value* value) noexcept nogil:
    """The value of a row: 0, or NOWHERE when it does not lie in the buffers."""
    cdef int64_t start = 0, end = 0
    cdef int found
    value.start = NULL
    value.size = 0
    if not texts.there:
        return 0
    found = range_of(texts, row, &start, &end)
    if found <= 0:
        return found
    if end > texts.size:
        return NOWHERE
    value.start = texts.content + start
    value.size = end - start
    return 0


cdef inline int entries_of(Maps* maps, int64_t row, int64_t* first, int64_t* last) noexcept nogil:
    """The entries of a row's map, none for null: 0, or NOWHERE when they do not lie in the buffers."""
    cdef int found
    first[0] = last[0] = 0
    if not maps.rows.there:
        return 0
    found = range_of(&maps.rows, row, first, last)
    return NOWHERE if found == NOWHERE else 0
