# cython: language_level=3, boundscheck=True, wraparound=False, cdivision=True
"""Compiled kernels of columns: delivered events to Arrow columns, and Arrow rows to batches.

This page holds the doors: they borrow the buffers, check the call, and raise. The work is done by `nogil noexcept`
functions on pointers: event_columns.pxd, stored_columns.pxd and column_buffers.pxd for what was delivered, arrow.pxd,
event_batches.pxd and keys.pxd of keys/ for what is sent. Each has a twin; that of rows_by_partition is partitions.py.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from hubweir.kernels.columns.arrow cimport Maps, Texts, Value, value_of
from hubweir.kernels.buffers.tables cimport borrow_table, check_rows, refusal
from hubweir.kernels.buffers.bytes cimport NOWHERE
from hubweir.kernels.columns.column_buffers cimport Columns, close_columns, open_columns
from hubweir.kernels.columns_contract cimport *
from hubweir.kernels.contract cimport BATCH_WIDTH, B_COUNT, B_LENGTH, D_LENGTH, D_START, DELIVERY_WIDTH
from hubweir.kernels.columns.event_columns cimport columns_of
from hubweir.kernels.buffers.growing cimport Out, close_out, open_out, put
from hubweir.kernels.keys.keys cimport hash_of
from hubweir.kernels.columns.event_batches cimport Row, Rows, open_row, put_row, sized, take_row
from hubweir.kernels.columns.stored_columns cimport stored_rows

cdef enum:
    MOST_LEASES = 16
    MOST_DIGITS = 9  # more are no partition of any hub
    MOST_ROOM = 1 << 24  # made for bodies before one is looked at


cdef class Lease:
    """Buffers borrowed for one call, given back when it is dropped."""

    cdef Py_buffer views[MOST_LEASES]
    cdef int held

    def __dealloc__(self):
        cdef int index
        for index in range(self.held):
            PyBuffer_Release(&self.views[index])

    cdef Py_buffer* borrow(self, object lender) except NULL:
        if self.held == MOST_LEASES:
            raise refusal("too many buffers in one call")
        PyObject_GetBuffer(lender, &self.views[self.held], PyBUF_SIMPLE)
        self.held += 1
        return &self.views[self.held - 1]

    cdef Py_buffer* borrow_numbers(self, object lender, bint writable) except NULL:
        if self.held == MOST_LEASES:
            raise refusal("too many buffers in one call")
        borrow_table(lender, &self.views[self.held], writable)
        self.held += 1
        return &self.views[self.held - 1]

    cdef int open_offsets(self, object validity, object offsets, int64_t first, Texts* texts) except -1:
        cdef Py_buffer* view = self.borrow(offsets)
        if first < 0 or first > MOST_COLUMN_BYTES or view.len % 4:
            raise refusal(f"{view.len} bytes of offsets from {first} on are no column")
        texts.there = True
        texts.offsets = <const uint8_t*>view.buf
        texts.offset_count = view.len // 4
        texts.first = first
        texts.validity = NULL
        texts.validity_bytes = 0
        texts.content = <const uint8_t*>PyBytes_AS_STRING(b"")
        texts.size = 0
        if validity is not None:
            view = self.borrow(validity)
            # A bitmap of no bytes may stand nowhere, but it is one: then no row is there.
            texts.validity = <const uint8_t*>view.buf if view.len else texts.content
            texts.validity_bytes = view.len
        return 0

    cdef int open_texts(self, tuple column, Texts* texts) except -1:
        cdef Py_buffer* view
        if column is None:
            texts.there = False
            return 0
        validity, offsets, content, first = column
        self.open_offsets(validity, offsets, first, texts)
        view = self.borrow(content)
        if view.len:
            texts.content = <const uint8_t*>view.buf
            texts.size = view.len
        return 0

    cdef int open_maps(self, tuple column, Maps* maps) except -1:
        if column is None:
            maps.rows.there = False
            return 0
        validity, offsets, first, keys, values = column
        self.open_offsets(validity, offsets, first, &maps.rows)
        if keys is None or values is None:
            raise refusal("a map without keys or values")
        self.open_texts(keys, &maps.keys)
        self.open_texts(values, &maps.values)
        return 0

    cdef int open_rows(self, tuple body, tuple keys, tuple properties, Rows* rows) except -1:
        if body is None:
            raise refusal("rows without a body")
        self.open_texts(body, &rows.body)
        self.open_texts(keys, &rows.keys)
        self.open_maps(properties, &rows.properties)
        return 0

    cdef int64_t* open_order(self, object order, int64_t first, int64_t last) except? NULL:
        """The row numbers of order, NULL when rows are taken as they stand."""
        cdef Py_buffer* view
        if first < 0 or last < first:
            raise refusal(f"places {first} to {last} do not lie in the order")
        if order is None:
            return NULL
        view = self.borrow_numbers(order, False)
        if view.len // 8 < last:
            raise refusal(f"places {first} to {last} do not lie in the order")
        return <int64_t*>view.buf


cdef int check_deliveries(Py_buffer* data, Py_buffer* rows, int64_t first, int64_t last) except -1:
    """Refuse delivery rows that do not lie in their table, or deliveries that do not lie in data."""
    cdef int64_t* row
    cdef int64_t index
    check_rows(rows, DELIVERY_WIDTH, first, last)
    for index in range(first, last):
        row = <int64_t*>rows.buf + index * DELIVERY_WIDTH
        if row[D_START] < 0 or row[D_START] > data.len or row[D_LENGTH] < 0 or row[D_LENGTH] > data.len - row[D_START]:
            raise refusal(f"delivery row {index} does not lie in {data.len} bytes")
    return 0


def event_columns(
    data, deliveries, int64_t first_row, int64_t last_row, int64_t expected, int64_t until, int64_t mask, int64_t rows,
    list columns not None, int64_t most_bytes=MOST_COLUMN_BYTES
):
    cdef Lease lease = Lease()
    cdef Py_buffer* view = lease.borrow(data)
    cdef Py_buffer* table = lease.borrow_numbers(deliveries, False)
    cdef Columns opened
    cdef int64_t row, size = 0
    cdef int64_t[3] span
    cdef int status = COLUMNS_OK
    span[0] = span[1] = span[2] = -1
    check_deliveries(view, table, first_row, last_row)
    for row in range(first_row, last_row):
        size += (<int64_t*>table.buf)[row * DELIVERY_WIDTH + D_LENGTH]
    row = first_row
    size = min(size, <int64_t>MOST_ROOM)
    open_columns(columns, mask, rows, most_bytes, last_row - first_row, size, &opened)
    try:
        columns_of(
            <const uint8_t*>view.buf, <int64_t*>table.buf, &row, last_row, expected, until, &opened, span, &status
        )
    finally:
        close_columns(&opened)
    return row, span[0], span[1], span[2], status


def stored_columns(
    data, batches, int64_t first_row, int64_t last_row, int64_t expected, int64_t until, int64_t mask, int64_t rows,
    list columns not None, int64_t most_bytes=MOST_COLUMN_BYTES
):
    cdef Lease lease = Lease()
    cdef Py_buffer* view = lease.borrow(data)
    cdef Py_buffer* table = lease.borrow_numbers(batches, False)
    cdef const int64_t* numbers = <const int64_t*>table.buf
    cdef Columns opened
    cdef int64_t place, row = first_row, count = table.len // (8 * BATCH_WIDTH), events = 0, size = 0
    cdef int64_t[4] span
    cdef int status = COLUMNS_OK
    span[0] = span[1] = span[2] = -1
    span[3] = 0
    for place in range(count):
        # Of the batches that the rows lie in.
        if events < last_row and events + numbers[place * BATCH_WIDTH + B_COUNT] > first_row:
            size += numbers[place * BATCH_WIDTH + B_LENGTH]
        events += numbers[place * BATCH_WIDTH + B_COUNT]
    if first_row < 0 or last_row < first_row or events < last_row:
        raise refusal(f"rows {first_row} to {last_row} do not lie in {count} batches of {events} events")
    open_columns(columns, mask, rows, most_bytes, last_row - first_row, min(size, <int64_t>MOST_ROOM), &opened)
    try:
        status = stored_rows(
            <const uint8_t*>view.buf, view.len, numbers, count, &row, last_row, expected, until, &opened, span,
        )
    finally:
        close_columns(&opened)
    return row, span[0], span[1], span[2], status


def event_batches(
    tuple body, tuple keys, tuple properties, order, int64_t first, int64_t last, int64_t max_bytes,
    bytes envelope not None, bytearray out not None
):
    cdef Lease lease = Lease()
    cdef Rows rows
    cdef Row row
    cdef Out to
    cdef int64_t place = first, begun, section, written
    cdef int status = ROWS_OK
    cdef int64_t* numbers = lease.open_order(order, first, last)
    if max_bytes < 0 or max_bytes > MOST_COLUMN_BYTES:
        raise refusal(f"{max_bytes} is no size of a transfer")
    lease.open_rows(body, keys, properties, &rows)
    open_out(out, 0, &to)
    begun = to.used
    try:
        while place < last:
            if open_row(&rows, place if numbers == NULL else numbers[place], &row) == NOWHERE:
                status = ROWS_MALFORMED
                break
            section = 3 + sized(row.size)
            written = to.used - begun if place > first else PyBytes_GET_SIZE(envelope)
            if section > max_bytes - written:
                status = ROWS_ROOM if place > first else ROWS_TOO_LARGE
                break
            if place == first:
                put(&to, <const uint8_t*>PyBytes_AS_STRING(envelope), PyBytes_GET_SIZE(envelope))
            put_row(&to, &rows, &row)
            place += 1
    finally:
        close_out(&to)
    return place, to.used - begun, status


def rows_digest(seed, tuple body, tuple keys, tuple properties, order, int64_t first, int64_t last):
    cdef Lease lease = Lease()
    cdef Rows rows
    cdef Row row
    cdef int64_t place
    cdef uint64_t digest
    cdef int64_t* numbers
    if not 0 <= seed <= 0xFFFFFFFFFFFFFFFF:
        raise refusal(f"{seed} is no 64-bit digest")
    digest = seed
    numbers = lease.open_order(order, first, last)
    lease.open_rows(body, keys, properties, &rows)
    for place in range(first, last):
        if open_row(&rows, place if numbers == NULL else numbers[place], &row) == NOWHERE:
            return digest, place
        digest = take_row(digest, &rows, &row)
    return digest, last


cdef int64_t partition_named(Value* wanted, int64_t partitions) noexcept nogil:
    """The partition of a decimal number as text; NOWHERE when there is none such."""
    cdef int64_t value = 0, index
    if wanted.size > MOST_DIGITS:
        return NOWHERE
    for index in range(wanted.size):
        if wanted.start[index] < c"0" or wanted.start[index] > c"9":
            return NOWHERE
        value = value * 10 + (wanted.start[index] - c"0")
    return value if value < partitions else NOWHERE


cdef int choose(
    Texts* keys, Texts* ids, int64_t* row, int64_t last, int64_t partitions, uint64_t spread, int32_t* chosen
) noexcept nogil:
    """Write the partition of each row from row[0] on to chosen; a status. row[0]: the first row not done."""
    cdef Value key, wanted
    cdef int64_t partition
    while row[0] < last:
        if value_of(keys, row[0], &key) == NOWHERE or value_of(ids, row[0], &wanted) == NOWHERE:
            return ROWS_MALFORMED
        if key.size > 0 and wanted.size > 0:
            return ROWS_TWO_TARGETS
        if wanted.size > 0:
            partition = partition_named(&wanted, partitions)
            if partition == NOWHERE:
                return ROWS_NO_PARTITION
        elif key.size > 0:
            partition = hash_of(key.start, key.size)
            partition = (-partition if partition < 0 else partition) % partitions
        else:
            partition = <int64_t>((spread + <uint64_t>row[0]) % <uint64_t>partitions)
        chosen[0] = <int32_t>partition
        chosen += 1
        row[0] += 1
    return ROWS_OK


cdef void sort_rows(
    const int32_t* chosen, int64_t first, int64_t last, int64_t partitions, int64_t* order, int64_t* starts
) noexcept nogil:
    """Counting sort: starts counts, then says where each group goes on, and at last where each one starts."""
    cdef int64_t index, at = 0, count
    for index in range(partitions + 1):
        starts[index] = 0
    for index in range(last - first):
        starts[chosen[index]] += 1
    for index in range(partitions):
        count = starts[index]
        starts[index] = at
        at += count
    for index in range(last - first):
        order[starts[chosen[index]]] = first + index
        starts[chosen[index]] += 1
    # Each now says where the next group starts.
    for index in range(partitions, 0, -1):
        starts[index] = starts[index - 1]
    starts[0] = 0


def rows_by_partition(
    tuple keys, tuple ids, int64_t first, int64_t last, int64_t partitions, int64_t spread, order, starts
):
    cdef Lease lease = Lease()
    cdef Texts key_texts, id_texts
    cdef int64_t row = first
    cdef int status
    cdef int32_t* chosen
    cdef Py_buffer* places = lease.borrow_numbers(order, True)
    cdef Py_buffer* groups = lease.borrow_numbers(starts, True)
    if first < 0 or last < first or partitions < 1 or partitions > MOST_COLUMN_BYTES or spread < 0:
        raise refusal(f"rows {first} to {last}, {partitions} partitions and start {spread} are no call")
    if places.len // 8 < last - first or groups.len // 8 < partitions + 1:
        raise refusal(f"tables of {places.len // 8} and {groups.len // 8} are too small")
    lease.open_texts(keys, &key_texts)
    lease.open_texts(ids, &id_texts)
    chosen = <int32_t*>PyMem_Malloc(<size_t>(4 * (last - first) + 4))
    if chosen == NULL:
        raise MemoryError
    try:
        status = choose(&key_texts, &id_texts, &row, last, partitions, <uint64_t>spread, chosen)
        if status == ROWS_OK:
            sort_rows(chosen, first, last, partitions, <int64_t*>places.buf, <int64_t*>groups.buf)
    finally:
        PyMem_Free(chosen)
    return row, status
