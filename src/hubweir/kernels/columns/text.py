"""AMQP values as text in plain Python: what columns, captured maps and JSON bodies hold (columns_contract.py)."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from math import isfinite, isnan
from struct import unpack_from

from hubweir.kernels.columns_contract import MAX_TEXT_DEPTH
from hubweir.kernels.messages.sections import (
    BINARY,
    COMPOUND,
    DATA,
    FIXED,
    LIST,
    SEQUENCE,
    STRING,
    SYMBOL,
    VALUE,
    VARIABLE,
    Malformed,
    Section,
    compound,
    number,
    skip_value,
    take,
    variable,
)

# Names of the fields of the properties section. (AMQP part 3 section 3.2.4)
PROPERTY_NAMES = (
    b"message-id", b"user-id", b"to", b"subject", b"reply-to", b"correlation-id", b"content-type", b"content-encoding",
    b"absolute-expiry-time", b"creation-time", b"group-id", b"group-sequence", b"reply-to-group-id",
)  # fmt: skip

# A few bytes may declare any number of elements that take none; more than these are not written out.
MOST_WIDTHLESS = 4

UNSIGNED, SIGNED = (0x43, 0x44, 0x50, 0x52, 0x53, 0x60, 0x70, 0x80), (0x51, 0x54, 0x55, 0x61, 0x71, 0x81)
DOUBLES, DECIMALS = {0x72: ">f", 0x82: ">d"}, (0x74, 0x84, 0x94)
TRUE, FALSE = b"true", b"false"
_ESCAPES = {0x22: b'\\"', 0x5C: b"\\\\", 0x0A: b"\\n", 0x0D: b"\\r", 0x09: b"\\t", 0x08: b"\\b", 0x0C: b"\\f"}
_ESCAPED = [_ESCAPES.get(byte, b"\\u%04x" % byte if byte < 0x20 else bytes([byte])) for byte in range(256)]
_PLAIN = bytes(byte for byte in range(256) if len(_ESCAPED[byte]) == 1)
_DAY_MS = 86_400_000
_EPOCH_DAY = 719_468  # days from 1 March of the year 0 to 1970
_LEAST_MS, _MOST_MS = -62_135_596_800_000, 253_402_300_799_999  # the years 1 to 9999


def utf8(text: bytes) -> bytes:
    """Text as legal UTF-8: what is none is replaced."""
    return text.decode("utf-8", "replace").encode()


def quoted(text: bytes) -> bytes:
    """Text (UTF-8) as a JSON string."""
    if text.translate(None, _PLAIN):
        text = b"".join([_ESCAPED[byte] for byte in text])
    return b'"' + text + b'"'


def double_text(value: float) -> tuple[bytes, bool]:
    """A double as JSON, and whether that is a string."""
    if isfinite(value):
        return repr(value).encode(), False
    return (b"NaN" if isnan(value) else b"Infinity" if value > 0 else b"-Infinity"), True


def civil(days: int) -> tuple[int, int, int]:
    """Year, month and day of a day since 1970, in the calendar of today carried backwards."""
    days += _EPOCH_DAY
    era, day = divmod(days, 146_097)
    year = (day - day // 1460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    day -= (153 * month + 2) // 5
    month += 3 if month < 10 else -9
    return year + era * 400 + (month <= 2), month, day + 1


def days_of(year: int, month: int, day: int) -> int:
    """The day since 1970 of a date: civil the other way round."""
    year -= month <= 2
    era, year = divmod(year, 400)
    day += (153 * (month + (9 if month <= 2 else -3)) + 2) // 5 - 1
    return era * 146_097 + year * 365 + year // 4 - year // 100 + day - _EPOCH_DAY


def time_text(time_ms: int) -> bytes:
    """ISO 8601 with milliseconds; the number itself outside the years 1 to 9999."""
    if not _LEAST_MS <= time_ms <= _MOST_MS:
        return b"%d" % time_ms
    days, ms = divmod(time_ms, _DAY_MS)
    clock = (ms // 3_600_000, ms // 60_000 % 60, ms // 1000 % 60, ms % 1000)
    return b"%04d-%02d-%02dT%02d:%02d:%02d.%03dZ" % (*civil(days), *clock)


def us_time_text(time_ms: int) -> bytes:
    """`M/d/yyyy h:mm:ss tt`; the number itself outside the years 1 to 9999."""
    if not _LEAST_MS <= time_ms <= _MOST_MS:
        return b"%d" % time_ms
    days, ms = divmod(time_ms, _DAY_MS)
    year, month, day = civil(days)
    hour = ms // 3_600_000
    clock = (hour % 12 or 12, ms // 60_000 % 60, ms // 1000 % 60, b"AM" if hour < 12 else b"PM")
    return b"%d/%d/%04d %d:%02d:%02d %s" % (month, day, year, *clock)


def uuid_text(octets: bytes) -> bytes:
    digits = octets.hex().encode()
    return b"-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def char_text(code: int) -> bytes:
    return b"\xef\xbf\xbd" if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF else chr(code).encode()


def undescribed(data: memoryview, at: int, end: int) -> int:
    """The position of the value itself, behind its descriptors; data[at:end] is a whole value."""
    while data[at] == 0x00:
        at = skip_value(data, at + 1, end)
    return at


def text_of(data: memoryview, at: int, end: int) -> bytes:
    """The text of the whole value data[at:end], a string without its quotes."""
    return _told(data, at, end)[0]


def json_of(data: memoryview, at: int, end: int) -> bytes:
    """The text of the whole value data[at:end] as JSON."""
    text, is_string = _told(data, at, end)
    return quoted(text) if is_string else text


def _told(data: memoryview, at: int, end: int) -> tuple[bytes, bool]:
    try:
        start = undescribed(data, at, end)
        return _text(data, data[start], start + 1, end, 0)
    except Malformed:
        return b64encode(data[at:end]), True


def _text(data: memoryview, code: int, at: int, end: int, depth: int) -> tuple[bytes, bool]:
    """The text of a value of this constructor whose own bytes are data[at:end], and whether it is a string."""
    if code in COMPOUND or code == 0x45:
        return _compound_text(data, code, at, end, depth), False
    if code in VARIABLE:
        text = bytes(data[at + VARIABLE[code] : end])
        return (b64encode(text) if code in BINARY else utf8(text)), True
    octets = bytes(data[at:end])
    if code == 0x40:
        return b"null", False
    if code in (0x41, 0x42) or code == 0x56:
        return (TRUE if code == 0x41 or (code == 0x56 and octets != b"\0") else FALSE), False
    if code in UNSIGNED or code in SIGNED:
        return b"%d" % int.from_bytes(octets, "big", signed=code in SIGNED), False
    if code in DOUBLES:
        return double_text(unpack_from(DOUBLES[code], octets)[0])
    if code == 0x83:
        return time_text(int.from_bytes(octets, "big", signed=True)), True
    if code == 0x73:
        return char_text(int.from_bytes(octets, "big")), True
    return (octets.hex().encode() if code in DECIMALS else uuid_text(octets)), True


def _compound_text(data: memoryview, code: int, at: int, end: int, depth: int) -> bytes:
    """The text of a list, map or array. Malformed when its inside cannot be walked or is too deep."""
    if depth == MAX_TEXT_DEPTH:
        raise Malformed
    if code == 0x45:
        return b"[]"
    width = COMPOUND[code]
    count, at = number(data, at + width, width, end), at + 2 * width
    if code in (0xE0, 0xF0):
        return b"[" + b",".join(_array_items(data, count, at, end, depth + 1)) + b"]"
    items = _items(data, count, at, end, depth + 1)
    if code in LIST:
        return b"[" + b",".join(quoted(text) if is_string else text for text, is_string, _ in items) + b"]"
    return b"{" + b",".join(_pairs(items, count)) + b"}"


def _pairs(items: Iterator[tuple[bytes, bool, bool]], count: int) -> Iterator[bytes]:
    if count % 2:
        raise Malformed
    for key, _, is_compound in items:
        if is_compound:
            raise Malformed
        text, is_string, _ = next(items)
        yield quoted(key) + b":" + (quoted(text) if is_string else text)


def _items(data: memoryview, count: int, at: int, end: int, depth: int) -> Iterator[tuple[bytes, bool, bool]]:
    """Text, whether it is a string, whether it is of several values, for each of the values that fill data[at:end]."""
    for _ in range(count):
        stop = skip_value(data, at, end)
        start = undescribed(data, at, stop)
        code = data[start]
        yield *_text(data, code, start + 1, stop, depth), code in COMPOUND or code == 0x45
        at = stop
    if at != end:
        raise Malformed


def _array_items(data: memoryview, count: int, at: int, end: int, depth: int) -> Iterator[bytes]:
    """Each element as JSON; the constructor stands once."""
    take(at, 1, end)
    while data[at] == 0x00:
        at = skip_value(data, at + 1, end)
        take(at, 1, end)
    code, at = data[at], at + 1
    if FIXED.get(code) == 0 and count > MOST_WIDTHLESS:
        raise Malformed
    for _ in range(count):
        if code in FIXED:
            stop = take(at, FIXED[code], end)
        elif code in VARIABLE or code in COMPOUND:
            width = VARIABLE[code] if code in VARIABLE else COMPOUND[code]
            size = number(data, at, width, end)
            stop = take(at + width, size, end)
            if code in COMPOUND and size < width:
                raise Malformed
        else:
            raise Malformed
        text, is_string = _text(data, code, at, stop, depth)
        yield quoted(text) if is_string else text
        at = stop
    if at != end:
        raise Malformed


def entries_before_break(data: memoryview, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """(key, value, end) of each entry of the map at `at`, as far as they can be walked."""
    try:
        count, at, end = compound(data, at, end)
        for _ in range(count // 2):
            value = skip_value(data, at, end)
            behind = skip_value(data, value, end)
            yield at, value, behind
            at = behind
    except Malformed:
        return


def property_fields(data: memoryview, at: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """(name, start, end) of each field of a properties list that is not null, as far as they can be walked."""
    try:
        count, at, end = compound(data, at, end)
        for _, name in zip(range(count), PROPERTY_NAMES, strict=False):
            behind = skip_value(data, at, end)
            if data[at] != 0x40:
                yield name, at, behind
            at = behind
    except Malformed:
        return


def body_of(data: memoryview, sections: list[Section]) -> bytes | None:
    """The bytes of a message's body; None when it has none."""
    body = [section for section in sections if section.code in (DATA, SEQUENCE, VALUE)]
    if not body:
        return None
    first = body[0]
    if first.code == DATA:
        return b"".join([bytes(data[slice(*variable(data, section.value, section.end))]) for section in body])
    if first.code == VALUE:
        at = undescribed(data, first.value, first.end)
        if data[at] == 0x40:
            return None
        if data[at] in STRING + BINARY + SYMBOL:
            text = bytes(data[slice(*variable(data, at, first.end))])
            return text if data[at] in BINARY else utf8(text)
        return json_of(data, first.value, first.end)
    try:
        items: list[bytes] = []
        for section in body:
            count, start, stop = compound(data, section.value, section.end)
            items += [quoted(text) if told else text for text, told, _ in _items(data, count, start, stop, 1)]
    except Malformed:
        return quoted(b64encode(b"".join([bytes(data[section.value : section.end]) for section in body])))
    return b"[" + b",".join(items) + b"]"
