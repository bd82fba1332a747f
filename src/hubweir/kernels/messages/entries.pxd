"""The entries of a map and the fields of a properties section, one after the other, as far as they can be walked."""

from libc.stdint cimport int64_t, uint8_t

from hubweir.kernels.buffers.bytes cimport NOWHERE
from hubweir.kernels.messages.property_names cimport PROPERTY_COUNT
from hubweir.kernels.messages.sections cimport Items, compound
from hubweir.kernels.messages.walk cimport step

cdef struct Entry:
    # Of a map: data[key:value] is its key, data[value:stop] its value. Of a list: data[value:stop] is field `index`.
    int64_t key
    int64_t value
    int64_t stop
    int64_t end
    int64_t index
    int64_t left


cdef inline void open_entries(const uint8_t* data, int64_t at, int64_t end, Entry* entry) noexcept nogil:
    """Stand before the first entry of the map at `at`."""
    cdef Items items
    entry.left = 0
    entry.stop = entry.end = at
    if compound(data, at, end, &items) != NOWHERE:
        entry.stop = items.start
        entry.end = items.end
        entry.left = items.count // 2


cdef inline bint next_entry(const uint8_t* data, Entry* entry) noexcept nogil:
    """Go to the next entry; False when there is none."""
    if entry.left == 0:
        return False
    entry.left -= 1
    entry.key = entry.stop
    entry.value = step(data, entry.key, entry.end)
    if entry.value == NOWHERE:
        return False
    entry.stop = step(data, entry.value, entry.end)
    return entry.stop != NOWHERE


cdef inline void open_fields(const uint8_t* data, int64_t at, int64_t end, Entry* entry) noexcept nogil:
    """Stand before the first field of the properties list at `at`."""
    cdef Items items
    entry.left = 0
    entry.stop = entry.end = at
    entry.index = -1
    if compound(data, at, end, &items) != NOWHERE:
        entry.stop = items.start
        entry.end = items.end
        entry.left = min(<int64_t>items.count, <int64_t>PROPERTY_COUNT)


cdef inline bint next_field(const uint8_t* data, Entry* entry) noexcept nogil:
    """Go to the next field that is not null; False when there is none."""
    while entry.left:
        entry.left -= 1
        entry.index += 1
        entry.value = entry.stop
        entry.stop = step(data, entry.value, entry.end)
        if entry.stop == NOWHERE:
            return False
        if data[entry.value] != 0x40:
            return True
    return False
