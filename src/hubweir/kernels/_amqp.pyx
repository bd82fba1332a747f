# cython: language_level=3, boundscheck=True, wraparound=False, cdivision=True
"""Compiled kernels that read and write frames: bytes into frames and deliveries, stored events into transfers.

The work is done by `nogil noexcept` functions on pointers that answer with a code; the wrappers at the end borrow the
buffers, check the call and raise. The twins are pure_frames.py and pure_deliver.py.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_GET_SIZE, PyByteArray_Resize
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from hubweir.kernels.batches cimport Batch, open_batch, record_end
from hubweir.kernels.buffers cimport borrow_table, check_range, check_rows, grow, refusal, rows_of
from hubweir.kernels.bytes cimport NOWHERE, load16, load32, load64, store16, store32, store64, take
from hubweir.kernels.contract cimport *
from hubweir.kernels.sections cimport (
    DELIVERY_ANNOTATIONS, HEADER, MESSAGE_ANNOTATIONS, Items, Section, compound, is_spelled, read_section, skip_value,
    variable,
)
from hubweir.kernels.stored_batch cimport *

cdef enum:
    TRANSFER = 0x14
    TRANSFER_FIELDS = 11
    LEAST_FRAME_SIZE = 512  # AMQP part 2 section 2.4.1: no peer may ask for less
    LEAST_ROOM = 1024       # what deliver asks for first, and at most, before it knows the events' sizes
    MOST_ROOM = 256 * 1024

    END = 0
    STOP = 1
    GROW = 2
    DAMAGED = 3


# Frames in.


cdef int64_t code_of(const uint8_t* data, int64_t body, int64_t end) noexcept nogil:
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


cdef int64_t uint_of(const uint8_t* data, int64_t at) noexcept nogil:
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


cdef int64_t boolean_of(const uint8_t* data, int64_t at) noexcept nogil:
    """The boolean at `at`, which was skipped before; -1 for null, -2 for another type."""
    if data[at] == 0x40:
        return -1
    if data[at] == 0x41 or data[at] == 0x42:
        return data[at] == 0x41
    if data[at] == 0x56 and data[at + 1] <= 1:
        return data[at + 1]
    return -2


cdef int fill_transfer(const uint8_t* data, int64_t* row) noexcept nogil:
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


cdef int scan(
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


cdef int64_t collect(int64_t* frame, int64_t count, int64_t* row, int64_t room) noexcept nogil:
    cdef int64_t taken = 0, channel = -1, handle = -1, expected = -1
    while taken < count and taken < room:
        if frame[F_CODE] != TRANSFER or frame[F_TYPE] != 0 or frame[F_DELIVERY_ID] < 0:
            break
        if frame[F_MORE] == 1 or frame[F_ABORTED] == 1 or frame[F_STATE] >= 0:
            break
        if taken and (
            frame[F_CHANNEL] != channel or frame[F_HANDLE] != handle or frame[F_DELIVERY_ID] != expected
        ):
            break
        channel = frame[F_CHANNEL]
        handle = frame[F_HANDLE]
        expected = <int64_t><uint32_t>(frame[F_DELIVERY_ID] + 1)
        row[D_DELIVERY_ID] = frame[F_DELIVERY_ID]
        row[D_START] = frame[F_PAYLOAD]
        row[D_LENGTH] = frame[F_END] - frame[F_PAYLOAD]
        row[D_SETTLED] = frame[F_SETTLED] == 1
        row[D_FORMAT] = max(<int64_t>0, frame[F_FORMAT])
        taken += 1
        frame += FRAME_WIDTH
        row += DELIVERY_WIDTH
    return taken


# Frames out.

cdef struct Range:
    int64_t start
    int64_t end

cdef struct Frames:
    # The end of out while frames are appended, and the frame that is being filled.
    uint8_t* out
    int64_t begun
    int64_t used
    int64_t capacity
    int64_t needed
    int64_t events
    int64_t frames
    int64_t piece          # payload bytes of a full frame
    int64_t left           # bytes of the message that stand in frames not begun yet
    int64_t open           # bytes that the current frame still takes
    int prefix_size
    uint8_t prefix[48]     # header and performative of the current delivery's frames

cdef struct Event:
    # One message as it goes out: pieces of the run, and what goes between them.
    Range header
    Range own              # its own delivery annotations
    Range rest[4]          # what is left between the sections that moved to the front
    Range kept             # entries of the stored message annotations, from which names are left out
    int64_t kept_count
    int64_t kept_size
    int64_t size
    int head_size
    uint8_t head[136]      # start of the message annotations: the service's three

cdef struct Name:
    # What the batch's name block adds to each event: one entry (key) or two (key and publisher) with the same text.
    int entries
    int64_t size
    Range text
    int key_size
    int publisher_size
    uint8_t key[32]
    uint8_t publisher[32]


cdef inline void begin_frame(Frames* frames) noexcept nogil:
    cdef uint8_t* to = frames.out + frames.used
    cdef int64_t payload = min(frames.left, frames.piece)
    frames.left -= payload
    frames.open = payload
    memcpy(to, frames.prefix, <size_t>frames.prefix_size)
    store32(to, <uint32_t>(frames.prefix_size + payload))
    to[frames.prefix_size - 6] = 0x41 if frames.left > 0 else 0x42
    frames.used += frames.prefix_size


cdef inline void put(Frames* frames, const uint8_t* source, int64_t size) noexcept nogil:
    """Append bytes of the message, going over to new frames where one is full."""
    while size > frames.open:
        memcpy(frames.out + frames.used, source, <size_t>frames.open)
        frames.used += frames.open
        source += frames.open
        size -= frames.open
        begin_frame(frames)
    memcpy(frames.out + frames.used, source, <size_t>size)
    frames.used += size
    frames.open -= size


cdef inline int write_string(uint8_t* to, int64_t length) noexcept nogil:
    """Write the constructor and size of a string; return how many bytes that took."""
    if length <= 0xFF:
        to[0] = 0xA1
        to[1] = <uint8_t>length
        return 2
    to[0] = 0xB1
    store32(to + 1, <uint32_t>length)
    return 5


cdef inline int write_symbol(uint8_t* to, const char* name, int size) noexcept nogil:
    to[0] = 0xA3
    to[1] = <uint8_t>size
    memcpy(to + 2, name, <size_t>size)
    return 2 + size


cdef void write_prefix(Frames* frames, int64_t channel, int64_t handle, bint settled) noexcept nogil:
    """Prepare what all frames of the call share; the size, the delivery's id and tag, and `more` are filled in later."""
    cdef uint8_t* to = frames.prefix
    cdef int at = 14
    store32(to, 0)
    to[4] = 2
    to[5] = 0
    store16(to + 6, <uint32_t>channel)
    memcpy(to + 8, b"\x00\x53\x14\xc0\x00\x0b", 6)
    if handle <= 0xFF:
        to[at] = 0x52
        to[at + 1] = <uint8_t>handle
        at += 2
    else:
        to[at] = 0x70
        store32(to + at + 1, <uint32_t>handle)
        at += 5
    # The delivery's id, its tag (4 bytes), message-format 0, settled, more, rcv-settle-mode and state null, then
    # resume, aborted and batchable false.
    memcpy(to + at, b"\x70....\xa0\x04....\x43\x42\x42\x40\x40\x42\x42\x42", 19)
    if settled:
        to[at + 12] = 0x41
    frames.prefix_size = at + 19
    to[12] = <uint8_t>(frames.prefix_size - 13)


cdef inline void name_delivery(Frames* frames, uint32_t delivery_id) noexcept nogil:
    store32(frames.prefix + frames.prefix_size - 18, delivery_id)
    store32(frames.prefix + frames.prefix_size - 12, delivery_id)


cdef void open_name(const uint8_t* data, Batch* batch, Name* name) noexcept nogil:
    name.entries = 0
    name.size = 0
    if batch.name_length == 0 or not batch.flags & (FLAG_NAME_IS_KEY | FLAG_NAME_IS_PUBLISHER):
        return
    name.text.start = batch.name
    name.text.end = batch.name + batch.name_length
    name.key_size = write_symbol(name.key, b"x-opt-partition-key", 19)
    name.key_size += write_string(name.key + name.key_size, batch.name_length)
    name.entries = 1
    name.size = name.key_size + batch.name_length
    if batch.flags & FLAG_NAME_IS_PUBLISHER:
        name.publisher_size = write_symbol(name.publisher, b"x-opt-publisher", 15)
        name.publisher_size += write_string(name.publisher + name.publisher_size, batch.name_length)
        name.entries = 2
        name.size += name.publisher_size + batch.name_length


cdef inline bint is_replaced(const uint8_t* data, int64_t at, int64_t end, bint named) noexcept nogil:
    """Whether the key at `at` is a name that the service writes itself."""
    cdef int64_t start = 0
    cdef uint8_t code = data[at]
    if code != 0xA3 and code != 0xA1 and code != 0xB3 and code != 0xB1:
        return False
    variable(data, at, end, &start)
    if end - start == 12:
        return is_spelled(data, start, end, b"x-opt-offset", 12)
    if end - start == 15:
        return is_spelled(data, start, end, b"x-opt-publisher", 15)
    if end - start == 21:
        return is_spelled(data, start, end, b"x-opt-sequence-number", 21)
    if is_spelled(data, start, end, b"x-opt-enqueued-time", 19):
        return True
    return named and is_spelled(data, start, end, b"x-opt-partition-key", 19)


cdef int count_kept(const uint8_t* data, Section* stored, bint named, Event* event) noexcept nogil:
    """Count the stored annotations that go out unchanged; NOWHERE when they are no map that can be walked."""
    cdef Items items
    cdef int64_t at, value, behind
    cdef uint32_t left
    if compound(data, stored.value, stored.end, &items) == NOWHERE or items.count % 2:
        return NOWHERE
    at = items.start
    for left in range(items.count // 2):
        value = skip_value(data, at, items.end)
        if value == NOWHERE:
            return NOWHERE
        behind = skip_value(data, value, items.end)
        if behind == NOWHERE:
            return NOWHERE
        if not is_replaced(data, at, value, named):
            event.kept_count += 1
            event.kept_size += behind - at
        at = behind
    event.kept.start = items.start
    event.kept.end = items.end
    return 0 if at == items.end else NOWHERE


cdef void put_kept(const uint8_t* data, Event* event, bint named, Frames* frames) noexcept nogil:
    cdef int64_t at = event.kept.start, value, behind
    while at < event.kept.end:
        value = skip_value(data, at, event.kept.end)
        behind = skip_value(data, value, event.kept.end)
        if not is_replaced(data, at, value, named):
            put(frames, data + at, behind - at)
        at = behind


cdef inline int open_section(
    const uint8_t* data, int64_t record, int64_t end, int field, int code, Section* section
) noexcept nogil:
    """Open the section whose position stands in a field of the record header: 1, 0 when it is absent, NOWHERE."""
    cdef uint32_t position = load32(data + record + field)
    if position == <uint32_t>ABSENT:
        return 0
    if <int64_t>position > end - record - RECORD_HEADER_SIZE:
        return NOWHERE
    if read_section(data, record + RECORD_HEADER_SIZE + position, end, section) == NOWHERE or section.code != code:
        return NOWHERE
    return 1


cdef int open_header(const uint8_t* data, int64_t record, int64_t end, Range* header) noexcept nogil:
    """Find the header section. It is first unless a sender put others before it: then walk to it."""
    cdef int64_t at = record + RECORD_HEADER_SIZE, stop
    cdef uint32_t header_end = load32(data + record + AT_HEADER_END)
    cdef int field
    cdef bint first = True
    cdef Section section
    header.start = header.end = at
    if header_end == 0:
        return 0
    if <int64_t>header_end > end - at:
        return NOWHERE
    for field in range(AT_DELIVERY_ANNOTATIONS, RECORD_HEADER_SIZE, 4):
        if load32(data + record + field) < header_end:
            first = False
    stop = at + header_end
    if first:
        header.end = stop
        return 0
    while at < stop:
        if read_section(data, at, stop, &section) == NOWHERE:
            return NOWHERE
        if section.code == HEADER:
            header.start = at
            header.end = section.end
            return 0
        at = section.end
    return NOWHERE


cdef inline void swap_if_later(Range* one, Range* other) noexcept nogil:
    cdef Range kept = one[0]
    if one.start > other.start:
        one[0] = other[0]
        other[0] = kept


cdef int open_event(const uint8_t* data, int64_t record, int64_t end, Name* name, Event* event) noexcept nogil:
    """Find the pieces of the record's message; NOWHERE when the record is damaged."""
    cdef Range moved[3]
    cdef Section section
    cdef int64_t at = record + RECORD_HEADER_SIZE
    cdef int found, index, count = 0
    event.kept_count = event.kept_size = 0
    event.kept.start = event.kept.end = 0
    event.own.start = event.own.end = 0
    event.size = end - at
    if open_header(data, record, end, &event.header) == NOWHERE:
        return NOWHERE
    if event.header.end > event.header.start:
        moved[count] = event.header
        count += 1
    found = open_section(data, record, end, AT_DELIVERY_ANNOTATIONS, DELIVERY_ANNOTATIONS, &section)
    if found == NOWHERE:
        return NOWHERE
    if found:
        event.own.start = section.start
        event.own.end = section.end
        moved[count] = event.own
        count += 1
    found = open_section(data, record, end, AT_MESSAGE_ANNOTATIONS, MESSAGE_ANNOTATIONS, &section)
    if found == NOWHERE:
        return NOWHERE
    if found:
        if count_kept(data, &section, name.entries > 0, event) == NOWHERE:
            return NOWHERE
        moved[count].start = section.start
        moved[count].end = section.end
        event.size -= section.end - section.start
        count += 1
    if count > 1:
        swap_if_later(&moved[0], &moved[1])
        if count > 2:
            swap_if_later(&moved[1], &moved[2])
            swap_if_later(&moved[0], &moved[1])
    for index in range(count):
        if moved[index].start < at:
            return NOWHERE
        event.rest[index].start = at
        event.rest[index].end = moved[index].start
        at = moved[index].end
    for index in range(count, 4):
        event.rest[index].start = at
        event.rest[index].end = end
        at = end
    return 0


cdef void write_head(Event* event, Name* name, uint64_t sequence_number, uint64_t offset, uint64_t time) noexcept nogil:
    """Write the start of the message annotations: section, map, and the service's three entries."""
    cdef uint8_t text[20]
    cdef int length = 0
    cdef int64_t content
    cdef int64_t count = 2 * (3 + name.entries + event.kept_count)
    cdef uint8_t* to = event.head
    while True:
        length += 1
        text[20 - length] = <uint8_t>(0x30 + offset % 10)
        offset = offset // 10
        if offset == 0:
            break
    # Keys of 21, 12 and 19 letters with their 2 bytes, a long, a string with its 2 bytes, a timestamp.
    content = 23 + 9 + 14 + 2 + length + 21 + 9 + name.size + event.kept_size
    memcpy(to, b"\x00\x53\x72", 3)
    if content + 1 <= 0xFF and count <= 0xFF:
        to[3] = 0xC1
        to[4] = <uint8_t>(content + 1)
        to[5] = <uint8_t>count
        to += 6
    else:
        to[3] = 0xD1
        store32(to + 4, <uint32_t>(content + 4))
        store32(to + 8, <uint32_t>count)
        to += 12
    memcpy(to, b"\xa3\x15x-opt-sequence-number\x81", 24)
    store64(to + 24, sequence_number)
    memcpy(to + 32, b"\xa3\x0cx-opt-offset\xa1", 15)
    to[47] = <uint8_t>length
    memcpy(to + 48, text + 20 - length, <size_t>length)
    to += 48 + length
    memcpy(to, b"\xa3\x13x-opt-enqueued-time\x83", 22)
    store64(to + 22, time)
    event.head_size = <int>(to + 30 - event.head)
    event.size += event.head_size + name.size + event.kept_size


cdef void write_event(const uint8_t* data, Event* event, Name* name, Frames* frames) noexcept nogil:
    cdef int index
    frames.left = event.size
    begin_frame(frames)
    if event.header.end > event.header.start:
        put(frames, data + event.header.start, event.header.end - event.header.start)
    if event.own.end > event.own.start:
        put(frames, data + event.own.start, event.own.end - event.own.start)
    put(frames, event.head, event.head_size)
    if name.entries > 0:
        put(frames, name.key, name.key_size)
        put(frames, data + name.text.start, name.text.end - name.text.start)
    if name.entries > 1:
        put(frames, name.publisher, name.publisher_size)
        put(frames, data + name.text.start, name.text.end - name.text.start)
    if event.kept_count > 0:
        put_kept(data, event, name.entries > 0, frames)
    for index in range(4):
        if event.rest[index].end > event.rest[index].start:
            put(frames, data + event.rest[index].start, event.rest[index].end - event.rest[index].start)


cdef struct Place:
    int64_t batch_at
    int64_t record_at
    int64_t ordinal


cdef int write_batch(
    const uint8_t* data, Batch* batch, Place* place, uint32_t delivery_id, int64_t max_events, int64_t max_frames,
    int64_t max_bytes, Frames* frames
) noexcept nogil:
    """Write the events of one batch from place on: END, STOP at a limit, GROW, or DAMAGED."""
    cdef Name name
    cdef Event event
    cdef int64_t stop, count, size
    open_name(data, batch, &name)
    while place.ordinal < batch.count:
        stop = record_end(data, place.record_at, batch)
        if stop == NOWHERE or open_event(data, place.record_at, stop, &name, &event) == NOWHERE:
            return DAMAGED
        write_head(
            &event, &name, batch.first_index + <uint64_t>place.ordinal,
            batch.first_offset + <uint64_t>(place.record_at - batch.records), batch.enqueued_time,
        )
        count = 1 if event.size <= frames.piece else (event.size + frames.piece - 1) // frames.piece
        size = event.size + count * frames.prefix_size
        if frames.events >= max_events:
            return STOP
        if frames.events > 0 and (
            frames.frames + count > max_frames or frames.used - frames.begun + size > max_bytes
        ):
            return STOP
        if size > frames.capacity - frames.used:
            frames.needed = size
            return GROW
        name_delivery(frames, delivery_id + <uint32_t>frames.events)
        write_event(data, &event, &name, frames)
        frames.events += 1
        frames.frames += count
        place.record_at = stop
        place.ordinal += 1
    return END


# The wrappers: borrow the buffers, check the call, raise.


def scan_frames(data, int64_t start, int64_t end, int64_t max_frame_size, table):
    cdef Py_buffer view, rows
    cdef int64_t at = start, count = 0
    cdef int status
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        check_range(start, end, view.len)
        borrow_table(table, &rows, True)
        try:
            status = scan(
                <const uint8_t*>view.buf, &at, end, max_frame_size, <int64_t*>rows.buf,
                rows_of(&rows, FRAME_WIDTH), &count,
            )
            return count, at, status
        finally:
            PyBuffer_Release(&rows)
    finally:
        PyBuffer_Release(&view)


def collect_deliveries(frames, int64_t first, int64_t last, rows):
    cdef Py_buffer table, deliveries
    borrow_table(frames, &table, False)
    try:
        check_rows(&table, FRAME_WIDTH, first, last)
        borrow_table(rows, &deliveries, True)
        try:
            return collect(
                <int64_t*>table.buf + first * FRAME_WIDTH, last - first, <int64_t*>deliveries.buf,
                rows_of(&deliveries, DELIVERY_WIDTH),
            )
        finally:
            PyBuffer_Release(&deliveries)
    finally:
        PyBuffer_Release(&table)


def deliver(
    run, int64_t batch_at, int64_t record_at, int64_t ordinal, int64_t channel, int64_t handle, int64_t delivery_id,
    bint settled, int64_t max_frame_size, int64_t max_events, int64_t max_frames, int64_t max_bytes,
    bytearray out not None
):
    cdef Py_buffer view
    PyObject_GetBuffer(run, &view, PyBUF_SIMPLE)
    try:
        if batch_at < 0 or batch_at > view.len or record_at < 0 or ordinal < 0 or (ordinal > 0 and record_at == 0):
            raise refusal(f"batch {batch_at}, record {record_at}, place {ordinal} are no position of a run")
        if not (0 <= channel <= 0xFFFF and 0 <= handle <= 0xFFFFFFFF and 0 <= delivery_id <= 0xFFFFFFFF):
            raise refusal(f"channel {channel}, handle {handle} or delivery id {delivery_id} is out of range")
        if max_frame_size < LEAST_FRAME_SIZE:
            raise refusal(f"max-frame-size {max_frame_size} is under {LEAST_FRAME_SIZE}")
        return deliver_run(
            <const uint8_t*>view.buf, view.len, Place(batch_at, record_at, ordinal), channel, handle,
            <uint32_t>delivery_id, settled, max_frame_size, max_events, max_frames, max_bytes, out,
        )
    finally:
        PyBuffer_Release(&view)


cdef tuple deliver_run(
    const uint8_t* data, int64_t size, Place place, int64_t channel, int64_t handle, uint32_t delivery_id,
    bint settled, int64_t max_frame_size, int64_t max_events, int64_t max_frames, int64_t max_bytes, bytearray out
):
    cdef Frames frames
    cdef Batch batch
    cdef int64_t left = size - place.batch_at
    cdef int status = END
    write_prefix(&frames, channel, handle, settled)
    frames.piece = max_frame_size - frames.prefix_size
    frames.events = frames.frames = frames.needed = frames.left = frames.open = 0
    frames.begun = frames.used = PyByteArray_GET_SIZE(out)
    frames.capacity = frames.begun + max(<int64_t>LEAST_ROOM, min(min(max_bytes, left + left // 2), <int64_t>MOST_ROOM))
    frames.out = grow(out, frames.capacity)
    try:
        while place.batch_at < size:
            if open_batch(data, size, place.batch_at, &batch) == NOWHERE:
                status = DAMAGED
                break
            if place.record_at == 0:
                place.record_at = batch.records
            status = END
            while batch.kind == KIND_EVENTS:
                status = write_batch(
                    data, &batch, &place, delivery_id, max_events, max_frames, max_bytes, &frames
                )
                if status != GROW:
                    break
                frames.capacity = max(frames.used + frames.needed, frames.begun + 2 * (frames.used - frames.begun))
                frames.out = grow(out, frames.capacity)
            if status != END:
                break
            place.batch_at, place.record_at, place.ordinal = batch.end, 0, 0
        if status == DAMAGED:
            frames.used = frames.begun
            raise refusal(f"the run is damaged in the batch at {place.batch_at}")
    finally:
        PyByteArray_Resize(out, frames.used)
    if status == STOP:
        return frames.events, frames.frames, place.batch_at, place.record_at if place.ordinal else 0, place.ordinal
    return frames.events, frames.frames, size, 0, 0
