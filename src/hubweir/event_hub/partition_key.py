"""Partition key to partition: the same for every client and for the life of a hub (promise P5).

The hash is Bob Jenkins' lookup3 (hashlittle2, both seeds 0) over the key's UTF-8 bytes, folded to 16 signed bits, as
the service and the .NET and JavaScript libraries compute it. Never change it: events of one key would change their
partition, and producers that choose partitions themselves would disagree with the service.
"""

from __future__ import annotations

import struct
from functools import lru_cache

from hubweir.errors import ARGUMENT_OUT_OF_RANGE, ServiceError

KEY_LIMIT_CHARACTERS = 128  # as the client libraries enforce it
# Keys come again and again; a hash costs some 10 µs in Python, a hit 0.1. Bounded: 64 Ki short keys are about 10 MB.
_REMEMBERED_KEYS = 65_536
_MASK = 0xFFFFFFFF
_THREE_WORDS = struct.Struct("<III")


def partition_of_key(key: bytes, partition_count: int) -> int:
    """The partition (0 … partition_count - 1) of a key's UTF-8 bytes. The empty key goes to 0."""
    # The remainder is truncated towards zero and its sign dropped, so the sign may be dropped first.
    return abs(hash_key(key)) % partition_count


def is_legal_key(key: bytes) -> bool:
    """True when the key (UTF-8 bytes) has at most 128 characters."""
    if len(key) <= KEY_LIMIT_CHARACTERS:
        return True
    if len(key) > 4 * KEY_LIMIT_CHARACTERS:
        return False
    # Bytes 0x80 to 0xBF go on with a character; all others start one.
    return sum(1 for byte in key if byte & 0xC0 != 0x80) <= KEY_LIMIT_CHARACTERS


def key_too_long() -> ServiceError:
    """What a delivery with an illegal key is refused with."""
    return ServiceError(
        ARGUMENT_OUT_OF_RANGE,
        f"The partition key is too long: at most {KEY_LIMIT_CHARACTERS} characters are allowed. Send a shorter key.",
    )


@lru_cache(maxsize=_REMEMBERED_KEYS)
def hash_key(key: bytes) -> int:
    """The key's hash, -32768 … 32767."""
    c, b = lookup3(key)
    low = (c ^ b) & 0xFFFF
    return low - 0x10000 if low >= 0x8000 else low


def lookup3(key: bytes) -> tuple[int, int]:
    """hashlittle2 with both seeds 0: its two 32-bit results, c and b."""
    a = b = c = (0xDEADBEEF + len(key)) & _MASK
    if not key:
        return c, b
    # The last 1 to 12 bytes are finished, not mixed.
    tail = (len(key) - 1) // 12 * 12
    for at in range(0, tail, 12):
        x, y, z = _THREE_WORDS.unpack_from(key, at)
        a, b, c = _mix((a + x) & _MASK, (b + y) & _MASK, (c + z) & _MASK)
    x, y, z = _THREE_WORDS.unpack(key[tail:].ljust(12, b"\0"))
    return _finish((a + x) & _MASK, (b + y) & _MASK, (c + z) & _MASK)


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & _MASK


def _mix(a: int, b: int, c: int) -> tuple[int, int, int]:
    for bits in (4, 6, 8, 16, 19, 4):
        a = (a - c & _MASK) ^ _rotate(c, bits)
        c = c + b & _MASK
        # The next line of the round works on (b, c, a).
        a, b, c = b, c, a
    return a, b, c


def _finish(a: int, b: int, c: int) -> tuple[int, int]:
    c = (c ^ b) - _rotate(b, 14) & _MASK
    a = (a ^ c) - _rotate(c, 11) & _MASK
    b = (b ^ a) - _rotate(a, 25) & _MASK
    c = (c ^ b) - _rotate(b, 16) & _MASK
    a = (a ^ c) - _rotate(c, 4) & _MASK
    b = (b ^ a) - _rotate(a, 14) & _MASK
    c = (c ^ b) - _rotate(b, 24) & _MASK
    return c, b
