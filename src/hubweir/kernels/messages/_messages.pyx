# cython: language_level=3, boundscheck=True, wraparound=False, cdivision=True
"""Compiled kernels that make records of deliveries, and open delivered messages. The twins: ingest.py, open_events.py.

This page holds the doors: they borrow the buffers, check the call, grow `out`, and raise. The work is done by
`nogil noexcept` functions on pointers that answer with a code: ingest.pxd, open_events.pxd. All bytes of a peer are
read through sections.pxd and bytes.pxd.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_GET_SIZE, PyByteArray_Resize
from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport int64_t, uint8_t, uint32_t

from hubweir.kernels.buffers.bytes cimport NOWHERE
from hubweir.kernels.buffers.tables cimport borrow_table, check_deliveries, check_range, grow, refusal, rows_of
from hubweir.kernels.contract cimport *
from hubweir.kernels.messages.check_messages cimport check_envelope, check_message
from hubweir.kernels.messages.ingest cimport (
    GROW, Records, append_envelope, append_record, is_taken, key_at, open_envelope,
)
from hubweir.kernels.messages.open_events cimport open_event
from hubweir.kernels.messages.sections cimport DATA, Message, Section, read_message, read_section, variable
from hubweir.kernels.stored_batch cimport RECORD_HEADER_SIZE


def ingest(
    data, rows, int64_t first_row, int64_t last_row, int64_t resume_at, bytes name, bytearray out not None, int64_t room
):
    cdef Py_buffer view, table
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        borrow_table(rows, &table, False)
        try:
            check_deliveries(&view, &table, first_row, last_row)
            return ingest_rows(
                <const uint8_t*>view.buf, <int64_t*>table.buf, first_row, last_row, resume_at, name, out, room
            )
        finally:
            PyBuffer_Release(&table)
    finally:
        PyBuffer_Release(&view)


cdef tuple ingest_rows(
    const uint8_t* data, int64_t* rows, int64_t first, int64_t last, int64_t resume_at, bytes name, bytearray out,
    int64_t room
):
    cdef Records records
    cdef Message message
    cdef int64_t* delivery
    cdef int64_t row = first, at, start, end, message_format, mark, events_before, bytes_in = 0
    cdef int status = INGEST_DONE
    cdef const uint8_t* wanted = NULL
    cdef int64_t wanted_length = 0
    if name is not None:
        wanted = <const uint8_t*>PyBytes_AS_STRING(name)
        wanted_length = len(name)
    if resume_at != 0:
        delivery = rows + first * DELIVERY_WIDTH
        if first == last or delivery[D_FORMAT] != <int64_t><uint32_t>BATCH_FORMAT or not (
            delivery[D_START] < resume_at < delivery[D_START] + delivery[D_LENGTH]
        ):
            raise refusal(f"no delivery can be resumed at {resume_at}")
    for row in range(first, last):
        bytes_in += rows[row * DELIVERY_WIDTH + D_LENGTH]
    row = first
    records.begun = records.used = PyByteArray_GET_SIZE(out)
    records.room = room
    records.events = records.needed = 0
    # A quarter more than came in holds the records of all but tiny events; more is asked for when it is needed.
    records.capacity = records.begun + max(<int64_t>256, min(room, bytes_in + bytes_in // 4))
    records.out = grow(out, records.capacity)
    try:
        while row < last:
            delivery = rows + row * DELIVERY_WIDTH
            start = delivery[D_START]
            end = start + delivery[D_LENGTH]
            message_format = delivery[D_FORMAT]
            mark, events_before = records.used, records.events
            at = start
            if resume_at != 0:
                at = resume_at
            else:
                if open_envelope(data, start, end, message_format, &message) == NOWHERE:
                    status = INGEST_MALFORMED
                    break
                if name is not None:
                    status = is_taken(data, &message, message_format, wanted, wanted_length)
                    if status != INGEST_DONE:
                        break
                if mark > records.begun and room - (mark - records.begun) < (
                    RECORD_HEADER_SIZE + end - start if message_format == 0
                    else RECORD_HEADER_SIZE * message.data_count + message.data_bytes
                ):
                    status = INGEST_ROOM
                    break
            while True:
                if message_format == 0:
                    status = append_record(data, start, end, &records)
                else:
                    status = append_envelope(data, &at, end, &records)
                if status != GROW:
                    break
                records.capacity = max(records.used + records.needed, records.begun + 2 * (records.used - records.begun))
                records.out = grow(out, records.capacity)
            if status == INGEST_ROOM:
                return row, at, records.events, status
            if status == INGEST_MALFORMED or status == INGEST_PROPERTIES:
                records.used, records.events = mark, events_before
                break
            resume_at = 0
            row += 1
    finally:
        PyByteArray_Resize(out, records.used)
    return row, 0, records.events, status


def find_key(data, int64_t start, int64_t end, int64_t message_format):
    cdef Py_buffer view
    cdef int64_t key = 0, key_length = 0
    cdef int where
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        check_range(start, end, view.len)
        where = key_at(<const uint8_t*>view.buf, start, end, message_format, &key, &key_length)
        return key, key_length, where
    finally:
        PyBuffer_Release(&view)


def count_events(data, int64_t start, int64_t end, int64_t message_format):
    cdef Py_buffer view
    cdef Message message, inner
    cdef Section section
    cdef int64_t at, stop, content = 0
    cdef const uint8_t* p
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        check_range(start, end, view.len)
        p = <const uint8_t*>view.buf
        if open_envelope(p, start, end, message_format, &message) == NOWHERE:
            return -1
        if message_format == 0:
            return 1
        at = start
        while at < end:
            at = read_section(p, at, end, &section)
            if at == NOWHERE:
                return -1
            if section.code == DATA:
                stop = variable(p, section.value, section.end, &content)
                if read_message(p, content, stop, &inner) == NOWHERE:
                    return -1
        return message.data_count
    finally:
        PyBuffer_Release(&view)


def open_events(data, rows, int64_t first_row, int64_t last_row, table):
    cdef Py_buffer view, deliveries, events
    cdef int64_t opened = 0, room
    cdef int64_t* delivery
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        borrow_table(rows, &deliveries, False)
        try:
            check_deliveries(&view, &deliveries, first_row, last_row)
            borrow_table(table, &events, True)
            try:
                room = min(rows_of(&events, EVENT_WIDTH), last_row - first_row)
                while opened < room:
                    delivery = <int64_t*>deliveries.buf + (first_row + opened) * DELIVERY_WIDTH
                    if delivery[D_FORMAT] != 0 or open_event(
                        <const uint8_t*>view.buf, delivery[D_START], delivery[D_START] + delivery[D_LENGTH],
                        <int64_t*>events.buf + opened * EVENT_WIDTH,
                    ) == NOWHERE:
                        break
                    opened += 1
                return opened
            finally:
                PyBuffer_Release(&events)
        finally:
            PyBuffer_Release(&deliveries)
    finally:
        PyBuffer_Release(&view)


def check_messages(data, rows, int64_t first_row, int64_t last_row, int64_t most_characters, bint needs_session):
    cdef Py_buffer view, table
    cdef Message message
    cdef const uint8_t* p
    cdef int64_t* delivery
    cdef int64_t row, start, end
    cdef int status
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        borrow_table(rows, &table, False)
        try:
            check_deliveries(&view, &table, first_row, last_row)
            p = <const uint8_t*>view.buf
            for row in range(first_row, last_row):
                delivery = <int64_t*>table.buf + row * DELIVERY_WIDTH
                start, end = delivery[D_START], delivery[D_START] + delivery[D_LENGTH]
                if open_envelope(p, start, end, delivery[D_FORMAT], &message) == NOWHERE:
                    return row, <int>CHECK_MALFORMED
                if delivery[D_FORMAT] == 0:
                    status = check_message(p, start, end, most_characters, needs_session)
                else:
                    status = check_envelope(p, start, end, most_characters, needs_session)
                if status != CHECK_OK:
                    return row, status
            return last_row, <int>CHECK_OK
        finally:
            PyBuffer_Release(&table)
    finally:
        PyBuffer_Release(&view)
