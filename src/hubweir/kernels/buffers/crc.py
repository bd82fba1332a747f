"""CRC-32C in plain Python: crc32c."""

from __future__ import annotations

from struct import iter_unpack

from hubweir.errors import KernelRefusal
from hubweir.kernels.contract import Readable


def _crc_tables() -> list[list[int]]:
    """Eight tables: what a byte does to the register, followed by none to seven zero bytes."""
    first = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        first.append(byte)
    tables = [first]
    for _ in range(7):
        tables.append([before >> 8 ^ first[before & 0xFF] for before in tables[-1]])
    return tables


_CRC_TABLES = _crc_tables()


def crc32c(data: Readable, seed: int = 0) -> int:
    """CRC-32C of data, continuing seed; see contract.py. Eight bytes a step: half the time of one by one."""
    if not 0 <= seed < 2**32:
        raise KernelRefusal(f"seed {seed} is no 32-bit number")
    t0, t1, t2, t3, t4, t5, t6, t7 = _CRC_TABLES
    value, view = seed ^ 0xFFFFFFFF, memoryview(data)
    words = len(view) // 8 * 8
    for low, p4, p5, p6, p7 in iter_unpack("<IBBBB", view[:words]):
        low ^= value
        value = (
            t7[low & 0xFF] ^ t6[low >> 8 & 0xFF] ^ t5[low >> 16 & 0xFF] ^ t4[low >> 24]
            ^ t3[p4] ^ t2[p5] ^ t1[p6] ^ t0[p7]
        )  # fmt: skip
    for byte in view[words:]:
        value = value >> 8 ^ t0[(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF
