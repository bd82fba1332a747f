"""Numbers, sizes, times and lengths of time in people's words, and lengths of time read back.

A length of time is written as `1 day 2 hours`, and read so, as `26h`, or as descriptions have it (`P1DT2H`). Times are
UTC.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.namespace.iso_duration import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    SECOND_MS,
    UNLIMITED,
    UNLIMITED_MS,
    BadDuration,
    WrittenDuration,
    written_duration,
    written_duration_of,
)

NEVER = "never"
_UNITS = ((DAY_MS, "day"), (HOUR_MS, "hour"), (MINUTE_MS, "minute"), (SECOND_MS, "second"), (1, "millisecond"))
_UNIT_MS = {
    "d": DAY_MS, "day": DAY_MS, "days": DAY_MS,
    "h": HOUR_MS, "hr": HOUR_MS, "hrs": HOUR_MS, "hour": HOUR_MS, "hours": HOUR_MS,
    "m": MINUTE_MS, "min": MINUTE_MS, "mins": MINUTE_MS, "minute": MINUTE_MS, "minutes": MINUTE_MS,
    "s": SECOND_MS, "sec": SECOND_MS, "secs": SECOND_MS, "second": SECOND_MS, "seconds": SECOND_MS,
    "ms": 1, "millisecond": 1, "milliseconds": 1,
}  # fmt: skip
_PIECE = re.compile(r"\s*([0-9]{1,12})\s*([a-z]+)\s*,?")
_SPAN_LIMIT = 64
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def span_words(ms: int) -> str:
    """`10 minutes`, `1 day 2 hours`; `never` for what has no end."""
    if ms >= UNLIMITED_MS:
        return NEVER
    words = []
    for unit_ms, unit in _UNITS:
        count, ms = divmod(ms, unit_ms)
        if count:
            words.append(f"{count} {unit}{'' if count == 1 else 's'}")
    return " ".join(words) or "0 seconds"


def read_span(text: str, what: str, known: WrittenDuration | None = None) -> WrittenDuration:
    """A length of time as a person wrote it; ServiceError ARGUMENT_ERROR says how to. what: names it in the text.

    known: what it was: where the words still say that, its own text stays, letter by letter.
    """
    folded = text.strip().lower()
    if known is not None and folded == span_words(known.ms):
        return known
    if folded in (NEVER, "unlimited"):
        return UNLIMITED
    ms, at = 0, 0
    if len(folded) <= _SPAN_LIMIT:
        while (piece := _PIECE.match(folded, at)) and piece[2] in _UNIT_MS:
            ms += int(piece[1]) * _UNIT_MS[piece[2]]
            at = piece.end()
    if at and at == len(folded):
        return written_duration_of(ms)
    try:
        return written_duration(text.strip())
    except BadDuration:
        said = f"{what} '{text[:_SPAN_LIMIT]}' is no length of time"
        raise ServiceError(
            ARGUMENT_ERROR, f"{said}: write it as '30 seconds', '1 day 12 hours', 'PT5M' or '{NEVER}'."
        ) from None


def read_time_ms(text: str) -> int:
    """A time as a person writes it, UTC where it does not say. Raises ServiceError ARGUMENT_ERROR."""
    try:
        moment = datetime.fromisoformat(text.strip())
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return round(moment.timestamp() * 1_000)
    except (ValueError, OverflowError):
        raise ServiceError(ARGUMENT_ERROR, "Write a time as 2026-01-31T12:00 or 2026-01-31 12:00:30.") from None


def count_words(count: int) -> str:
    """With commas between thousands."""
    return f"{count:,}"


def bytes_words(size: int) -> str:
    """`0 bytes`, `83 bytes`, `1.4 KB`, `2.0 GB`; a kilobyte has 1,024 bytes."""
    if size < 1_024:
        return f"{size:,} byte{'' if size == 1 else 's'}"
    amount = float(size)
    for unit in ("KB", "MB", "GB"):
        amount /= 1_024
        if amount < 1_024:
            return f"{amount:,.1f} {unit}"
    return f"{amount / 1_024:,.1f} TB"


def time_words(time_ms: int | None) -> str:
    """`2026-11-24 18:03:11 UTC`; a dash where there is none."""
    if time_ms is None:
        return "–"
    try:
        return f"{_EPOCH + timedelta(milliseconds=time_ms):%Y-%m-%d %H:%M:%S} UTC"
    except OverflowError:
        return f"{time_ms} ms since 1970"
