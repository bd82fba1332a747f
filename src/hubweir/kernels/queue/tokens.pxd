"""SipHash-2-4 of a lock's number, compiled. The twin is tokens.py."""

from libc.stdint cimport int64_t, uint8_t, uint64_t


cdef inline uint64_t turned(uint64_t value, int bits) noexcept nogil:
    return (value << bits) | (value >> (64 - bits))


cdef inline uint64_t reversed_bytes(uint64_t value) noexcept nogil:
    cdef uint64_t out = 0
    cdef int place
    for place in range(8):
        out = (out << 8) | ((value >> (8 * place)) & 0xFF)
    return out


cdef inline uint64_t little_endian(const uint8_t* data) noexcept nogil:
    cdef uint64_t out = 0
    cdef int place
    for place in range(8):
        out = out | (<uint64_t>data[place] << (8 * place))
    return out


cdef inline void sip_rounds(uint64_t* v, int count) noexcept nogil:
    cdef int place
    for place in range(count):
        v[0] += v[1]
        v[1] = turned(v[1], 13) ^ v[0]
        v[0] = turned(v[0], 32)
        v[2] += v[3]
        v[3] = turned(v[3], 16) ^ v[2]
        v[0] += v[3]
        v[3] = turned(v[3], 21) ^ v[0]
        v[2] += v[1]
        v[1] = turned(v[1], 17) ^ v[2]
        v[2] = turned(v[2], 32)


cdef inline uint64_t check_of(const uint8_t* secret, int64_t number) noexcept nogil:
    cdef uint64_t v[4]
    cdef uint64_t k0 = little_endian(secret), k1 = little_endian(secret + 8)
    # The number is hashed as its 8 bytes, big-endian; SipHash takes them as a little-endian word.
    cdef uint64_t block = reversed_bytes(<uint64_t>number)
    v[0] = k0 ^ 0x736F6D6570736575ULL
    v[1] = k1 ^ 0x646F72616E646F6DULL
    v[2] = k0 ^ 0x6C7967656E657261ULL
    v[3] = k1 ^ 0x7465646279746573ULL
    v[3] ^= block
    sip_rounds(v, 2)
    v[0] ^= block
    block = <uint64_t>8 << 56
    v[3] ^= block
    sip_rounds(v, 2)
    v[0] ^= block
    v[2] ^= 0xFF
    sip_rounds(v, 4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]
