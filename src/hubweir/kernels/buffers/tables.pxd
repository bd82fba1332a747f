"""The common part of all doors: borrowed buffers, tables, and an `out` that grows at its end."""

from cpython.buffer cimport PyBUF_FORMAT, PyBUF_ND, PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE, PyByteArray_Resize
from libc.stdint cimport int64_t, uint8_t

from hubweir.kernels.contract cimport D_LENGTH, D_START, DELIVERY_WIDTH


cdef inline object refusal(str text):
    from hubweir.errors import KernelRefusal

    return KernelRefusal(text)


cdef inline int borrow_table(object table, Py_buffer* view, bint writable) except -1:
    """Borrow the 64-bit numbers of an array('q'); the caller releases them."""
    PyObject_GetBuffer(table, view, PyBUF_FORMAT | PyBUF_ND | (PyBUF_WRITABLE if writable else PyBUF_SIMPLE))
    if view.itemsize != 8 or view.format == NULL or view.format[0] != c"q":
        PyBuffer_Release(view)
        raise refusal("a table is no array of 64-bit numbers")
    return 0


cdef inline int64_t rows_of(Py_buffer* view, int64_t width) noexcept:
    return view.len // (8 * width)


cdef inline int check_range(int64_t start, int64_t end, int64_t size) except -1:
    if start < 0 or end < start or size < end:
        raise refusal(f"bytes {start} to {end} do not lie in a buffer of {size}")
    return 0


cdef inline int check_rows(Py_buffer* view, int64_t width, int64_t first, int64_t last) except -1:
    if first < 0 or last < first or rows_of(view, width) < last:
        raise refusal(f"rows {first} to {last} do not lie in a table of {rows_of(view, width)}")
    return 0


cdef inline int check_deliveries(Py_buffer* data, Py_buffer* rows, int64_t first, int64_t last) except -1:
    """Refuse delivery rows that do not lie in their table, or deliveries that do not lie in data."""
    cdef int64_t* row
    cdef int64_t index
    check_rows(rows, DELIVERY_WIDTH, first, last)
    for index in range(first, last):
        row = <int64_t*>rows.buf + index * DELIVERY_WIDTH
        if row[D_START] < 0 or row[D_START] > data.len or row[D_LENGTH] < 0 or row[D_LENGTH] > data.len - row[D_START]:
            raise refusal(f"delivery row {index} does not lie in {data.len} bytes")
    return 0


cdef inline uint8_t* grow(bytearray out, int64_t capacity) except NULL:
    """Make out at least capacity bytes long. What is new holds anything: the caller cuts out to what it wrote."""
    if PyByteArray_GET_SIZE(out) < capacity:
        PyByteArray_Resize(out, capacity)
    return <uint8_t*>PyByteArray_AS_STRING(out)
