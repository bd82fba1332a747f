# cython: language_level=3, boundscheck=True, wraparound=False, cdivision=True
"""Compiled kernels that walk and check stored batches. The twins: batches.py, scan_batches.py, follow_batches.py, and
crc.py of buffers/.

This page holds the doors: they borrow the buffers, check the call, and raise. The work is done by `nogil noexcept`
functions on pointers that answer with a code: batches.pxd, scan_batches.pxd, follow_batches.pxd, crc.pxd.
Long because each module that checks batches holds the checksum's tables once more.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from hubweir.kernels.batches.batches cimport Batch, open_batch, record_end
from hubweir.kernels.batches.follow_batches cimport Room, follow_run
from hubweir.kernels.batches.scan_batches cimport scan_run
from hubweir.kernels.buffers.bytes cimport NOWHERE
from hubweir.kernels.buffers.crc cimport crc, crc_by_table, crc_start
from hubweir.kernels.buffers.tables cimport borrow_table, check_range, refusal, rows_of
from hubweir.kernels.contract cimport *
from hubweir.kernels.stored_batch cimport KIND_EVENTS, RECORD_HEADER_SIZE

crc_start()


def crc32c(data, int64_t seed=0):
    cdef Py_buffer view
    if seed < 0 or seed > 0xFFFFFFFF:
        raise refusal(f"seed {seed} is no 32-bit number")
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        return crc(<uint32_t>seed, <const uint8_t*>view.buf, view.len)
    finally:
        PyBuffer_Release(&view)


def crc32c_by_table(data, int64_t seed=0):
    """What crc32c is where the processor has no instruction for it; the tests compare the two."""
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        return crc_by_table(<uint32_t>seed, <const uint8_t*>view.buf, view.len)
    finally:
        PyBuffer_Release(&view)


def find_record(run, int64_t batch_at, int64_t ordinal):
    cdef Py_buffer view
    cdef Batch batch
    cdef int64_t at, place
    PyObject_GetBuffer(run, &view, PyBUF_SIMPLE)
    try:
        if open_batch(<const uint8_t*>view.buf, view.len, batch_at, &batch) == NOWHERE:
            raise refusal(f"no stored batch at {batch_at} of {view.len} bytes")
        if ordinal < 0:
            raise refusal(f"no record has the place {ordinal}")
        at = batch.records
        for place in range(batch.count):
            stop = record_end(<const uint8_t*>view.buf, at, &batch)
            if stop == NOWHERE:
                raise refusal(f"no record at {at} of the batch at {batch_at}")
            if place == ordinal:
                return at
            at = stop
        return -1
    finally:
        PyBuffer_Release(&view)


def find_offset(run, int64_t batch_at, offset):
    cdef Py_buffer view
    cdef Batch batch
    cdef int64_t at, stop, ordinal
    cdef uint64_t wanted
    PyObject_GetBuffer(run, &view, PyBUF_SIMPLE)
    try:
        if open_batch(<const uint8_t*>view.buf, view.len, batch_at, &batch) == NOWHERE:
            raise refusal(f"no stored batch at {batch_at} of {view.len} bytes")
        if not 0 <= offset <= 0xFFFFFFFFFFFFFFFF:
            raise refusal(f"{offset} is no offset")
        wanted = offset
        at = batch.records
        for ordinal in range(batch.count):
            stop = record_end(<const uint8_t*>view.buf, at, &batch)
            if stop == NOWHERE:
                raise refusal(f"no record at {at} of the batch at {batch_at}")
            if batch.first_offset + <uint64_t>(at - batch.records) >= wanted:
                return at, ordinal
            at = stop
        return -1, batch.count
    finally:
        PyBuffer_Release(&view)


def scan_records(data, int64_t batch_at, table):
    cdef Py_buffer view, rows
    cdef Batch batch
    cdef int64_t at, stop, ordinal
    cdef int64_t* row
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        if open_batch(<const uint8_t*>view.buf, view.len, batch_at, &batch) == NOWHERE:
            raise refusal(f"no stored batch at {batch_at} of {view.len} bytes")
        if batch.kind != KIND_EVENTS:
            raise refusal(f"the batch at {batch_at} holds no events")
        borrow_table(table, &rows, True)
        try:
            at = batch.records
            for ordinal in range(min(batch.count, rows_of(&rows, RECORD_WIDTH))):
                stop = record_end(<const uint8_t*>view.buf, at, &batch)
                if stop == NOWHERE:
                    raise refusal(f"no record at {at} of the batch at {batch_at}")
                row = <int64_t*>rows.buf + ordinal * RECORD_WIDTH
                row[R_RECORD] = at
                row[R_LENGTH] = stop - at
                row[R_MESSAGE] = at + RECORD_HEADER_SIZE
                row[R_MESSAGE_LENGTH] = stop - at - RECORD_HEADER_SIZE
                at = stop
            return min(batch.count, rows_of(&rows, RECORD_WIDTH))
        finally:
            PyBuffer_Release(&rows)
    finally:
        PyBuffer_Release(&view)


# A scan of this many bytes takes long enough that other threads should run meanwhile.
cdef int64_t LONG_SCAN = 64 * 1024


def scan_batches(data, int64_t start, int64_t end, nonce, table):
    cdef Py_buffer view, rows
    cdef int64_t at = start, count = 0, room
    cdef int status
    cdef uint64_t wanted
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        check_range(start, end, view.len)
        if not 0 <= nonce <= 0xFFFFFFFFFFFFFFFF:
            raise refusal(f"{nonce} is no nonce")
        wanted = nonce
        borrow_table(table, &rows, True)
        try:
            room = rows_of(&rows, BATCH_WIDTH)
            if end - start < LONG_SCAN:
                status = scan_run(<const uint8_t*>view.buf, &at, end, wanted, <int64_t*>rows.buf, room, &count)
            else:
                with nogil:
                    status = scan_run(<const uint8_t*>view.buf, &at, end, wanted, <int64_t*>rows.buf, room, &count)
            return count, at, status
        finally:
            PyBuffer_Release(&rows)
    finally:
        PyBuffer_Release(&view)


def follow_batches(data, nonce, walk, entries, table):
    cdef Py_buffer view, row, noted, rows
    cdef Room room
    cdef int status
    cdef uint64_t wanted
    if not 0 <= nonce <= 0xFFFFFFFFFFFFFFFF:
        raise refusal(f"{nonce} is no nonce")
    wanted = nonce
    room.table = NULL
    room.rows = room.taken = room.written = 0
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        borrow_table(walk, &row, True)
        try:
            if rows_of(&row, WALK_WIDTH) < 1:
                raise refusal(f"a walk of {row.len // 8} numbers is none")
            borrow_table(entries, &noted, True)
            try:
                room.entries = <int64_t*>noted.buf
                room.most_entries = rows_of(&noted, SPARSE_WIDTH)
                if table is not None:
                    borrow_table(table, &rows, True)
                    room.table = <int64_t*>rows.buf
                    room.rows = rows_of(&rows, BATCH_WIDTH)
                try:
                    if view.len < LONG_SCAN:
                        status = follow_run(<const uint8_t*>view.buf, view.len, wanted, <int64_t*>row.buf, &room)
                    else:
                        with nogil:
                            status = follow_run(<const uint8_t*>view.buf, view.len, wanted, <int64_t*>row.buf, &room)
                finally:
                    if table is not None:
                        PyBuffer_Release(&rows)
                return room.taken, room.written, status
            finally:
                PyBuffer_Release(&noted)
        finally:
            PyBuffer_Release(&row)
    finally:
        PyBuffer_Release(&view)
