"""Partition key to partition: the same for every client and for the life of a hub (promise P5).

The hash is a kernel (kernels/keys/keys.py is the readable one), as the service and the .NET and JavaScript libraries
compute it. Never change it: events of one key would change their partition, and producers that choose partitions
themselves would disagree with the service.
"""

from __future__ import annotations

from hubweir.errors import ARGUMENT_OUT_OF_RANGE, ServiceError
from hubweir.kernels import hash_key

KEY_LIMIT_CHARACTERS = 128  # as the client libraries enforce it


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
