"""A bytearray that grows while `nogil` functions append to it.

Out borrows the bytearray's bytes from open_out to close_out. put and its kin make room themselves: the GIL is taken
only when the room is used up. When memory runs out `failed` is set, nothing more is written, and close_out raises; so
nobody has to look at `failed` but those who write behind themselves (patch does). room and put stand in C because a
compiler has to be told to inline the test for room and not the growth: that is half of the cost of a row.
"""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE, PyByteArray_Resize
from cpython.ref cimport PyObject
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memmove

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    #if defined(__GNUC__)
    #define HUBWEIR_HOT static inline __attribute__((always_inline))
    #define HUBWEIR_COLD static __attribute__((noinline, cold))
    #elif defined(_MSC_VER)
    #define HUBWEIR_HOT static __forceinline
    #define HUBWEIR_COLD static __declspec(noinline)
    #else
    #define HUBWEIR_HOT static inline
    #define HUBWEIR_COLD static
    #endif

    typedef struct {
        PyObject* owner;
        uint8_t* bytes;
        int64_t used;
        int64_t capacity;
        int failed;
    } hubweir_out;

    HUBWEIR_COLD void hubweir_enlarge(hubweir_out* out, int64_t size) {
        PyGILState_STATE held = PyGILState_Ensure();
        int64_t wanted = out->used + size + 512;
        if (wanted < 2 * out->capacity) wanted = 2 * out->capacity;
        if (PyByteArray_Resize(out->owner, (Py_ssize_t)wanted) < 0) {
            PyErr_Clear();
            out->failed = 1;
        } else {
            out->bytes = (uint8_t*)PyByteArray_AS_STRING(out->owner);
            out->capacity = wanted;
        }
        PyGILState_Release(held);
    }

    /* Where the next size bytes go, NULL when memory ran out; the caller moves `used`. */
    HUBWEIR_HOT uint8_t* hubweir_room(hubweir_out* out, int64_t size) {
        if (size > out->capacity - out->used) {
            if (!out->failed) hubweir_enlarge(out, size);
            if (out->failed) return NULL;
        }
        return out->bytes + out->used;
    }

    HUBWEIR_HOT void hubweir_put(hubweir_out* out, const void* content, int64_t size) {
        uint8_t* to = hubweir_room(out, size);
        if (to) {
            memcpy(to, content, (size_t)size);
            out->used += size;
        }
    }

    HUBWEIR_HOT void hubweir_put_byte(hubweir_out* out, int value) {
        uint8_t* to = hubweir_room(out, 1);
        if (to) {
            to[0] = (uint8_t)value;
            out->used += 1;
        }
    }

    /* Put up to 32 bytes if all are ASCII: 0 when they are not, or are more. Words that overlap cost less than the
       call of memcpy for a length that is not known before. */
    HUBWEIR_HOT int hubweir_put_short_ascii(hubweir_out* out, const uint8_t* text, int64_t size) {
        uint64_t first, second, third, last, seen = 0;
        uint8_t* to;
        if (size > 32) return 0;
        to = hubweir_room(out, size);
        if (!to) return 1;
        if (size >= 8) {
            memcpy(&first, text, 8);
            memcpy(&last, text + size - 8, 8);
            seen = first | last;
            if (size > 16) {
                memcpy(&second, text + 8, 8);
                memcpy(&third, text + size - 16, 8);
                seen |= second | third;
                memcpy(to + 8, &second, 8);
                memcpy(to + size - 16, &third, 8);
            }
            memcpy(to, &first, 8);
            memcpy(to + size - 8, &last, 8);
        } else {
            for (int64_t at = 0; at < size; at++) seen |= to[at] = text[at];
        }
        if (seen & 0x8080808080808080u) return 0;
        out->used += size;
        return 1;
    }
    """
    ctypedef struct Out "hubweir_out":
        PyObject* owner
        uint8_t* bytes
        int64_t used
        int64_t capacity
        bint failed

    ctypedef struct PyByteArrayObject:
        Py_ssize_t ob_alloc
        Py_ssize_t ob_exports

    uint8_t* room "hubweir_room"(Out* out, int64_t size) noexcept nogil
    void put "hubweir_put"(Out* out, const void* content, int64_t size) noexcept nogil
    bint put_short_ascii "hubweir_put_short_ascii"(Out* out, const uint8_t* text, int64_t size) noexcept nogil
    void put_byte "hubweir_put_byte"(Out* out, int value) noexcept nogil


cdef inline int open_out(bytearray owner, int64_t wanted, Out* out) except -1:
    """Borrow owner. wanted: bytes that will likely be written, 0 when nobody can say; taken for an empty owner only,
    since one that is appended to again and again has to grow by a share of what it holds.
    """
    cdef int64_t spare = (<PyByteArrayObject*><PyObject*>owner).ob_alloc - 1
    if (<PyByteArrayObject*><PyObject*>owner).ob_exports > 0:
        raise BufferError("an output that somebody holds a view of cannot grow")
    out.owner = <PyObject*>owner
    out.used = PyByteArray_GET_SIZE(owner)
    out.capacity = max(out.used if out.used > 0 else wanted, spare)
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


cdef inline void patch(Out* out, int64_t at, int value) noexcept nogil:
    """Change a byte that was put before."""
    if at < out.used:
        out.bytes[at] = <uint8_t>value


cdef inline void open_gap(Out* out, int64_t at, int64_t size) noexcept nogil:
    """Move what was put from `at` on size bytes further; the gap holds anything."""
    if room(out, size) != NULL:
        memmove(out.bytes + at + size, out.bytes + at, <size_t>(out.used - at))
        out.used += size
