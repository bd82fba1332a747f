"""Big-endian loads and stores, and the one primitive through which every length passes.

take() is the only place where a size meets a position: it returns the position behind size bytes, or NOWHERE when they
are not all there, and adds nothing before it knows. Positions and sizes are 64-bit and never negative; sizes that a
peer declares are read as unsigned 32-bit numbers first. load and store touch bytes that take() has granted.
"""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef enum:
    NOWHERE = -1


cdef inline int64_t take(int64_t at, int64_t size, int64_t end) noexcept nogil:
    if size > end - at:
        return NOWHERE
    return at + size


cdef inline uint16_t load16(const uint8_t* p) noexcept nogil:
    return <uint16_t>((<uint32_t>p[0] << 8) | p[1])


cdef inline uint32_t load32(const uint8_t* p) noexcept nogil:
    return (<uint32_t>p[0] << 24) | (<uint32_t>p[1] << 16) | (<uint32_t>p[2] << 8) | <uint32_t>p[3]


cdef inline uint64_t load64(const uint8_t* p) noexcept nogil:
    return (<uint64_t>load32(p) << 32) | <uint64_t>load32(p + 4)


cdef inline void store16(uint8_t* p, uint32_t value) noexcept nogil:
    p[0] = <uint8_t>(value >> 8)
    p[1] = <uint8_t>value


cdef inline void store32(uint8_t* p, uint32_t value) noexcept nogil:
    p[0] = <uint8_t>(value >> 24)
    p[1] = <uint8_t>(value >> 16)
    p[2] = <uint8_t>(value >> 8)
    p[3] = <uint8_t>value


cdef inline void store64(uint8_t* p, uint64_t value) noexcept nogil:
    store32(p, <uint32_t>(value >> 32))
    store32(p + 4, <uint32_t>value)
