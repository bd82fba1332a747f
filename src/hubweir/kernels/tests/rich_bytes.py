"""Messages with every kind of value inside, for kernels that write values as text; and Arrow buffers for the sink."""

from __future__ import annotations

import struct
from array import array
from random import Random

from hubweir.kernels.columns_contract import COLUMN_BUFFERS, ENQUEUED_TIMES, MapColumn, Variable
from hubweir.kernels.tests import legal_bytes as legal

TEXTS = [
    "",
    "a",
    'quote " and \\',
    "line\nbreak\ttab\x00\x1f\x7f\b\f\r",
    "漢字 😀 é",
    "x" * 300,
    "long enough to count",
]
BROKEN = [b"\xff", b"a\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"ok \xe2\x82 cut", b"\xc0\x80", b"eight by\x80te"]
NAMES = [*legal.OWN_NAMES, "mine", "other", "x-opt-custom"]
TIMES = [0, -1, legal.TIME, -62_135_596_800_001, -62_135_596_800_000, 253_402_300_799_999, 253_402_300_800_000]


def text(rng: Random) -> bytes:
    return rng.choice(BROKEN) if rng.random() < 0.15 else rng.choice(TEXTS).encode()


def scalar(rng: Random) -> bytes:
    """A value of one of the types that nothing is inside of."""
    kind = rng.randrange(8)
    if kind == 0:
        return legal.variable(rng.choice([0xA1, 0xA3, 0xA0]), text(rng), wide=rng.random() < 0.2)
    if kind == 1:
        value = rng.choice(
            [0.1, -0.0, 1e16, 1e-7, 5e-324, float("nan"), float("inf"), float("-inf"), rng.gauss(0, 1e9)]
        )
        return struct.pack(">Bd", 0x82, value)
    if kind == 2:
        return struct.pack(">Bf", 0x72, rng.choice([0.1, 3.5, -1e30, float("nan"), float("-inf")]))
    if kind == 3:
        return struct.pack(">Bq", 0x83, rng.choice([*TIMES, rng.randrange(-(2**63), 2**63), rng.randrange(2**42)]))
    if kind == 4:
        return struct.pack(">BI", 0x73, rng.choice([0x22, 0x41, 0xE9, 0x6F22, 0x1F600, 0xD800, 0x110000, 7]))
    if kind == 5:
        return struct.pack(">BQ", rng.choice([0x80, 0x81]), rng.choice([0, 1, 2**63 - 1, 2**63, 2**64 - 1]))
    if kind == 6:
        return rng.choice([b"\x40", b"\x41", b"\x42", b"\x43", b"\x44", b"\x45", b"\x56\x00", b"\x56\x07"])
    return legal.random_value(rng, 9)


def array_of(rng: Random, depth: int) -> bytes:
    """An array: its constructor once, described now and then, then the elements without one."""
    count, code = (
        rng.choice([0, 1, 2, 5]),
        rng.choice([0x40, 0x41, 0x45, 0x50, 0x71, 0x81, 0x82, 0x98, 0xA1, 0xB0, 0xC0, 0xD1]),
    )
    head = bytes([code]) if rng.random() < 0.8 else b"\x00\x53\x07" + bytes([code])
    width = {0x40: 0, 0x41: 0, 0x45: 0, 0x50: 1, 0x71: 4, 0x81: 8, 0x82: 8, 0x98: 16}
    if code in width:
        items = [rng.randbytes(width[code]) for _ in range(count)]
    elif code == 0xA1:
        items = [legal.variable(0xA1, text(rng)[:200])[1:] for _ in range(count)]
    elif code == 0xB0:
        items = [legal.variable(0xA0, text(rng), wide=True)[1:] for _ in range(count)]
    else:
        inner = [value(rng, depth + 3) for _ in range(2)]
        items = [
            legal.compound(code & 1 | 0xC0, inner if len(b"".join(inner)) < 250 else [], wide=code == 0xD1)[1:]
        ] * count
    content = head + b"".join(items)
    if rng.random() < 0.1:
        content += b"\x40"
    return struct.pack(">BII", 0xF0, len(content) + 4, count) + content


def value(rng: Random, depth: int = 0) -> bytes:
    kind = rng.randrange(10)
    if kind < 6 or depth > 5:
        return scalar(rng)
    if kind == 6:
        return array_of(rng, depth)
    if kind == 7:
        return b"\x00" + legal.symbol("kind") + value(rng, depth + 1)
    items = [value(rng, depth + 1) for _ in range(2 * rng.randrange(4))]
    if kind == 9 and rng.random() < 0.7:
        items = [legal.string("k") if place % 2 == 0 else item for place, item in enumerate(items)]
    return legal.compound(0xC0 if kind == 8 else 0xC1, items, wide=rng.random() < 0.2)


def nested(depth: int) -> bytes:
    """Lists in lists."""
    found = b"\x45"
    for _ in range(depth):
        found = legal.compound(0xC0, [found])
    return found


def mapping(rng: Random, *, service: bool = False) -> bytes:
    entries = []
    for _ in range(rng.choice([0, 1, 2, 5, 5, 64, 130]) if rng.random() < 0.3 else rng.randrange(4)):
        entries += [rng.choice([legal.symbol(rng.choice(NAMES)), legal.string(rng.choice(TEXTS)), value(rng, 3)])]
        entries += [rng.choice([value(rng), nested(rng.randrange(14, 18)), legal.string("pk")])]
    if service:
        found = [
            legal.symbol("x-opt-sequence-number"), struct.pack(">Bq", 0x81, rng.choice([0, 5, 6, 2**40, -3])),
            legal.symbol("x-opt-offset"), legal.string(rng.choice(["0", "4711", "odd"])),
            legal.symbol("x-opt-enqueued-time"), struct.pack(">Bq", 0x83, rng.choice(TIMES)),
        ]  # fmt: skip
        if rng.random() < 0.3:
            found += [legal.symbol(rng.choice(legal.OWN_NAMES[3:])), legal.variable(0xA1, text(rng))]
        entries = found + entries if rng.random() < 0.8 else entries + found
    return legal.compound(0xC1, entries, wide=rng.random() < 0.1)


def message(rng: Random, *, service: bool = False) -> bytes:
    """An encoded message; service: with the annotations of a delivered event."""
    parts = []
    if service or rng.random() < 0.5:
        parts.append(legal.section(0x72, mapping(rng, service=service)))
    if rng.random() < 0.5:
        fields = [rng.choice([b"\x40", scalar(rng), value(rng)]) for _ in range(rng.choice([0, 3, 13, 14]))]
        parts.append(legal.section(0x73, legal.compound(0xC0, fields)))
    if rng.random() < 0.6:
        parts.append(legal.section(0x74, mapping(rng)))
    kind = rng.randrange(6)
    if kind < 3:
        parts += [legal.data_section(rng.randbytes(rng.choice([0, 5, 200]))) for _ in range(kind)]
    elif kind == 3:
        parts.append(legal.section(0x77, value(rng)))
    else:
        items = [[value(rng) for _ in range(rng.randrange(3))] for _ in range(rng.randrange(1, 4))]
        parts += [legal.section(0x76, legal.compound(0xC0, each)) for each in items]
    if rng.random() < 0.1:
        rng.shuffle(parts)
    return b"".join(parts)


def empty_columns() -> list[bytearray]:
    return [bytearray() for _ in range(COLUMN_BUFFERS)]


def texts(rng: Random, rows: int, *, spoiled: bool = False) -> Variable:
    """A string column with nulls and an array offset."""
    first = rng.choice([0, 0, 1, 9])
    pieces = [text(rng) for _ in range(first + rows)]
    offsets = array("i", [0])
    for piece in pieces:
        offsets.append(offsets[-1] + len(piece))
    content = b"".join(pieces)
    validity = bytes(rng.randrange(256) for _ in range((first + rows + 7) // 8)) if rng.random() < 0.5 else None
    octets = offsets.tobytes()
    if spoiled:
        octets, content, validity = spoil(rng, octets, content, validity)
    return validity, octets, content, first


def spoil(rng: Random, offsets: bytes, content: bytes, validity: bytes | None) -> tuple[bytes, bytes, bytes | None]:
    """The buffers after one of them was damaged."""
    kind = rng.randrange(4)
    if kind == 0:
        spoiled = bytearray(offsets)
        at = rng.randrange(len(offsets) // 4) * 4
        spoiled[at : at + 4] = struct.pack("=i", rng.choice([-1, 2**31 - 1, 7, -(2**31)]))
        return bytes(spoiled), content, validity
    if kind == 1:
        return offsets[: rng.randrange(len(offsets) // 4) * 4], content, validity
    if kind == 2:
        return offsets, content[: len(content) // 2], validity
    return offsets, content, None if validity is None else validity[: len(validity) // 2]


def maps(rng: Random, rows: int, *, spoiled: bool = False) -> MapColumn:
    first = rng.choice([0, 0, 2])
    offsets = array("i", [0])
    for _ in range(first + rows):
        offsets.append(offsets[-1] + rng.choice([0, 1, 2, 60]))
    octets, validity = offsets.tobytes(), None
    if rng.random() < 0.5:
        validity = bytes(rng.randrange(256) for _ in range((first + rows + 7) // 8))
    if spoiled:
        octets, _, validity = spoil(rng, octets, b"", validity)
    keys = texts(rng, offsets[-1], spoiled=spoiled and rng.random() < 0.3)
    return validity, octets, first, (keys if spoiled else (None, *keys[1:])), texts(rng, offsets[-1])


def column_texts(columns: list[bytearray], offsets: int) -> list[bytes]:
    """The values of a column of text; its bytes stand behind its offsets."""
    ends = array("i", bytes(columns[offsets]))
    content = bytes(columns[offsets + 1])
    return [content[start:end] for start, end in zip(ends, ends[1:], strict=False)]


def column_entries(columns: list[bytearray], offsets: int) -> dict[str, str]:
    keys, values = column_texts(columns, offsets + 1), column_texts(columns, offsets + 3)
    return {key.decode(): value.decode() for key, value in zip(keys, values, strict=True)}


def column_times(columns: list[bytearray]) -> list[int]:
    return list(array("q", bytes(columns[ENQUEUED_TIMES])))
