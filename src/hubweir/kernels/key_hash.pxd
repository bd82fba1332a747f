"""The hash of partition keys, compiled: lookup3 with both seeds 0, folded. The twin: pure_partitions.py."""

from libc.stdint cimport int16_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy


cdef inline uint32_t rotated(uint32_t value, int bits) noexcept nogil:
    return (value << bits) | (value >> (32 - bits))


cdef inline uint32_t load32_little(const uint8_t* p) noexcept nogil:
    return <uint32_t>p[0] | (<uint32_t>p[1] << 8) | (<uint32_t>p[2] << 16) | (<uint32_t>p[3] << 24)


cdef inline int hash_of(const uint8_t* key, int64_t size) noexcept nogil:
    """-32768 to 32767; 0 for the empty key."""
    cdef uint8_t last[12]
    cdef uint32_t a, b, c
    a = b = c = <uint32_t>0xDEADBEEF + <uint32_t>size
    if size == 0:
        return 0
    while size > 12:
        a += load32_little(key)
        b += load32_little(key + 4)
        c += load32_little(key + 8)
        a = (a - c) ^ rotated(c, 4)
        c += b
        b = (b - a) ^ rotated(a, 6)
        a += c
        c = (c - b) ^ rotated(b, 8)
        b += a
        a = (a - c) ^ rotated(c, 16)
        c += b
        b = (b - a) ^ rotated(a, 19)
        a += c
        c = (c - b) ^ rotated(b, 4)
        b += a
        key += 12
        size -= 12
    memcpy(last, b"\0\0\0\0\0\0\0\0\0\0\0\0", 12)
    memcpy(last, key, <size_t>size)
    a += load32_little(last)
    b += load32_little(last + 4)
    c += load32_little(last + 8)
    c = (c ^ b) - rotated(b, 14)
    a = (a ^ c) - rotated(c, 11)
    b = (b ^ a) - rotated(a, 25)
    c = (c ^ b) - rotated(b, 16)
    a = (a ^ c) - rotated(c, 4)
    b = (b ^ a) - rotated(a, 14)
    c = (c ^ b) - rotated(b, 24)
    return <int16_t><uint16_t>(c ^ b)
