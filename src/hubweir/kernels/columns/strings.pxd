"""Text and bytes of a peer as legal UTF-8, as JSON strings and as base64, compiled. The twin: text.py.

With quotes, what is put is a JSON string, quotes and escapes included; without, it is the text as it stands.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from hubweir.kernels.buffers.growing cimport Out, put, put_byte, put_short_ascii, room

cdef extern from *:
    """
    static const char hubweir_base64[65] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    static const char hubweir_hex[17] = "0123456789abcdef";
    """
    const uint8_t* base64_digits "((const unsigned char*)hubweir_base64)"
    const uint8_t* hex_digits "((const unsigned char*)hubweir_hex)"


cdef inline bint is_text(int code) noexcept nogil:
    """A string or a symbol."""
    return code == 0xA1 or code == 0xB1 or code == 0xA3 or code == 0xB3


cdef inline bint is_binary(int code) noexcept nogil:
    return code == 0xA0 or code == 0xB0


cdef inline bint is_ascii(const uint8_t* text, int64_t size) noexcept nogil:
    cdef uint64_t word, seen = 0
    cdef uint8_t rest = 0
    while size >= 8:
        memcpy(&word, text, 8)
        seen |= word
        text += 8
        size -= 8
    while size > 0:
        rest |= text[0]
        text += 1
        size -= 1
    return (seen & <uint64_t>0x8080808080808080) == 0 and rest < 0x80


cdef inline bint is_utf8(const uint8_t* text, int64_t size) noexcept nogil:
    """As Python's strict decoder judges."""
    cdef int64_t at = 0
    cdef int more
    cdef uint8_t first, least, most
    while at < size:
        first = text[at]
        if first < 0x80:
            at += 1
            continue
        least, most = 0x80, 0xBF
        if 0xC2 <= first < 0xE0:
            more = 1
        elif 0xE0 <= first < 0xF0:
            more = 2
            if first == 0xE0:
                least = 0xA0
            elif first == 0xED:
                most = 0x9F
        elif 0xF0 <= first < 0xF5:
            more = 3
            if first == 0xF0:
                least = 0x90
            elif first == 0xF4:
                most = 0x8F
        else:
            return False
        if size - at <= more or text[at + 1] < least or text[at + 1] > most:
            return False
        if more > 1 and text[at + 2] & 0xC0 != 0x80:
            return False
        if more > 2 and text[at + 3] & 0xC0 != 0x80:
            return False
        at += more + 1
    return True


cdef inline void put_escaped(Out* out, const uint8_t* text, int64_t size) noexcept nogil:
    """Legal UTF-8 as a JSON string, quotes included."""
    cdef int64_t at = 0, plain = 0
    cdef uint8_t byte, short
    put_byte(out, c'"')
    for at in range(size):
        byte = text[at]
        if byte >= 0x20 and byte != c'"' and byte != c"\\":
            continue
        put(out, text + plain, at - plain)
        plain = at + 1
        put_byte(out, c"\\")
        short = 0
        if byte == c'"' or byte == c"\\":
            short = byte
        elif byte == 0x0A:
            short = c"n"
        elif byte == 0x0D:
            short = c"r"
        elif byte == 0x09:
            short = c"t"
        elif byte == 0x08:
            short = c"b"
        elif byte == 0x0C:
            short = c"f"
        if short:
            put_byte(out, short)
        else:
            put(out, b"u00", 3)
            put_byte(out, hex_digits[byte >> 4])
            put_byte(out, hex_digits[byte & 15])
    put(out, text + plain, size - plain)
    put_byte(out, c'"')


cdef inline void put_replaced(Out* out, const uint8_t* text, int64_t size, bint quotes) noexcept with gil:
    cdef bytes legal
    try:
        legal = text[:size].decode("utf-8", "replace").encode()
    except MemoryError:
        out.failed = True
        return
    put_legal(out, <const uint8_t*>PyBytes_AS_STRING(legal), PyBytes_GET_SIZE(legal), quotes)


cdef inline void put_legal(Out* out, const uint8_t* text, int64_t size, bint quotes) noexcept nogil:
    if quotes:
        put_escaped(out, text, size)
    else:
        put(out, text, size)


cdef inline void put_utf8(Out* out, const uint8_t* text, int64_t size, bint quotes) noexcept nogil:
    """Text of a peer: what is no UTF-8 is replaced."""
    if not quotes and put_short_ascii(out, text, size):
        return
    if is_ascii(text, size) or is_utf8(text, size):
        put_legal(out, text, size, quotes)
    else:
        put_replaced(out, text, size, quotes)


cdef inline void put_base64(Out* out, const uint8_t* content, int64_t size, bint quotes) noexcept nogil:
    cdef int64_t at = 0
    cdef uint32_t three
    cdef uint8_t* to = room(out, (size + 2) // 3 * 4 + 2)
    cdef uint8_t* begun = to
    if to == NULL:
        return
    if quotes:
        to[0] = c'"'
        to += 1
    while size - at >= 3:
        three = (<uint32_t>content[at] << 16) | (<uint32_t>content[at + 1] << 8) | content[at + 2]
        to[0] = base64_digits[three >> 18]
        to[1] = base64_digits[three >> 12 & 63]
        to[2] = base64_digits[three >> 6 & 63]
        to[3] = base64_digits[three & 63]
        to += 4
        at += 3
    if at < size:
        three = <uint32_t>content[at] << 16
        if size - at == 2:
            three |= <uint32_t>content[at + 1] << 8
        to[0] = base64_digits[three >> 18]
        to[1] = base64_digits[three >> 12 & 63]
        to[2] = base64_digits[three >> 6 & 63] if size - at == 2 else c"="
        to[3] = c"="
        to += 4
    if quotes:
        to[0] = c'"'
        to += 1
    out.used += to - begun


cdef inline void put_hex(Out* out, const uint8_t* content, int64_t size) noexcept nogil:
    cdef int64_t at
    for at in range(size):
        put_byte(out, hex_digits[content[at] >> 4])
        put_byte(out, hex_digits[content[at] & 15])
