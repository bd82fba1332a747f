"""Read a row of dispositions and flows at once, compiled, and put them in order. The twin is dispositions.py."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport qsort
from libc.string cimport memcmp

from hubweir.kernels.buffers.bytes cimport NOWHERE
from hubweir.kernels.contract cimport (
    C_CHANNEL, C_CREDIT, C_DELIVERY_COUNT, C_DRAIN, C_ECHO, C_FRAME, C_HANDLE, C_NEXT_INCOMING, C_WINDOW,
    DISPOSITION_WIDTH, F_BODY, F_CHANNEL, F_CODE, F_END, F_TYPE, FLOW_WIDTH, FRAME_WIDTH, O_CHANNEL, O_FIRST, O_LAST,
    O_OUTCOME, O_ROLE, O_SETTLED, OUTCOME_ACCEPTED, OUTCOME_NONE, OUTCOME_RELEASED, OUTCOME_STATED, QUARTER, STATE_END,
    STATE_FRAME, STATE_START, STATE_WIDTH,
)
from hubweir.kernels.frames.frames cimport boolean_of, uint_of
from hubweir.kernels.messages.sections cimport Items, compound, skip_value

cdef enum:
    FLOW = 0x13
    DISPOSITION = 0x15
    DISPOSITION_FIELDS = 6
    LEAST_FLOW_FIELDS = 4
    FLOW_FIELDS = 11
    HALF = 0x80000000

cdef struct Said:
    # What was collected: rows, states and flows so far, and how many there is room for.
    int64_t* rows
    int64_t* states
    int64_t* flows
    int64_t count, most_rows, kinds, most_kinds, flow_count, most_flows


cdef inline int64_t outcome_of(const uint8_t* data, int64_t at, int64_t end) noexcept nogil:
    """The outcome of the state from at to end: accepted or released without fields; any other is OUTCOME_STATED."""
    cdef int64_t size = end - at
    if size < 4 or data[at] != 0x00 or data[at + 1] != 0x53:
        return OUTCOME_STATED
    if not (size == 4 and data[at + 3] == 0x45):
        if not (size == 6 and data[at + 3] == 0xC0 and data[at + 4] == 1 and data[at + 5] == 0):
            return OUTCOME_STATED
    if data[at + 2] != OUTCOME_ACCEPTED and data[at + 2] != OUTCOME_RELEASED:
        return OUTCOME_STATED
    return data[at + 2]


cdef inline int open_list(const uint8_t* data, int64_t body, int64_t end, Items* items) noexcept nogil:
    """The list of a frame's body, which is all behind its descriptor; NOWHERE when it is in another form."""
    if end - body < 4 or data[body] != 0x00 or data[body + 1] != 0x53:
        return NOWHERE
    if data[body + 3] != 0xC0 and data[body + 3] != 0xD0:
        return NOWHERE
    if compound(data, body + 3, end, items) == NOWHERE or items.end != end:
        return NOWHERE
    return 0


cdef inline int read_flow(const uint8_t* data, int64_t body, int64_t end, int64_t* row) noexcept nogil:
    """Fill the flow row of a frame's body, but for frame and channel; NOWHERE when it is in another form."""
    cdef int64_t at, behind, value
    cdef Items items
    cdef uint32_t field
    if open_list(data, body, end, &items) == NOWHERE:
        return NOWHERE
    if items.count < LEAST_FLOW_FIELDS or items.count > FLOW_FIELDS:
        return NOWHERE
    row[C_NEXT_INCOMING] = row[C_WINDOW] = row[C_HANDLE] = row[C_DELIVERY_COUNT] = row[C_CREDIT] = -1
    row[C_DRAIN] = row[C_ECHO] = 0
    at = items.start
    for field in range(items.count):
        behind = skip_value(data, at, items.end)
        if behind == NOWHERE:
            return NOWHERE
        value = boolean_of(data, at) if field == 8 or field == 9 else uint_of(data, at)
        if value == -2 or (value == -1 and 1 <= field < LEAST_FLOW_FIELDS) or (value != -1 and field == 10):
            return NOWHERE
        if field == 0:
            row[C_NEXT_INCOMING] = value
        elif field == 1:
            row[C_WINDOW] = value
        elif field == 4:
            row[C_HANDLE] = value
        elif field == 5:
            row[C_DELIVERY_COUNT] = value
        elif field == 6:
            row[C_CREDIT] = value
        elif field == 8:
            row[C_DRAIN] = value == 1
        elif field == 9:
            row[C_ECHO] = value == 1
        at = behind
    return NOWHERE if at != items.end else 0


cdef inline int read_said(
    const uint8_t* data, int64_t body, int64_t end, int64_t* row, int64_t* state
) noexcept nogil:
    """Fill the disposition row of a frame's body, and where its state lies; NOWHERE when it is in another form."""
    cdef int64_t at, behind, value
    cdef Items items
    cdef uint32_t field
    if open_list(data, body, end, &items) == NOWHERE:
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
                state[STATE_START] = at
                state[STATE_END] = behind
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


cdef inline bint is_alike(const int64_t* a, const int64_t* b) noexcept nogil:
    return a[O_SETTLED] == b[O_SETTLED] and a[O_OUTCOME] == b[O_OUTCOME]


cdef inline bint follows(const int64_t* before, const int64_t* said) noexcept nogil:
    """Whether it says the same of the deliveries behind those before."""
    if before[O_ROLE] != said[O_ROLE] or before[O_CHANNEL] != said[O_CHANNEL] or not is_alike(before, said):
        return False
    if said[O_FIRST] != <int64_t><uint32_t>(before[O_LAST] + 1):
        return False
    return <uint32_t>(said[O_LAST] - before[O_FIRST]) < <uint32_t>HALF


cdef inline int64_t number_of(
    const uint8_t* data, const int64_t* states, int64_t kinds, const int64_t* state
) noexcept nogil:
    """The row of states that holds the same bytes; kinds when none does."""
    cdef int64_t number, size = state[STATE_END] - state[STATE_START]
    for number in range(kinds):
        if states[STATE_END] - states[STATE_START] == size:
            if memcmp(data + states[STATE_START], data + state[STATE_START], size) == 0:
                return number
        states += STATE_WIDTH
    return kinds


cdef inline int64_t collect_said(
    const uint8_t* data, int64_t size, const int64_t* table, int64_t first, int64_t last, Said* out
) noexcept nogil:
    """Read the leading dispositions and flows of frames first to last; how many were, NOWHERE when one does not lie
    in data."""
    cdef int64_t taken = 0, number
    cdef int64_t said[DISPOSITION_WIDTH]
    cdef int64_t state[STATE_WIDTH]
    cdef int64_t flow[FLOW_WIDTH]
    cdef const int64_t* frame = table + first * FRAME_WIDTH
    cdef int64_t* row
    cdef bint is_new
    cdef int column
    while taken < last - first:
        if (frame[F_CODE] != DISPOSITION and frame[F_CODE] != FLOW) or frame[F_TYPE] != 0:
            break
        if frame[F_BODY] < 0 or frame[F_END] < frame[F_BODY] or size < frame[F_END]:
            return NOWHERE
        if frame[F_CODE] == FLOW:
            if read_flow(data, frame[F_BODY], frame[F_END], flow) == NOWHERE or out.flow_count == out.most_flows:
                break
            flow[C_FRAME] = first + taken
            flow[C_CHANNEL] = frame[F_CHANNEL]
            row = out.flows + out.flow_count * FLOW_WIDTH
            for column in range(FLOW_WIDTH):
                row[column] = flow[column]
            out.flow_count += 1
            taken += 1
            frame += FRAME_WIDTH
            continue
        if read_said(data, frame[F_BODY], frame[F_END], said, state) == NOWHERE:
            break
        said[O_CHANNEL] = frame[F_CHANNEL]
        is_new = False
        if said[O_OUTCOME] == OUTCOME_STATED:
            number = number_of(data, out.states, out.kinds, state)
            is_new = number == out.kinds
            if number == out.most_kinds:
                break
            said[O_OUTCOME] += number
        row = out.rows + out.count * DISPOSITION_WIDTH
        if out.count and follows(row - DISPOSITION_WIDTH, said):
            (row - DISPOSITION_WIDTH)[O_LAST] = said[O_LAST]
        elif out.count == out.most_rows:
            break
        else:
            for column in range(DISPOSITION_WIDTH):
                row[column] = said[column]
            out.count += 1
        if is_new:
            state[STATE_FRAME] = first + taken
            for column in range(STATE_WIDTH):
                out.states[out.kinds * STATE_WIDTH + column] = state[column]
            out.kinds += 1
        taken += 1
        frame += FRAME_WIDTH
    return taken


cdef inline int by_first(const void* one, const void* other) noexcept nogil:
    cdef const int64_t* a = <const int64_t*>one
    cdef const int64_t* b = <const int64_t*>other
    if a[O_CHANNEL] != b[O_CHANNEL]:
        return -1 if a[O_CHANNEL] < b[O_CHANNEL] else 1
    if a[O_FIRST] != b[O_FIRST]:
        return -1 if a[O_FIRST] < b[O_FIRST] else 1
    return (a[O_LAST] > b[O_LAST]) - (a[O_LAST] < b[O_LAST])


cdef inline int by_kind(const void* one, const void* other) noexcept nogil:
    cdef const int64_t* a = <const int64_t*>one
    cdef const int64_t* b = <const int64_t*>other
    if a[O_CHANNEL] != b[O_CHANNEL]:
        return -1 if a[O_CHANNEL] < b[O_CHANNEL] else 1
    if a[O_SETTLED] != b[O_SETTLED]:
        return -1 if a[O_SETTLED] < b[O_SETTLED] else 1
    if a[O_OUTCOME] != b[O_OUTCOME]:
        return -1 if a[O_OUTCOME] < b[O_OUTCOME] else 1
    return by_first(one, other)


cdef inline bint unwrap_near(const int64_t* rows, int64_t count, int64_t* near) noexcept nogil:
    """Copy rows to near, with ids as distances from the first; False when they may not be merged."""
    cdef const int64_t* row = rows
    cdef int64_t index
    for index in range(count):
        near[O_ROLE] = row[O_ROLE]
        near[O_CHANNEL] = row[O_CHANNEL]
        near[O_SETTLED] = row[O_SETTLED]
        near[O_OUTCOME] = row[O_OUTCOME]
        near[O_FIRST] = <int32_t><uint32_t>(row[O_FIRST] - rows[O_FIRST])
        near[O_LAST] = <int32_t><uint32_t>(row[O_LAST] - rows[O_FIRST])
        if row[O_ROLE] != rows[O_ROLE] or near[O_FIRST] <= -<int64_t>QUARTER:
            return False
        if near[O_LAST] < near[O_FIRST] or near[O_LAST] >= <int64_t>QUARTER:
            return False
        row += DISPOSITION_WIDTH
        near += DISPOSITION_WIDTH
    return True


cdef inline bint put_in_order(int64_t* near, int64_t count) noexcept nogil:
    """Sort rows by what they say; False when one that says something else names a delivery again."""
    cdef int64_t index
    cdef int64_t* row = near
    cdef bint are_alike = True, overlap = False
    qsort(near, count, DISPOSITION_WIDTH * sizeof(int64_t), by_first)
    for index in range(1, count):
        row += DISPOSITION_WIDTH
        are_alike = are_alike and is_alike(near, row)
        if row[O_CHANNEL] == (row - DISPOSITION_WIDTH)[O_CHANNEL]:
            overlap = overlap or row[O_FIRST] <= (row - DISPOSITION_WIDTH)[O_LAST]
    if are_alike:
        return True
    if not overlap:
        qsort(near, count, DISPOSITION_WIDTH * sizeof(int64_t), by_kind)
    return not overlap


cdef inline int64_t merge_said(int64_t* rows, int64_t count, int64_t* near) noexcept nogil:
    """near: room for as many rows."""
    cdef int64_t index, left = 0, column, origin = rows[O_FIRST]
    cdef int64_t* kept = rows - DISPOSITION_WIDTH
    if not unwrap_near(rows, count, near) or not put_in_order(near, count):
        return count
    for index in range(count):
        if left and is_alike(near, kept) and near[O_CHANNEL] == kept[O_CHANNEL] and near[O_FIRST] == kept[O_LAST] + 1:
            kept[O_LAST] = near[O_LAST]
        else:
            kept += DISPOSITION_WIDTH
            for column in range(DISPOSITION_WIDTH):
                kept[column] = near[column]
            left += 1
        near += DISPOSITION_WIDTH
    for index in range(left):
        rows[index * DISPOSITION_WIDTH + O_FIRST] = <uint32_t>(rows[index * DISPOSITION_WIDTH + O_FIRST] + origin)
        rows[index * DISPOSITION_WIDTH + O_LAST] = <uint32_t>(rows[index * DISPOSITION_WIDTH + O_LAST] + origin)
    for index in range(left * DISPOSITION_WIDTH, count * DISPOSITION_WIDTH):
        rows[index] = 0
    return left
