"""A bytearray that grows while `nogil` functions append to it.

Out borrows the bytearray's bytes from open_out to close_out. put and its kin make room themselves: the GIL is taken
only when the room is used up. When memory runs out `failed` is set, nothing more is written, and close_out raises; so
nobody has to look at `failed` but those who write behind themselves (patch does).
"""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE, PyByteArray_Resize
from cpython.ref cimport PyObject
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy, memmove

cdef extern from "Python.h":
    ctypedef struct PyByteArrayObject:
        Py_ssize_t ob_alloc

cdef enum:
    LEAST_GROWTH = 512

cdef struct Out:
    PyObject* owner
    uint8_t* bytes
    int64_t used
    int64_t capacity
    bint failed


cdef inline int open_out(bytearray owner, Out* out) except -1:
    cdef int64_t spare = (<PyByteArrayObject*><PyObject*>owner).ob_alloc - 1
    out.owner = <PyObject*>owner
    out.used = PyByteArray_GET_SIZE(owner)
    out.capacity = max(out.used, spare)
    out.failed = False
    if out.capacity > out.used:
        PyByteArray_Resize(owner, out.capacity)
    out.bytes = <uint8_t*>PyByteArray_AS_STRING(owner)
    return 0


cdef inline int close_out(Out* out) except -1:
    """Cut the bytearray to what was written; MemoryError when it could not grow as it had to."""
    PyByteArray_Resize(<bytearray>out.owner, out.used)
    if out.failed:
        raise MemoryError("a kernel's output could not grow")
    return 0


cdef inline void enlarge(Out* out, int64_t size) noexcept with gil:
    cdef int64_t wanted = max(out.used + size, out.capacity + out.capacity // 2)
    wanted = max(wanted, LEAST_GROWTH)
    try:
        PyByteArray_Resize(<bytearray>out.owner, wanted)
        out.bytes = <uint8_t*>PyByteArray_AS_STRING(<bytearray>out.owner)
        out.capacity = wanted
    except (MemoryError, BufferError):
        out.failed = True


cdef inline uint8_t* room(Out* out, int64_t size) noexcept nogil:
    """Where the next size bytes go, NULL when memory ran out; the caller moves `used`."""
    if out.failed:
        return NULL
    if size > out.capacity - out.used:
        enlarge(out, size)
        if out.failed:
            return NULL
    return out.bytes + out.used


cdef inline void put(Out* out, const uint8_t* content, int64_t size) noexcept nogil:
    cdef uint8_t* to = room(out, size)
    if to != NULL:
        memcpy(to, content, <size_t>size)
        out.used += size


cdef inline void put_byte(Out* out, int value) noexcept nogil:
    cdef uint8_t* to = room(out, 1)
    if to != NULL:
        to[0] = <uint8_t>value
        out.used += 1


cdef inline void patch(Out* out, int64_t at, int value) noexcept nogil:
    """Change a byte that was put before."""
    if at < out.used:
        out.bytes[at] = <uint8_t>value


cdef inline void open_gap(Out* out, int64_t at, int64_t size) noexcept nogil:
    """Move what was put from `at` on size bytes further; the gap holds anything."""
    if room(out, size) != NULL:
        memmove(out.bytes + at + size, out.bytes + at, <size_t>(out.used - at))
        out.used += size
