"""Arrow rows as batch transfers, in plain Python: event_batches, rows_digest."""

from __future__ import annotations

from array import array
from struct import iter_unpack, pack

from hubweir.errors import KernelRefusal
from hubweir.kernels.buffers.tables import MASK_64
from hubweir.kernels.columns.arrow import TextMapColumn, VariableColumn, rows_at
from hubweir.kernels.columns_contract import (
    MOST_COLUMN_BYTES,
    ROWS_MALFORMED,
    ROWS_OK,
    ROWS_ROOM,
    ROWS_TOO_LARGE,
    MapColumn,
    Variable,
)
from hubweir.kernels.frames.deliver import PARTITION_KEY
from hubweir.kernels.messages.sections import Malformed

# Constants of the digest's rounds: those of MurmurHash3's 64-bit lane.
_FIRST, _SECOND, _ADDED = 0x87C37B91114253D5, 0x4CF5AD432745937F, 0x52DCE729
_NO_VALUE = MASK_64  # stands for the length of a null

_KEY_HEAD = b"\xa3" + bytes([len(PARTITION_KEY)]) + PARTITION_KEY


class _Rows:
    """The columns of a call, row by row."""

    def __init__(self, body: Variable, keys: Variable | None, properties: MapColumn | None) -> None:
        self._body = VariableColumn(body)
        self._keys = None if keys is None else VariableColumn(keys)
        self._properties = None if properties is None else TextMapColumn(properties)

    def __getitem__(self, row: int) -> tuple[bytes | None, bytes | None, list[tuple[bytes, bytes | None]]]:
        body = self._body[row]
        key = None if self._keys is None else self._keys[row]
        return body, key, [] if self._properties is None else self._properties[row]


def event_batches(
    body: Variable,
    keys: Variable | None,
    properties: MapColumn | None,
    order: array[int] | memoryview | None,
    first: int,
    last: int,
    max_bytes: int,
    envelope: bytes,
    out: bytearray,
) -> tuple[int, int, int]:
    """Append the payload of one batch transfer; see columns_contract.py."""
    if not 0 <= max_bytes <= MOST_COLUMN_BYTES:
        raise KernelRefusal(f"{max_bytes} is no size of a transfer")
    rows, begun, status = _Rows(body, keys, properties), len(out), ROWS_OK
    place = first
    for place, row in enumerate(rows_at(order, first, last), first):
        try:
            section = _data(_message(*rows[row]))
        except Malformed:
            status = ROWS_MALFORMED
            break
        written = len(out) - begun or len(envelope)
        if len(section) > max_bytes - written:
            status = ROWS_TOO_LARGE if place == first else ROWS_ROOM
            break
        if place == first:
            out += envelope
        out += section
    else:
        place = last
    return place, len(out) - begun, status


def _message(body: bytes | None, key: bytes | None, properties: list[tuple[bytes, bytes | None]]) -> bytes:
    message = _map(0x72, 2, _KEY_HEAD + _string(key)) if key else b""
    if properties:
        entries = [_string(name) + (b"\x40" if value is None else _string(value)) for name, value in properties]
        message += _map(0x74, 2 * len(entries), b"".join(entries))
    return message + _data(body or b"")


def _data(content: bytes) -> bytes:
    return b"\x00\x53\x75" + _sized(0xA0, content)


def _string(text: bytes) -> bytes:
    return _sized(0xA1, text)


def _sized(code: int, content: bytes) -> bytes:
    """Binary or string, as short as it can be."""
    head = pack(">BB", code, len(content)) if len(content) <= 0xFF else pack(">BI", code + 0x10, len(content))
    return head + content


def _map(section: int, count: int, content: bytes) -> bytes:
    if len(content) + 1 <= 0xFF and count <= 0xFF:
        return pack(">BBBBBB", 0, 0x53, section, 0xC1, len(content) + 1, count) + content
    return pack(">BBBBII", 0, 0x53, section, 0xD1, len(content) + 4, count) + content


def rows_digest(
    seed: int,
    body: Variable,
    keys: Variable | None,
    properties: MapColumn | None,
    order: array[int] | memoryview | None,
    first: int,
    last: int,
) -> tuple[int, int]:
    """Go on with a digest over rows; see columns_contract.py."""
    if not 0 <= seed <= MASK_64:
        raise KernelRefusal(f"{seed} is no 64-bit digest")
    rows, digest = _Rows(body, keys, properties), seed
    for place, row in enumerate(rows_at(order, first, last), first):
        try:
            content, key, entries = rows[row]
        except Malformed:
            return digest, place
        digest = _taken(_taken(digest, content), key)
        digest = _word(digest, len(entries))
        for name, value in entries:
            digest = _taken(_taken(digest, name), value)
    return digest, last


def _taken(digest: int, value: bytes | None) -> int:
    """Take a value in: its length, then its bytes eight at a time, filled up with zeros."""
    if value is None:
        return _word(digest, _NO_VALUE)
    digest = _word(digest, len(value))
    for (word,) in iter_unpack("<Q", value + bytes(-len(value) % 8)):
        digest = _word(digest, word)
    return digest


def _word(digest: int, word: int) -> int:
    word = word * _FIRST & MASK_64
    word = (word << 31 | word >> 33) * _SECOND & MASK_64
    digest ^= word
    digest = (digest << 27 | digest >> 37) & MASK_64
    return (digest * 5 + _ADDED) & MASK_64
