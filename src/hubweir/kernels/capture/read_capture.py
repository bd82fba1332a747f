"""Avro records of Capture as columns, in plain Python: read_capture_block."""

from __future__ import annotations

import re
from base64 import b64encode
from struct import unpack_from

from hubweir.kernels.buffers.tables import check_range
from hubweir.kernels.capture.capture_block import BYTES, DOUBLE, LONG, STRING
from hubweir.kernels.columns.column_buffers import ColumnBuffers
from hubweir.kernels.columns.event_columns import MOST_TIME_MS, SERVICE_NAMES, append_row
from hubweir.kernels.columns.text import days_of, double_text, utf8
from hubweir.kernels.columns_contract import (
    COLUMN_BODY,
    COLUMN_PROPERTIES,
    COLUMN_SYSTEM_PROPERTIES,
    COLUMNS_FULL,
    COLUMNS_MALFORMED,
    COLUMNS_OK,
    MOST_COLUMN_BYTES,
)
from hubweir.kernels.contract import Readable
from hubweir.kernels.frames.deliver import ENQUEUED_TIME, PARTITION_KEY, PUBLISHER
from hubweir.kernels.messages.sections import Malformed, take

_Value = tuple[int, int | float | bytes]  # branch of the union, and what it holds
_Entries = list[tuple[bytes, _Value]]

_US_TIME = re.compile(rb"(\d{1,2})/(\d{1,2})/(\d{4}) (\d{1,2}):(\d\d):(\d\d)(?: ([AaPp])[Mm])?")
_ISO_TIME = re.compile(rb"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:Z|\+00:00)?")
_MONTH_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def read_capture_block(
    data: Readable,
    start: int,
    end: int,
    count: int,
    since: int,
    until: int,
    mask: int,
    rows: int,
    columns: list[bytearray],
    most_bytes: int = MOST_COLUMN_BYTES,
) -> tuple[int, int, int, int, int, int]:
    """Append Avro records to columns; see columns_contract.py."""
    view = memoryview(data)
    check_range(start, end, len(view))
    buffers = ColumnBuffers(columns, mask, rows, most_bytes)
    at, taken, first, last = start, 0, -1, -1
    for record in range(count):
        cursor = _Cursor(view, at, end)
        try:
            number, offset, told = cursor.long(), utf8(cursor.octets()), cursor.octets()
            system, properties = cursor.map(), cursor.map()
            body = cursor.body()
            time_ms = _time(told, system)
        except Malformed:
            return at, record, taken, first, last, COLUMNS_MALFORMED
        if since <= time_ms < until:
            if not buffers.has_room(cursor.at - at):
                return at, record, taken, first, last, COLUMNS_FULL
            first, last, taken = (number if not taken else first), number, taken + 1
            key, publisher = _named(system, PARTITION_KEY), _named(system, PUBLISHER)
            append_row(buffers, number, offset, time_ms * 1000, key, publisher)
            if buffers.has(COLUMN_BODY):
                buffers.append_text(COLUMN_BODY, body)
            if buffers.has(COLUMN_PROPERTIES):
                buffers.append_map(COLUMN_PROPERTIES, [(utf8(name), _text(value)) for name, value in properties])
            if buffers.has(COLUMN_SYSTEM_PROPERTIES):
                others = [(utf8(name), _text(value)) for name, value in system if name not in SERVICE_NAMES]
                buffers.append_map(COLUMN_SYSTEM_PROPERTIES, others)
            buffers.rows += 1
        at = cursor.at
    return at, max(count, 0), taken, first, last, COLUMNS_OK if at == end else COLUMNS_MALFORMED


class _Cursor:
    """Reads Avro values from at on. Every length is checked before it is used. (Avro 1.11, binary encoding)"""

    def __init__(self, data: memoryview, at: int, end: int) -> None:
        self._data, self.at, self._end = data, at, end

    def long(self) -> int:
        value = shift = 0
        while True:
            behind = take(self.at, 1, self._end)
            octet = self._data[self.at]
            self.at = behind
            if shift == 63 and octet > 1:
                raise Malformed
            value |= (octet & 0x7F) << shift
            if octet < 0x80:
                return (value >> 1) ^ -(value & 1)
            shift += 7

    def octets(self) -> bytes:
        size, at = self.long(), self.at
        if size < 0:
            raise Malformed
        self.at = take(at, size, self._end)
        return bytes(self._data[at : self.at])

    def body(self) -> bytes | None:
        kind = self.long()
        if kind not in (0, 1):
            raise Malformed
        return self.octets() if kind else None

    def map(self) -> _Entries:
        """Blocks of entries until one of none; a negative count is followed by the block's size."""
        entries: _Entries = []
        while True:
            count = self.long()
            if count == 0:
                return entries
            if count < 0:
                count = -count
                self.long()
            for _ in range(count):
                name = self.octets()
                entries.append((name, self._value()))

    def _value(self) -> _Value:
        kind = self.long()
        if kind == LONG:
            return kind, self.long()
        if kind == DOUBLE:
            at = self.at
            self.at = take(at, 8, self._end)
            return kind, unpack_from("<d", self._data, at)[0]
        if kind in (STRING, BYTES):
            return kind, self.octets()
        raise Malformed


def _text(value: _Value) -> bytes:
    kind, content = value
    if isinstance(content, bytes):
        return b64encode(content) if kind == BYTES else utf8(content)
    return b"%d" % content if isinstance(content, int) else double_text(content)[0]


def _named(entries: _Entries, name: bytes) -> bytes | None:
    """The last string of this name; None when there is none, or an empty one."""
    found = None
    for key, (kind, content) in entries:
        if key == name and kind == STRING and isinstance(content, bytes):
            found = utf8(content)
    return found or None


def _time(told: bytes, system: _Entries) -> int:
    """The enqueued time in ms: the last one of SystemProperties that is a time, else EnqueuedTimeUtc."""
    for key, (kind, content) in reversed(system):
        if key == ENQUEUED_TIME:
            if kind == LONG and isinstance(content, int) and abs(content) <= MOST_TIME_MS:
                return content
            if kind == STRING and isinstance(content, bytes):
                found = parse_time(content)
                if found is not None:
                    return found
    found = parse_time(told)
    if found is None:
        raise Malformed
    return found


def parse_time(text: bytes) -> int | None:
    """ms since 1970 of a time in one of the three forms; None when it is in none. Digits below ms are cut off."""
    iso, us = _ISO_TIME.fullmatch(text), _US_TIME.fullmatch(text)
    if iso is not None:
        year, month, day, hour, minute, second = (int(part) for part in iso.group(1, 2, 3, 4, 5, 6))
        ms = int((iso.group(7) or b"0").ljust(3, b"0")[:3])
    elif us is not None:
        month, day, year, hour, minute, second = (int(part) for part in us.group(1, 2, 3, 4, 5, 6))
        ms, half = 0, us.group(7)
        if half is not None:
            if not 1 <= hour <= 12:
                return None
            hour = hour % 12 + (12 if half in b"Pp" else 0)
    else:
        return None
    if not (year >= 1 and 1 <= month <= 12 and 1 <= day <= _MONTH_DAYS[month - 1]):
        return None
    if hour > 23 or minute > 59 or second > 59:
        return None
    return (days_of(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second) * 1000 + ms
