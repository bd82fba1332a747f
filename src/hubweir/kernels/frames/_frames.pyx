# cython: language_level=3, boundscheck=True, wraparound=False, cdivision=True
"""Compiled kernels that read and write frames: bytes into frames and deliveries, stored events into transfers.

This page holds deliver's walk over a run and the doors: they borrow the buffers, check the call, grow `out`, and
raise. The work is done by `nogil noexcept` functions on pointers that answer with a code: frames.pxd, deliver.pxd,
transfers.pxd, deliver_batches.pxd, dispositions.pxd. All bytes of a peer are read through sections.pxd and bytes.pxd. Each has a twin.

Long because each kernel that writes frames has its door here, with its checks.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_GET_SIZE, PyByteArray_Resize
from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc

from hubweir.kernels.contract import RunCursor
from hubweir.kernels.batches.batches cimport Batch, open_batch, record_end
from hubweir.kernels.buffers.tables cimport borrow_table, check_range, check_rows, grow, refusal, rows_of
from hubweir.kernels.buffers.bytes cimport NOWHERE, store32
from hubweir.kernels.contract cimport (
    DELIVERY_WIDTH, DISPOSITION_WIDTH, FLOW_WIDTH, FRAME_WIDTH, MESSAGE_WIDTH, Q_RECORD, STATE_WIDTH, STORED_FORMAT,
)
from hubweir.kernels.buffers.crc cimport crc_start
from hubweir.kernels.frames.frames cimport collect, scan_bytes
from hubweir.kernels.frames.dispositions cimport Said, collect_said, merge_said
from hubweir.kernels.frames.deliver cimport Event, Inserted, Name, is_replaced, open_event, open_name, write_head
from hubweir.kernels.frames.deliver_messages cimport (
    GROWTH, ID_DIGITS, TAG_SIZE, Outgoing, record_of, write_message, write_tag,
)
from hubweir.kernels.messages.sections cimport skip_value
from hubweir.kernels.stored_batch cimport KIND_EVENTS, RECORD_HEADER_SIZE
from hubweir.kernels.frames.deliver_batches cimport Load, Place, load_delivery, put_load
from hubweir.kernels.frames.transfers cimport Frames, Room, begin_frame, has_room, name_delivery, put, write_prefix

cdef enum:
    LEAST_FRAME_SIZE = 512  # AMQP part 2 section 2.4.1: no peer may ask for less
    # How much room deliver makes in out before it knows the events' sizes, at least and at most.
    LEAST_ROOM = 1024
    MOST_ROOM = 256 * 1024

    END = 0
    STOP = 1
    GROW = 2
    DAMAGED = 3

crc_start()

cdef void put_kept(const uint8_t* data, Event* event, bint named, Frames* frames) noexcept nogil:
    """Append the stored annotations that go out unchanged, as count_kept counted them."""
    cdef int64_t at = event.kept.start, value, behind
    while at < event.kept.end:
        value = skip_value(data, at, event.kept.end)
        if value == NOWHERE:
            return
        behind = skip_value(data, value, event.kept.end)
        if behind == NOWHERE:
            return
        if not is_replaced(data, at, value, named):
            put(frames, data + at, behind - at)
        at = behind


cdef void write_event(
    const uint8_t* data, Event* event, Name* name, Inserted* inserted, Frames* frames
) noexcept nogil:
    """Write one delivery; there is room for it."""
    cdef int index
    frames.left = event.size
    begin_frame(frames)
    if event.header.end > event.header.start:
        put(frames, data + event.header.start, event.header.end - event.header.start)
    if inserted.size > 0:
        put(frames, inserted.bytes, inserted.size)
    elif event.own.end > event.own.start:
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


cdef int write_batch(
    const uint8_t* data, Batch* batch, Place* place, Inserted* inserted, Frames* frames
) noexcept nogil:
    """Write the events of one batch from place on: END, STOP where there is no room, GROW, or DAMAGED."""
    cdef Name name
    cdef Event event
    cdef int64_t stop, count, size
    open_name(data, batch, &name)
    while place.ordinal < batch.count:
        stop = record_end(data, place.record_at, batch)
        if stop == NOWHERE or open_event(data, place.record_at, stop, &name, inserted, &event) == NOWHERE:
            return DAMAGED
        write_head(
            &event, &name, batch.first_index + <uint64_t>place.ordinal,
            batch.first_offset + <uint64_t>(place.record_at - batch.records), batch.enqueued_time,
        )
        count = 1 if event.size <= frames.piece else (event.size + frames.piece - 1) // frames.piece
        size = event.size + count * frames.prefix_size
        if frames.deliveries >= frames.room.deliveries or not has_room(frames, count, size):
            return STOP
        if size > frames.capacity - frames.used:
            frames.needed = size
            return GROW
        name_delivery(frames)
        write_event(data, &event, &name, inserted, frames)
        frames.deliveries += 1
        frames.frames += count
        place.record_at = stop
        place.ordinal += 1
    return END


def scan_frames(data, int64_t start, int64_t end, int64_t max_frame_size, table):
    cdef Py_buffer view, rows
    cdef int64_t at = start, count = 0
    cdef int status
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        check_range(start, end, view.len)
        borrow_table(table, &rows, True)
        try:
            status = scan_bytes(
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


def collect_dispositions(data, frames, int64_t first, int64_t last, rows, states, flows):
    cdef Py_buffer view, table, said, stated, granted
    cdef int64_t taken
    cdef Said out
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        borrow_table(frames, &table, False)
        try:
            check_rows(&table, FRAME_WIDTH, first, last)
            borrow_table(rows, &said, True)
            try:
                borrow_table(states, &stated, True)
                try:
                    borrow_table(flows, &granted, True)
                    try:
                        out = Said(
                            <int64_t*>said.buf, <int64_t*>stated.buf, <int64_t*>granted.buf,
                            0, rows_of(&said, DISPOSITION_WIDTH), 0, rows_of(&stated, STATE_WIDTH),
                            0, rows_of(&granted, FLOW_WIDTH),
                        )
                        taken = collect_said(
                            <const uint8_t*>view.buf, view.len, <const int64_t*>table.buf, first, last, &out
                        )
                        if taken == NOWHERE:
                            raise refusal(f"a frame of rows {first} to {last} does not lie in a buffer of {view.len}")
                        return taken, out.count, out.kinds, out.flow_count
                    finally:
                        PyBuffer_Release(&granted)
                finally:
                    PyBuffer_Release(&stated)
            finally:
                PyBuffer_Release(&said)
        finally:
            PyBuffer_Release(&table)
    finally:
        PyBuffer_Release(&view)


def merge_dispositions(rows, int64_t count):
    cdef Py_buffer said
    cdef int64_t* near
    borrow_table(rows, &said, True)
    try:
        check_rows(&said, DISPOSITION_WIDTH, 0, count)
        if count == 0:
            return count
        near = <int64_t*>malloc(count * DISPOSITION_WIDTH * sizeof(int64_t))
        if near == NULL:
            raise MemoryError
        count = merge_said(<int64_t*>said.buf, count, near)
        free(near)
        return count
    finally:
        PyBuffer_Release(&said)


cdef Place place_of(cursor, int64_t size) except *:
    """Where a cursor stands in a run of so many bytes."""
    cdef int64_t batch_at = cursor.batch_at, record_at = cursor.record_at, ordinal = cursor.ordinal
    if batch_at < 0 or batch_at > size or record_at < 0 or ordinal < 0 or (ordinal > 0 and record_at == 0):
        raise refusal(f"batch {batch_at}, record {record_at}, place {ordinal} are no position of a run")
    return Place(batch_at, record_at, ordinal)


cdef object cursor_of(Place place, int64_t size):
    """Where the next call goes on."""
    if place.batch_at >= size:
        return RunCursor(size)
    return RunCursor(place.batch_at, place.record_at if place.ordinal else 0, place.ordinal)


cdef int begin_frames(
    Frames* frames, bytearray out, form, int64_t delivery_id, room, uint32_t message_format, int tag_size
) except -1:
    """Check what a call says of its frames, and prepare them at the end of out; nothing is written yet."""
    cdef int64_t channel = form.channel, handle = form.handle, max_frame_size = form.max_frame_size
    if not (0 <= channel <= 0xFFFF and 0 <= handle <= 0xFFFFFFFF and 0 <= delivery_id <= 0xFFFFFFFF):
        raise refusal(f"channel {channel}, handle {handle} or delivery id {delivery_id} is out of range")
    if max_frame_size < LEAST_FRAME_SIZE:
        raise refusal(f"max-frame-size {max_frame_size} is under {LEAST_FRAME_SIZE}")
    frames.room = Room(room.deliveries, room.frames, room.bytes)
    write_prefix(frames, channel, handle, form.settled, message_format, tag_size)
    frames.piece = max_frame_size - frames.prefix_size
    frames.first_id = <uint32_t>delivery_id
    frames.events = frames.deliveries = frames.frames = frames.needed = frames.left = frames.open = 0
    frames.begun = frames.used = frames.capacity = PyByteArray_GET_SIZE(out)
    return 0


def deliver(
    run, cursor, form, int64_t delivery_id, room, bytearray out not None, bytes inserted not None=b""
):
    cdef Py_buffer view
    cdef Frames frames
    PyObject_GetBuffer(run, &view, PyBUF_SIMPLE)
    try:
        begin_frames(&frames, out, form, delivery_id, room, 0, 4)
        return deliver_run(
            <const uint8_t*>view.buf, view.len, place_of(cursor, view.len),
            Inserted(<const uint8_t*>PyBytes_AS_STRING(inserted), len(inserted)), &frames, out,
        )
    finally:
        PyBuffer_Release(&view)


cdef tuple deliver_run(
    const uint8_t* data, int64_t size, Place place, Inserted inserted, Frames* frames, bytearray out
):
    cdef Batch batch
    cdef int64_t left = size - place.batch_at
    cdef int status = END
    frames.capacity += max(
        <int64_t>LEAST_ROOM, min(min(frames.room.bytes, left + left // 2), <int64_t>MOST_ROOM)
    )
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
                status = write_batch(data, &batch, &place, &inserted, frames)
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
    return frames.deliveries, frames.frames, cursor_of(place, size)


def deliver_batches(
    run, cursor, form, int64_t delivery_id, room, int64_t max_events, bytearray out not None
):
    cdef Py_buffer view
    cdef Frames frames
    PyObject_GetBuffer(run, &view, PyBUF_SIMPLE)
    try:
        begin_frames(&frames, out, form, delivery_id, room, STORED_FORMAT, 4)
        return deliver_stored(
            <const uint8_t*>view.buf, view.len, place_of(cursor, view.len), max_events, &frames, out
        )
    finally:
        PyBuffer_Release(&view)


cdef tuple deliver_stored(
    const uint8_t* data, int64_t size, Place place, int64_t max_events, Frames* frames, bytearray out
):
    cdef Load load
    cdef int64_t count, whole, left
    try:
        while place.batch_at < size and frames.events < max_events and frames.deliveries < frames.room.deliveries:
            left = min(frames.piece, frames.room.bytes - (frames.used - frames.begun) - frames.prefix_size)
            if frames.deliveries > 0 and left < frames.piece:
                break
            if load_delivery(data, size, place, left, max_events - frames.events, &load) == NOWHERE:
                frames.used = frames.begun
                raise refusal(f"the run is damaged in the batch at {load.stop.batch_at}")
            if load.events == 0:  # nothing but batches that are no events
                place = load.stop
                break
            count = (load.size + frames.piece - 1) // frames.piece
            whole = load.size + count * frames.prefix_size
            if not has_room(frames, count, whole):
                break
            if whole > frames.capacity - frames.used:
                frames.capacity = frames.used + max(whole, min(frames.room.bytes, size - place.batch_at) + LEAST_ROOM)
                frames.out = grow(out, frames.capacity)
            name_delivery(frames)
            frames.left = load.size
            begin_frame(frames)
            put_load(data, size, &place, &load, frames)
            frames.events += load.events
            frames.frames += count
            frames.deliveries += 1
    finally:
        PyByteArray_Resize(out, frames.used)
    return frames.events, frames.deliveries, frames.frames, cursor_of(place, size)


def deliver_messages(
    run, rows, int64_t first_row, bytes id_prefix not None, form, int64_t delivery_id, room, bytearray out not None,
    handles=None
):
    cdef Py_buffer view, table, numbers
    cdef Frames frames
    cdef int64_t last_row
    cdef int64_t* handle = NULL
    borrow_table(rows, &table, False)
    try:
        last_row = rows_of(&table, MESSAGE_WIDTH)
        check_rows(&table, MESSAGE_WIDTH, first_row, last_row)
        check_prefix(id_prefix)
        PyObject_GetBuffer(run, &view, PyBUF_SIMPLE)
        try:
            begin_frames(&frames, out, form, delivery_id, room, 0, TAG_SIZE)
            if handles is not None:
                borrow_table(handles, &numbers, False)
            try:
                if handles is not None:
                    check_handles(&numbers, last_row)
                    handle = <int64_t*>numbers.buf + first_row
                return deliver_table(
                    <const uint8_t*>view.buf, view.len, <int64_t*>table.buf + first_row * MESSAGE_WIDTH, handle,
                    min(last_row - first_row, frames.room.deliveries), id_prefix, form, &frames, out,
                )
            finally:
                if handles is not None:
                    PyBuffer_Release(&numbers)
        finally:
            PyBuffer_Release(&view)
    finally:
        PyBuffer_Release(&table)


def encode_message(run, rows, int64_t row, bytes id_prefix not None):
    cdef Py_buffer view, table
    cdef Outgoing message
    message.bytes = NULL
    borrow_table(rows, &table, False)
    try:
        check_rows(&table, MESSAGE_WIDTH, row, row + 1)
        check_prefix(id_prefix)
        PyObject_GetBuffer(run, &view, PyBUF_SIMPLE)
        try:
            build(
                <const uint8_t*>view.buf, view.len, <int64_t*>table.buf + row * MESSAGE_WIDTH, id_prefix, &message,
            )
            return message.bytes[:message.size]
        finally:
            free(message.bytes)
            PyBuffer_Release(&view)
    finally:
        PyBuffer_Release(&table)


cdef int check_handles(Py_buffer* numbers, int64_t rows) except -1:
    cdef int64_t* handle = <int64_t*>numbers.buf
    cdef int64_t at
    check_rows(numbers, 1, 0, rows)
    for at in range(rows_of(numbers, 1)):
        if not 0 <= handle[at] <= 0xFFFFFFFF:
            raise refusal("a handle is out of range")
    return 0


cdef int check_prefix(bytes id_prefix) except -1:
    if len(id_prefix) != ID_DIGITS:
        raise refusal(f"the front of a message id has {ID_DIGITS} bytes, not {len(id_prefix)}")
    return 0


cdef int build(const uint8_t* data, int64_t size, const int64_t* row, bytes id_prefix, Outgoing* message) except -1:
    """Put the message of a row together; message.bytes is what it was, or larger, and the caller's to free."""
    cdef int64_t end = record_of(data, size, row[Q_RECORD])
    cdef void* room
    if end != NOWHERE:
        room = realloc(message.bytes, <size_t>(end - row[Q_RECORD] + GROWTH))
        if room == NULL:
            raise MemoryError
        message.bytes = <uint8_t*>room
        if write_message(
            data, row[Q_RECORD] + RECORD_HEADER_SIZE, end, row, <const uint8_t*>PyBytes_AS_STRING(id_prefix), message
        ) != NOWHERE:
            return 0
    raise refusal("the run is damaged, or a row names no record of it")


cdef tuple deliver_table(
    const uint8_t* data, int64_t size, const int64_t* row, const int64_t* handle, int64_t count, bytes id_prefix, form,
    Frames* frames, bytearray out
):
    """handle: of each row; NULL: all have the form's."""
    cdef Outgoing message
    cdef int64_t pieces, whole, channel = form.channel, max_frame_size = form.max_frame_size
    cdef bint settled = form.settled
    message.bytes = NULL
    try:
        while frames.deliveries < count:
            try:
                build(data, size, row, id_prefix, &message)
            except BaseException:
                frames.used = frames.begun
                raise
            if handle != NULL:
                write_prefix(frames, channel, handle[frames.deliveries], settled, 0, TAG_SIZE)
                frames.piece = max_frame_size - frames.prefix_size
            pieces = (message.size + frames.piece - 1) // frames.piece
            whole = message.size + pieces * frames.prefix_size
            if not has_room(frames, pieces, whole):
                break
            if whole > frames.capacity - frames.used:
                frames.capacity = frames.used + max(
                    whole, min(frames.room.bytes, <int64_t>MOST_ROOM), <int64_t>LEAST_ROOM
                )
                frames.out = grow(out, frames.capacity)
            name_message(frames, row)
            frames.left = message.size
            begin_frame(frames)
            put(frames, message.bytes, message.size)
            frames.deliveries += 1
            frames.frames += pieces
            row += MESSAGE_WIDTH
    finally:
        free(message.bytes)
        PyByteArray_Resize(out, frames.used)
    return frames.deliveries, frames.frames


cdef void name_message(Frames* frames, const int64_t* row) noexcept nogil:
    """Make the prefix that of the next message: its delivery's id, and its tag."""
    store32(frames.prefix + frames.id_at, frames.first_id + <uint32_t>frames.deliveries)
    write_tag(frames.prefix + frames.id_at + 6, row)
