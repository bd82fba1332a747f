"""Legal bytes for the kernel tests: values, sections, messages, envelopes, frames, stored batches.

Written without the kernels, so that a mistake in them cannot hide here. Random ones come from a random.Random.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable
from random import Random

from hubweir.kernels.contract import BATCH_FORMAT
from hubweir.kernels.stored_batch import (
    CRC_SEED,
    HEADER_SIZE,
    HEADER_STRUCT,
    KIND_EVENTS,
    MAGIC,
    VERSION,
)

NONCE = 0x1122334455667788
TIME = 1_700_000_000_123
SECTION_NAMES = {
    0x70: b"amqp:header:list",
    0x71: b"amqp:delivery-annotations:map",
    0x72: b"amqp:message-annotations:map",
    0x73: b"amqp:properties:list",
    0x74: b"amqp:application-properties:map",
    0x75: b"amqp:data:binary",
    0x76: b"amqp:amqp-sequence:list",
    0x77: b"amqp:amqp-value:*",
    0x78: b"amqp:footer:map",
}


def variable(small: int, content: bytes, *, wide: bool = False) -> bytes:
    """A binary (0xa0), string (0xa1) or symbol (0xa3) of the smallest width, or of the wide one."""
    if len(content) > 0xFF or wide:
        return struct.pack(">BI", small + 0x10, len(content)) + content
    return struct.pack(">BB", small, len(content)) + content


def symbol(text: str, *, wide: bool = False) -> bytes:
    return variable(0xA3, text.encode(), wide=wide)


def string(text: str, *, wide: bool = False) -> bytes:
    return variable(0xA1, text.encode(), wide=wide)


def compound(small: int, items: list[bytes], *, wide: bool = False) -> bytes:
    """A list (0xc0) or map (0xc1) of the smallest width, or of the wide one."""
    content = b"".join(items)
    if len(content) + 1 > 0xFF or len(items) > 0xFF or wide:
        return struct.pack(">BII", small + 0x10, len(content) + 4, len(items)) + content
    return struct.pack(">BBB", small, len(content) + 1, len(items)) + content


def mapping(entries: dict[str, bytes], *, wide: bool = False) -> bytes:
    return compound(0xC1, [item for name, value in entries.items() for item in (symbol(name), value)], wide=wide)


def section(code: int, value: bytes, *, form: str = "small") -> bytes:
    """A section whose descriptor is a small ulong, a `wide` ulong, or its name (`symbol`, `wide symbol`)."""
    if form == "small":
        descriptor = b"\x53" + bytes([code])
    elif form == "wide":
        descriptor = b"\x80" + code.to_bytes(8, "big")
    else:
        descriptor = variable(0xA3, SECTION_NAMES[code], wide=form == "wide symbol")
    return b"\x00" + descriptor + value


def data_section(content: bytes, *, wide: bool = False) -> bytes:
    return section(0x75, variable(0xA0, content, wide=wide))


def annotations(entries: dict[str, bytes]) -> bytes:
    return section(0x72, mapping(entries))


def envelope(messages: Iterable[bytes], *, key: str | None = None) -> bytes:
    front = b"" if key is None else annotations({"x-opt-partition-key": string(key)})
    return front + b"".join(data_section(message) for message in messages)


def delivery_row(payload: bytes, start: int = 0, message_format: int = BATCH_FORMAT) -> array[int]:
    return array("q", [0, start, len(payload), 0, message_format])


def table(rows: int, width: int) -> array[int]:
    return array("q", [77] * (rows * width))


def crc32c(data: bytes, seed: int) -> int:
    """Bit by bit from the definition: slow, and independent of both twins."""
    value = seed ^ 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def stored_batch(
    records: bytes,
    count: int,
    *,
    name: bytes = b"",
    flags: int = 0,
    producer: bytes = b"",
    kind: int = KIND_EVENTS,
    version: int = VERSION,
    first_index: int = 7,
    first_offset: int = 1000,
    time: int = TIME,
    nonce: int = NONCE,
    number: int = 5,
    unsynced: int = 0,
    checked: bool = True,
) -> bytes:
    """A stored batch with these records; `checked` False leaves the two checksums zero (the fuzz needs many)."""
    payload = name + producer + records
    fields = [
        MAGIC, version, kind, flags, HEADER_SIZE + len(payload), count, len(name), len(producer),
        crc32c(payload, CRC_SEED) if checked else 0, 3, nonce, first_index, first_offset, time, number,
        unsynced,
    ]  # fmt: skip
    header = struct.pack(HEADER_STRUCT, *fields, 0)
    checksum = crc32c(header[:76], CRC_SEED) if checked else 0
    return header[:76] + struct.pack(">I", checksum) + payload


def frame(channel: int, body: bytes, *, kind: int = 0, extended: bytes = b"") -> bytes:
    return struct.pack(">IBBH", 8 + len(extended) + len(body), 2 + len(extended) // 4, kind, channel) + extended + body


def transfer(fields: list[bytes], payload: bytes = b"", *, channel: int = 0, wide: bool = False) -> bytes:
    return frame(channel, b"\x00\x53\x14" + compound(0xC0, fields, wide=wide) + payload)


def uint(value: int) -> bytes:
    return struct.pack(">BI", 0x70, value)


def random_value(rng: Random, depth: int = 0) -> bytes:
    """A value of any type, described and nested now and then."""
    kind = rng.randrange(11 if depth < 4 else 7)
    if kind == 0:
        return rng.choice([b"\x40", b"\x41", b"\x42", b"\x43", b"\x44", b"\x45", b"\x56\x01"])
    if kind == 1:
        return bytes([rng.choice([0x50, 0x51, 0x52, 0x53, 0x54, 0x55])]) + rng.randbytes(1)
    if kind == 2:
        return bytes([rng.choice([0x60, 0x61])]) + rng.randbytes(2)
    if kind == 3:
        return bytes([rng.choice([0x70, 0x71, 0x72, 0x73, 0x74])]) + rng.randbytes(4)
    if kind == 4:
        return bytes([rng.choice([0x80, 0x81, 0x82, 0x83, 0x84])]) + rng.randbytes(8)
    if kind == 5:
        return bytes([rng.choice([0x94, 0x98])]) + rng.randbytes(16)
    if kind == 6:
        return variable(rng.choice([0xA0, 0xA1, 0xA3]), rng.randbytes(rng.randrange(12)), wide=rng.random() < 0.2)
    if kind == 7:
        return b"\x00" + random_value(rng, depth + 2) + random_value(rng, depth + 1)
    items = [random_value(rng, depth + 1) for _ in range(2 * rng.randrange(3))]
    if kind == 10:
        content = b"\x53" + rng.randbytes(len(items))
        return struct.pack(">BBB", 0xE0, len(content) + 1, len(items)) + content
    return compound(0xC0 if kind == 8 else 0xC1, items, wide=rng.random() < 0.2)


OWN_NAMES = ["x-opt-sequence-number", "x-opt-offset", "x-opt-enqueued-time", "x-opt-publisher", "x-opt-partition-key"]
OTHER_NAMES = ["x-opt-offsetx", "mine", "other-key-of-mine", "x-opt-partition-keY", "x-opt-deadletter-source"]


def random_map(rng: Random) -> bytes:
    items = []
    for _ in range(rng.choice([0, 1, 1, 2, 3, 9])):
        name = rng.choice([*OWN_NAMES, *OTHER_NAMES])
        items.append(rng.choice([symbol, symbol, symbol, string])(name, wide=rng.random() < 0.1))
        items.append(rng.choice([string("pk1"), random_value(rng), b"\x83" + rng.randbytes(8), string("4711")]))
    return compound(0xC1, items, wide=rng.random() < 0.2)


def random_message(rng: Random) -> bytes:
    """An encoded message, its sections usually in the usual order, with some of them left out."""
    form = rng.choice(["small"] * 5 + ["wide", "symbol", "wide symbol"])
    lists = [b"\x45", compound(0xC0, [random_value(rng) for _ in range(3)], wide=rng.random() < 0.3)]
    sections = [section(code, rng.choice(lists), form=form) for code in (0x70, 0x73) if rng.random() < 0.4]
    sections += [section(code, random_map(rng), form=form) for code in (0x71, 0x72, 0x74, 0x78) if rng.random() < 0.5]
    sections.sort(key=lambda part: part[: 12 if form != "small" else 3])
    kind = rng.randrange(5)
    if kind < 3:
        bodies = [data_section(rng.randbytes(rng.choice([0, 5, 40, 300]))) for _ in range(kind)]
    else:
        bodies = [section(0x76, rng.choice(lists)) if kind == 3 else section(0x77, random_value(rng))]
    if rng.random() < 0.3:
        sections = sections + bodies
        rng.shuffle(sections)
        return b"".join(sections)
    footer = [part for part in sections if part[:3] == b"\x00\x53\x78"]
    return b"".join([part for part in sections if part not in footer] + bodies + footer)


def random_envelope(rng: Random) -> bytes:
    parts = [data_section(random_message(rng), wide=rng.random() < 0.2) for _ in range(rng.choice([0, 1, 2, 5]))]
    for code in (0x70, 0x72, 0x73):
        if rng.random() < 0.4:
            part = section(code, random_map(rng) if code == 0x72 else b"\x45")
            parts.insert(0 if rng.random() < 0.8 else rng.randrange(len(parts) + 1), part)
    return b"".join(parts)


def mutated(rng: Random, legal: bytes) -> bytes:
    """Legal bytes after a few random changes: bytes flipped, pieces cut out, doubled or cut off."""
    changed = bytearray(legal)
    for _ in range(rng.choice([0, 1, 1, 2, 4])):
        if not changed:
            break
        at = rng.randrange(len(changed))
        kind = rng.randrange(6)
        if kind < 2:
            changed[at] = rng.choice([rng.randrange(256), 0, 0xFF, 0x40, changed[at] ^ 1 << rng.randrange(8)])
        elif kind == 2:
            del changed[at : at + rng.randrange(1, 6)]
        elif kind == 3:
            changed[at:at] = changed[at : at + rng.randrange(1, 30)]
        elif kind == 4:
            changed[at : at + 4] = rng.choice([b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x00\x00\x00\x00"])
        else:
            del changed[at:]
    return bytes(changed)
