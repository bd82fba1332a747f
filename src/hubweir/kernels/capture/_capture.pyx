# cython: language_level=3, boundscheck=True, wraparound=False, cdivision=True
"""Compiled kernels of Capture: stored events to Avro records, and Avro records to Arrow columns.

This page holds the doors: they borrow the buffers, check the call, and raise. The work is done by `nogil noexcept`
functions on pointers: capture_block.pxd, read_capture.pxd, avro.pxd, column_buffers.pxd of columns/. Each has a twin.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uint8_t, uint64_t

from hubweir.kernels.batches.batches cimport Batch, open_batch, record_end
from hubweir.kernels.buffers.tables cimport check_range, refusal
from hubweir.kernels.buffers.bytes cimport NOWHERE
from hubweir.kernels.capture.capture_block cimport Times, open_times, put_record
from hubweir.kernels.capture.read_capture cimport read_records
from hubweir.kernels.columns.column_buffers cimport Columns, close_columns, open_columns
from hubweir.kernels.columns_contract cimport CAPTURE_DAMAGED, CAPTURE_OK, MOST_COLUMN_BYTES
from hubweir.kernels.buffers.growing cimport Out, close_out, open_out
from hubweir.kernels.stored_batch cimport KIND_EVENTS

cdef enum:
    END = -1  # of a batch: go on with the next one; not a status
    MOST_ROOM = 1 << 20  # made in out before anything is written

cdef struct Walk:
    # Where the walk over a run stands, what it may write, and what it has written.
    int64_t batch_at
    int64_t record_at
    int64_t ordinal
    int64_t max_bytes
    int64_t max_events
    int64_t until
    int64_t begun
    int64_t events
    int64_t span[4]


cdef int write_batch(const uint8_t* data, Batch* batch, Walk* walk, Out* out) noexcept nogil:
    """Write the events of one batch: END, or the status with which the call is over."""
    cdef Times times
    cdef int64_t number, stop, mark
    open_times(&times, <int64_t>batch.enqueued_time)
    while walk.ordinal < batch.count:
        number = <int64_t>(batch.first_index + <uint64_t>walk.ordinal)
        if walk.events >= walk.max_events or (walk.until >= 0 and number >= walk.until):
            return CAPTURE_OK
        stop = record_end(data, walk.record_at, batch)
        if stop == NOWHERE:
            return CAPTURE_DAMAGED
        mark = out.used
        if put_record(out, data, batch, &times, walk.record_at, stop, number) == NOWHERE:
            out.used = mark
            return CAPTURE_DAMAGED
        if walk.events and out.used - walk.begun > walk.max_bytes:
            out.used = mark
            return CAPTURE_OK
        if walk.events == 0:
            walk.span[0] = number
            walk.span[2] = <int64_t>batch.enqueued_time
        walk.span[1] = number
        walk.span[3] = <int64_t>batch.enqueued_time
        walk.events += 1
        walk.record_at = stop
        walk.ordinal += 1
    return END


cdef int write_run(const uint8_t* data, int64_t size, Walk* walk, Out* out) noexcept nogil:
    cdef Batch batch
    cdef int status
    while walk.batch_at < size:
        if open_batch(data, size, walk.batch_at, &batch) == NOWHERE:
            return CAPTURE_DAMAGED
        if batch.kind == KIND_EVENTS:
            if walk.record_at == 0:
                walk.record_at = batch.records
            status = write_batch(data, &batch, walk, out)
            if status != END:
                walk.record_at = walk.record_at if walk.ordinal else 0
                return status
        walk.batch_at = batch.end
        walk.record_at = walk.ordinal = 0
    walk.batch_at = size
    return CAPTURE_OK


def capture_block(
    run, int64_t batch_at, int64_t record_at, int64_t ordinal, int64_t max_bytes, int64_t max_events, int64_t until,
    bytearray out not None
):
    cdef Py_buffer view
    cdef Walk walk = Walk(batch_at, record_at, ordinal, max_bytes, max_events, until, 0, 0, [-1, -1, -1, -1])
    cdef Out to
    cdef int status = CAPTURE_OK
    PyObject_GetBuffer(run, &view, PyBUF_SIMPLE)
    try:
        if batch_at < 0 or batch_at > view.len or record_at < 0 or ordinal < 0 or (ordinal > 0 and record_at == 0):
            raise refusal(f"batch {batch_at}, record {record_at}, place {ordinal} are no position of a run")
        # Records are about as large as what is stored; the rest is asked for when it is needed.
        open_out(out, max(<int64_t>0, min(min(max_bytes, (view.len - batch_at) // 4 * 5), <int64_t>MOST_ROOM)), &to)
        walk.begun = to.used
        try:
            # On a thread of the pool while the loop serves others: it must not wait for a block.
            with nogil:
                status = write_run(<const uint8_t*>view.buf, view.len, &walk, &to)
        finally:
            close_out(&to)
    finally:
        PyBuffer_Release(&view)
    return (
        walk.events, walk.batch_at, walk.record_at, walk.ordinal, walk.span[0], walk.span[1], walk.span[2],
        walk.span[3], status,
    )


def read_capture_block(
    data, int64_t start, int64_t end, int64_t count, int64_t since, int64_t until, int64_t mask, int64_t rows,
    list columns not None, int64_t most_bytes=MOST_COLUMN_BYTES
):
    cdef Py_buffer view
    cdef Columns opened
    cdef int64_t at = start
    cdef int64_t[4] counts
    cdef int status
    counts[0] = counts[1] = 0
    counts[2] = counts[3] = -1
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        check_range(start, end, view.len)
        open_columns(
            columns, mask, rows, most_bytes, max(<int64_t>0, min(count, end - start)),
            min(end - start, <int64_t>MOST_ROOM), &opened,
        )
        try:
            status = read_records(<const uint8_t*>view.buf, &at, end, count, since, until, &opened, counts)
        finally:
            close_columns(&opened)
    finally:
        PyBuffer_Release(&view)
    return at, counts[0], counts[1], counts[2], counts[3], status
