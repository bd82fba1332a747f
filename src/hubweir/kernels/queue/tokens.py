"""Lock tokens and lock rows in plain Python: message_tokens, read_tokens, find_locks, end_locks, ended_locks; ranges of
numbers.

A token is the number of its lock, 8 bytes big-endian, and SipHash-2-4 of these under the secret, 8 bytes big-endian.
"""

from __future__ import annotations

from array import array
from struct import Struct

from hubweir.errors import KernelRefusal
from hubweir.kernels.buffers.tables import MASK_64, check_rows
from hubweir.kernels.contract import MESSAGE_WIDTH, Q_LOCK, Q_LOCK_CHECK, Readable
from hubweir.kernels.queue_contract import L_COUNT, L_UNTIL, LOCK_WIDTH, SECRET_BYTES, TOKEN_BYTES

_TOKEN = Struct(">QQ")


def check_secret(secret: bytes) -> None:
    """Refuse a secret of another length."""
    if len(secret) != SECRET_BYTES:
        raise KernelRefusal(f"a secret of {len(secret)} bytes is none")


def _rounds(v0: int, v1: int, v2: int, v3: int, count: int) -> tuple[int, int, int, int]:
    for _ in range(count):
        v0 = v0 + v1 & MASK_64
        v1 = (v1 << 13 | v1 >> 51) & MASK_64 ^ v0
        v0 = (v0 << 32 | v0 >> 32) & MASK_64
        v2 = v2 + v3 & MASK_64
        v3 = (v3 << 16 | v3 >> 48) & MASK_64 ^ v2
        v0 = v0 + v3 & MASK_64
        v3 = (v3 << 21 | v3 >> 43) & MASK_64 ^ v0
        v2 = v2 + v1 & MASK_64
        v1 = (v1 << 17 | v1 >> 47) & MASK_64 ^ v2
        v2 = (v2 << 32 | v2 >> 32) & MASK_64
    return v0, v1, v2, v3


def check_of(secret: bytes, number: int) -> int:
    """SipHash-2-4 of the number's 8 bytes."""
    k0, k1 = int.from_bytes(secret[:8], "little"), int.from_bytes(secret[8:], "little")
    v0, v1 = k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D
    v2, v3 = k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573
    for block in (int.from_bytes((number & MASK_64).to_bytes(8, "big"), "little"), 8 << 56):
        v3 ^= block
        v0, v1, v2, v3 = _rounds(v0, v1, v2, v3, 2)
        v0 ^= block
    v0, v1, v2, v3 = _rounds(v0, v1, v2 ^ 0xFF, v3, 4)
    return v0 ^ v1 ^ v2 ^ v3


def message_tokens(rows: array[int], first_row: int, last_row: int) -> bytes:
    """The tokens of the locks on these messages; see queue_contract.py."""
    check_rows(rows, MESSAGE_WIDTH, first_row, last_row)
    starts = range(first_row * MESSAGE_WIDTH, last_row * MESSAGE_WIDTH, MESSAGE_WIDTH)
    return b"".join([_TOKEN.pack(rows[at + Q_LOCK] & MASK_64, rows[at + Q_LOCK_CHECK] & MASK_64) for at in starts])


def read_tokens(tokens: Readable, secret: bytes, first_number: int, next_number: int, ordinals: array[int]) -> None:
    """The ordinal of each token's lock; see queue_contract.py."""
    check_secret(secret)
    if len(tokens) % TOKEN_BYTES or len(tokens) // TOKEN_BYTES > len(ordinals):
        raise KernelRefusal(f"{len(tokens)} bytes are no tokens of {len(ordinals)} locks")
    for place, (number, check) in enumerate(_TOKEN.iter_unpack(tokens)):
        is_good = first_number <= number < next_number and check_of(secret, number) == check
        ordinals[place] = number - first_number if is_good else -1


def find_locks(
    locks: array[int], page_first: int, ordinals: array[int], at: int, last: int, now_ms: int, counts: array[int]
) -> int:
    """The message of each lock; see queue_contract.py."""
    check_rows(ordinals, 1, at, last)
    check_rows(counts, 1, at, last)
    while at < last:
        counts[at] = 0
        if ordinals[at] >= 0:
            row = ordinals[at] - page_first
            if not 0 <= row < len(locks) // LOCK_WIDTH:
                break
            if locks[row * LOCK_WIDTH + L_UNTIL] > now_ms:
                counts[at] = locks[row * LOCK_WIDTH + L_COUNT]
        at += 1
    return at


def end_locks(locks: array[int], page_first: int, ordinals: array[int], at: int, last: int) -> tuple[int, int]:
    """These locks are over; see queue_contract.py."""
    check_rows(ordinals, 1, at, last)
    ended = 0
    while at < last:
        row = ordinals[at] - page_first
        if not 0 <= row < len(locks) // LOCK_WIDTH:
            break
        ended += locks[row * LOCK_WIDTH + L_COUNT] != 0
        locks[row * LOCK_WIDTH + L_COUNT] = 0
        at += 1
    return at, ended


def ended_locks(locks: array[int], page_first: int, now_ms: int, picked: array[int]) -> tuple[int, int]:
    """Ordinals of locks whose time is over; see queue_contract.py."""
    count, due_ms = 0, -1
    for row in range(len(locks) // LOCK_WIDTH):
        if not locks[row * LOCK_WIDTH + L_COUNT]:
            continue
        until_ms = locks[row * LOCK_WIDTH + L_UNTIL]
        if until_ms <= now_ms and count < len(picked):
            picked[count] = page_first + row
            count += 1
        elif due_ms < 0 or until_ms < due_ms:
            due_ms = until_ms
    return count, due_ms


def number_ranges(numbers: array[int], first: int, last: int, ranges: array[int]) -> int:
    """Pairs of numbers that follow each other; see queue_contract.py."""
    check_rows(numbers, 1, first, last)
    check_rows(ranges, 2, 0, last - first)
    pairs = 0
    for number in numbers[first:last]:
        if number == 0:
            continue
        if pairs and ranges[2 * pairs - 2] + ranges[2 * pairs - 1] == number:
            ranges[2 * pairs - 1] += 1
        else:
            ranges[2 * pairs], ranges[2 * pairs + 1] = number, 1
            pairs += 1
    return pairs
