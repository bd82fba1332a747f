"""Cut bytes into frames and gather whole deliveries, compiled. The twin is frames.py."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from hubweir.kernels.buffers.bytes cimport NOWHERE, load16, load32, load64, take
from hubweir.kernels.contract cimport *
from hubweir.kernels.messages.sections cimport Items, compound, skip_value, variable

cdef enum:
    TRANSFER = 0x14
    TRANSFER_FIELDS = 11


cdef inline int64_t code_of(const uint8_t* data, int64_t body, int64_t end) noexcept nogil:
    """The numeric descriptor of the performative at body, EMPTY_FRAME without one, -1 when it is none."""
    cdef uint64_t code
    if body == end:
        return EMPTY_FRAME
    if end - body >= 3 and data[body] == 0x00 and data[body + 1] == 0x53:
        # 00 53 14 alone says that the columns of a transfer are filled.
        return data[body + 2]
    if end - body >= 10 and data[body] == 0x00 and data[body + 1] == 0x80:
        code = load64(data + body + 2)
        if code < <uint64_t>1 << 63 and code != TRANSFER:
            return <int64_t>code
    return -1


cdef inline int64_t uint_of(const uint8_t* data, int64_t at) noexcept nogil:
    """The unsigned int at `at`, which was skipped before; -1 for null, -2 for another type."""
    if data[at] == 0x40:
        return -1
    if data[at] == 0x43:
        return 0
    if data[at] == 0x52:
        return data[at + 1]
    if data[at] == 0x70:
        return load32(data + at + 1)
    return -2


cdef inline int64_t boolean_of(const uint8_t* data, int64_t at) noexcept nogil:
    """The boolean at `at`, which was skipped before; -1 for null, -2 for another type."""
    if data[at] == 0x40:
        return -1
    if data[at] == 0x41 or data[at] == 0x42:
        return data[at] == 0x41
    if data[at] == 0x56 and data[at + 1] <= 1:
        return data[at + 1]
    return -2


cdef inline int fill_transfer(const uint8_t* data, int64_t* row) noexcept nogil:
    """Fill the columns of a transfer in the usual form; NOWHERE when it is in another.

    There is no column for resume and for a settle mode other than `first`: a transfer with one is not usual.
    """
    cdef int64_t at = row[F_BODY] + 3, behind, value = 0, start = 0
    cdef Items items
    cdef uint32_t field
    if row[F_TYPE] != 0 or take(at, 1, row[F_END]) == NOWHERE or (data[at] != 0xC0 and data[at] != 0xD0):
        return NOWHERE
    if compound(data, at, row[F_END], &items) == NOWHERE or items.count < 1 or items.count > TRANSFER_FIELDS:
        return NOWHERE
    at = items.start
    for field in range(items.count):
        behind = skip_value(data, at, items.end)
        if behind == NOWHERE:
            return NOWHERE
        if field == 2:
            if data[at] == 0xA0 or data[at] == 0xB0:
                variable(data, at, behind, &start)
                row[F_TAG] = start
                row[F_TAG_LENGTH] = behind - start
            elif data[at] != 0x40:
                return NOWHERE
        elif field == 6:
            if data[at] != 0x40 and (data[at] != 0x50 or data[at + 1] != 0):
                return NOWHERE
        elif field == 7:
            if data[at] != 0x40:
                row[F_STATE] = at
        else:
            value = uint_of(data, at) if field <= 3 else boolean_of(data, at)
            if value == -2 or (field == 8 and value == 1):
                return NOWHERE
            if field == 0:
                row[F_HANDLE] = value
            elif field == 1:
                row[F_DELIVERY_ID] = value
            elif field == 3:
                row[F_FORMAT] = value
            elif field == 4:
                row[F_SETTLED] = value
            elif field == 5:
                row[F_MORE] = value
            elif field == 9:
                row[F_ABORTED] = value
        at = behind
    if at != items.end or row[F_HANDLE] < 0:
        return NOWHERE
    row[F_PAYLOAD] = at
    return 0


cdef inline int scan_bytes(
    const uint8_t* data, int64_t* at, int64_t end, int64_t max_frame_size, int64_t* table, int64_t room, int64_t* rows
) noexcept nogil:
    cdef int64_t size, body
    cdef int64_t* row
    cdef int column
    while rows[0] < room and end - at[0] >= 4:
        size = load32(data + at[0])
        if size < 8:
            return SCAN_MALFORMED
        if size > max_frame_size:
            return SCAN_TOO_LARGE
        if end - at[0] < 8:
            break
        body = at[0] + 4 * <int64_t>data[at[0] + 4]
        if body < at[0] + 8 or body > at[0] + size:
            return SCAN_MALFORMED
        if size > end - at[0]:
            break
        row = table + rows[0] * FRAME_WIDTH
        row[F_START] = at[0]
        row[F_END] = at[0] + size
        row[F_CHANNEL] = load16(data + at[0] + 6)
        row[F_TYPE] = data[at[0] + 5]
        row[F_BODY] = body
        for column in range(F_HANDLE, FRAME_WIDTH):
            row[column] = -1
        row[F_CODE] = code_of(data, body, row[F_END])
        if row[F_CODE] == TRANSFER and fill_transfer(data, row) == NOWHERE:
            for column in range(F_HANDLE, FRAME_WIDTH):
                row[column] = -1
            row[F_CODE] = -1
        rows[0] += 1
        at[0] += size
    return SCAN_OK


cdef inline int64_t collect(int64_t* frame, int64_t count, int64_t* row, int64_t room) noexcept nogil:
    cdef int64_t taken = 0, channel = -1, handle = -1, expected = -1
    cdef bint settled = False
    while taken < count and taken < room:
        if frame[F_CODE] != TRANSFER or frame[F_TYPE] != 0 or frame[F_DELIVERY_ID] < 0:
            break
        if frame[F_MORE] == 1 or frame[F_ABORTED] == 1 or frame[F_STATE] >= 0 or frame[F_TAG_LENGTH] > MOST_TAG_BYTES:
            break
        if taken and (
            frame[F_CHANNEL] != channel or frame[F_HANDLE] != handle or frame[F_DELIVERY_ID] != expected
            or (frame[F_SETTLED] == 1) != settled
        ):
            break
        settled = frame[F_SETTLED] == 1
        channel = frame[F_CHANNEL]
        handle = frame[F_HANDLE]
        expected = <int64_t><uint32_t>(frame[F_DELIVERY_ID] + 1)
        row[D_DELIVERY_ID] = frame[F_DELIVERY_ID]
        row[D_START] = frame[F_PAYLOAD]
        row[D_LENGTH] = frame[F_END] - frame[F_PAYLOAD]
        row[D_SETTLED] = settled
        row[D_FORMAT] = max(<int64_t>0, frame[F_FORMAT])
        taken += 1
        frame += FRAME_WIDTH
        row += DELIVERY_WIDTH
    return taken
