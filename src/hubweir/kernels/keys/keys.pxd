"""The hash of partition keys, compiled: lookup3 (hashlittle2, both seeds 0) folded to 16 bits. The twin: keys.py."""

from libc.stdint cimport int16_t, int64_t, uint8_t, uint32_t


cdef inline uint32_t rotate(uint32_t value, int bits) noexcept nogil:
    return (value << bits) | (value >> (32 - bits))


cdef inline uint32_t word(const uint8_t* key, int64_t at, int64_t length) noexcept nogil:
    """Four bytes at `at`, the least first; what lies behind the key is 0."""
    cdef uint32_t value = 0
    cdef int64_t index
    for index in range(min(<int64_t>4, length - at)):
        value |= <uint32_t>key[at + index] << (8 * index)
    return value


cdef inline int64_t hash_of(const uint8_t* key, int64_t length) noexcept nogil:
    """The hash of a key, -32768 to 32767."""
    cdef uint32_t a, b, c
    cdef int64_t at = 0
    a = b = c = <uint32_t>0xDEADBEEF + <uint32_t>length
    if length == 0:
        return 0
    while length - at > 12:
        a += word(key, at, length)
        b += word(key, at + 4, length)
        c += word(key, at + 8, length)
        a -= c; a ^= rotate(c, 4); c += b
        b -= a; b ^= rotate(a, 6); a += c
        c -= b; c ^= rotate(b, 8); b += a
        a -= c; a ^= rotate(c, 16); c += b
        b -= a; b ^= rotate(a, 19); a += c
        c -= b; c ^= rotate(b, 4); b += a
        at += 12
    a += word(key, at, length)
    b += word(key, at + 4, length)
    c += word(key, at + 8, length)
    c ^= b; c -= rotate(b, 14)
    a ^= c; a -= rotate(c, 11)
    b ^= a; b -= rotate(a, 25)
    c ^= b; c -= rotate(b, 16)
    a ^= c; a -= rotate(c, 4)
    b ^= a; b -= rotate(a, 14)
    c ^= b; c -= rotate(b, 24)
    return <int16_t><uint32_t>((c ^ b) & 0xFFFF)


cdef inline int64_t characters(const uint8_t* text, int64_t length) noexcept nogil:
    """How many characters UTF-8 text has: bytes 0x80 to 0xBF go on with one, all others start one."""
    cdef int64_t index, count = 0
    for index in range(length):
        count += (text[index] & 0xC0) != 0x80
    return count
