"""Read a row of dispositions at once, compiled, and put them in order. The twin is dispositions.py."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport qsort

from hubweir.kernels.buffers.bytes cimport NOWHERE
from hubweir.kernels.contract cimport (
    DISPOSITION_WIDTH, F_BODY, F_CHANNEL, F_CODE, F_END, F_TYPE, FRAME_WIDTH, O_FIRST, O_LAST, O_OUTCOME, O_ROLE,
    O_SETTLED, OUTCOME_ACCEPTED, OUTCOME_NONE, OUTCOME_RELEASED, QUARTER,
)
from hubweir.kernels.frames.frames cimport boolean_of, uint_of
from hubweir.kernels.messages.sections cimport Items, compound, skip_value

cdef enum:
    DISPOSITION = 0x15
    DISPOSITION_FIELDS = 6
    HALF = 0x80000000


cdef inline int64_t outcome_of(const uint8_t* data, int64_t at, int64_t end) noexcept nogil:
    """The outcome from at to end, which has no fields; NOWHERE when it is another, or in another form."""
    cdef int64_t size = end - at
    if size < 4 or data[at] != 0x00 or data[at + 1] != 0x53:
        return NOWHERE
    if not (size == 4 and data[at + 3] == 0x45):
        if not (size == 6 and data[at + 3] == 0xC0 and data[at + 4] == 1 and data[at + 5] == 0):
            return NOWHERE
    if data[at + 2] != OUTCOME_ACCEPTED and data[at + 2] != OUTCOME_RELEASED:
        return NOWHERE
    return data[at + 2]


cdef inline int read_said(const uint8_t* data, int64_t body, int64_t end, int64_t* row) noexcept nogil:
    """Fill the disposition row of a frame's body; NOWHERE when it is in another form."""
    cdef int64_t at, behind, value
    cdef Items items
    cdef uint32_t field
    if end - body < 4 or data[body] != 0x00 or data[body + 1] != 0x53:
        return NOWHERE
    if data[body + 3] != 0xC0 and data[body + 3] != 0xD0:
        return NOWHERE
    if compound(data, body + 3, end, &items) == NOWHERE or items.end != end:
        return NOWHERE
    if items.count < 2 or items.count > DISPOSITION_FIELDS:
        return NOWHERE
    row[O_ROLE] = row[O_FIRST] = row[O_LAST] = -1
    row[O_SETTLED] = 0
    row[O_OUTCOME] = OUTCOME_NONE
    at = items.start
    for field in range(items.count):
        behind = skip_value(data, at, items.end)
        if behind == NOWHERE:
            return NOWHERE
        if field == 4:
            if data[at] != 0x40:
                row[O_OUTCOME] = outcome_of(data, at, behind)
                if row[O_OUTCOME] == NOWHERE:
                    return NOWHERE
        else:
            value = uint_of(data, at) if field == 1 or field == 2 else boolean_of(data, at)
            if value == -2:
                return NOWHERE
            if field == 0:
                row[O_ROLE] = value
            elif field == 1:
                row[O_FIRST] = value
            elif field == 2:
                row[O_LAST] = value
            elif field == 3:
                row[O_SETTLED] = value == 1
        at = behind
    if at != items.end or row[O_ROLE] < 0 or row[O_FIRST] < 0:
        return NOWHERE
    if row[O_LAST] < 0:
        row[O_LAST] = row[O_FIRST]
    return NOWHERE if <uint32_t>(row[O_LAST] - row[O_FIRST]) >= <uint32_t>HALF else 0


cdef inline bint follows(const int64_t* before, const int64_t* said) noexcept nogil:
    """Whether it says the same of the deliveries behind those before."""
    if before[O_ROLE] != said[O_ROLE] or before[O_SETTLED] != said[O_SETTLED] or before[O_OUTCOME] != said[O_OUTCOME]:
        return False
    if said[O_FIRST] != <int64_t><uint32_t>(before[O_LAST] + 1):
        return False
    return <uint32_t>(said[O_LAST] - before[O_FIRST]) < <uint32_t>HALF


cdef inline int64_t collect_said(
    const uint8_t* data, int64_t size, const int64_t* frame, int64_t frames, int64_t* rows, int64_t room, int64_t* count
) noexcept nogil:
    """Read the leading dispositions among so many frames; how many were, NOWHERE when one does not lie in data.

    count: the rows that they made.
    """
    cdef int64_t taken = 0, channel = -1
    cdef int64_t said[5]
    cdef int column
    while taken < frames:
        if frame[F_CODE] != DISPOSITION or frame[F_TYPE] != 0 or (taken and frame[F_CHANNEL] != channel):
            break
        if frame[F_BODY] < 0 or frame[F_END] < frame[F_BODY] or size < frame[F_END]:
            return NOWHERE
        if read_said(data, frame[F_BODY], frame[F_END], said) == NOWHERE:
            break
        if count[0] and follows(rows + (count[0] - 1) * DISPOSITION_WIDTH, said):
            rows[(count[0] - 1) * DISPOSITION_WIDTH + O_LAST] = said[O_LAST]
        elif count[0] == room:
            break
        else:
            for column in range(DISPOSITION_WIDTH):
                rows[count[0] * DISPOSITION_WIDTH + column] = said[column]
            count[0] += 1
        channel = frame[F_CHANNEL]
        taken += 1
        frame += FRAME_WIDTH
    return taken


cdef inline int by_first(const void* one, const void* other) noexcept nogil:
    cdef const int64_t* a = <const int64_t*>one
    cdef const int64_t* b = <const int64_t*>other
    if a[O_FIRST] != b[O_FIRST]:
        return -1 if a[O_FIRST] < b[O_FIRST] else 1
    return (a[O_LAST] > b[O_LAST]) - (a[O_LAST] < b[O_LAST])


cdef inline bint can_merge(const int64_t* rows, int64_t count) noexcept nogil:
    """Whether all rows say the same, of deliveries near the first one."""
    cdef const int64_t* row = rows
    cdef int64_t index, first, last
    for index in range(count):
        first = <int32_t><uint32_t>(row[O_FIRST] - rows[O_FIRST])
        last = <int32_t><uint32_t>(row[O_LAST] - rows[O_FIRST])
        if row[O_ROLE] != rows[O_ROLE] or row[O_SETTLED] != rows[O_SETTLED] or row[O_OUTCOME] != rows[O_OUTCOME]:
            return False
        if first <= -<int64_t>QUARTER or last < first or last >= <int64_t>QUARTER:
            return False
        row += DISPOSITION_WIDTH
    return True


cdef inline int64_t merge_said(int64_t* rows, int64_t count) noexcept nogil:
    cdef int64_t index, left = 0, column, origin = rows[O_FIRST]
    cdef int64_t* row = rows
    cdef int64_t* kept
    for index in range(count):
        row[O_FIRST] = <int32_t><uint32_t>(row[O_FIRST] - origin)
        row[O_LAST] = <int32_t><uint32_t>(row[O_LAST] - origin)
        row += DISPOSITION_WIDTH
    qsort(rows, count, DISPOSITION_WIDTH * sizeof(int64_t), by_first)
    row = rows
    for index in range(count):
        kept = rows + left * DISPOSITION_WIDTH
        if left and row[O_FIRST] == (kept - DISPOSITION_WIDTH)[O_LAST] + 1:
            (kept - DISPOSITION_WIDTH)[O_LAST] = row[O_LAST]
        else:
            for column in range(DISPOSITION_WIDTH):
                kept[column] = row[column]
            left += 1
        row += DISPOSITION_WIDTH
    for index in range(left):
        rows[index * DISPOSITION_WIDTH + O_FIRST] = <uint32_t>(rows[index * DISPOSITION_WIDTH + O_FIRST] + origin)
        rows[index * DISPOSITION_WIDTH + O_LAST] = <uint32_t>(rows[index * DISPOSITION_WIDTH + O_LAST] + origin)
    for index in range(left * DISPOSITION_WIDTH, count * DISPOSITION_WIDTH):
        rows[index] = 0
    return left
