"""Lengths of time as descriptions and configuration files have them: `PT1M`, `P1DT12H`, and .NET's `d.hh:mm:ss`.

A year counts 365 days and a month 30, as .NET reads them. Weeks and signs are not taken. From 10,675,199 days on
(the largest TimeSpan of .NET) a duration means "without end". Texts are ASCII and at most TEXT_LIMIT characters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

SECOND_MS = 1_000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
UNLIMITED_MS = 10_675_199 * DAY_MS
TEXT_LIMIT = 64

# The largest TimeSpan of .NET as the service writes it; every longer one, and every other spelling, comes back so.
UNLIMITED_TEXT = "P10675199DT2H48M5.4775807S"

_ISO = re.compile(
    r"P(?:(?P<years>[0-9]+)Y)?(?:(?P<months>[0-9]+)M)?(?:(?P<days>[0-9]+)D)?"
    r"(?:T(?:(?P<hours>[0-9]+)H)?(?:(?P<minutes>[0-9]+)M)?(?:(?P<seconds>[0-9]+(?:\.[0-9]{1,9})?)S)?)?"
)
_DOTNET = re.compile(
    r"(?:(?P<days>[0-9]+)\.)?(?P<hours>[0-9]{1,2}):(?P<minutes>[0-9]{2}):(?P<seconds>[0-9]{2}(?:\.[0-9]{1,9})?)"
)
_UNIT_MS = {
    "years": 365 * DAY_MS,
    "months": 30 * DAY_MS,
    "days": DAY_MS,
    "hours": HOUR_MS,
    "minutes": MINUTE_MS,
    "seconds": SECOND_MS,
}


class BadDuration(ValueError):
    """The text is no duration; str() says why."""


@dataclass(frozen=True, slots=True)
class WrittenDuration:
    """A length of time that an operator set: milliseconds, what is finer cut off, and the text that was sent.

    The text goes back to clients as it came, because some compare it letter by letter. Kept in the catalog.
    """

    ms: int
    text: str

    @property
    def is_unlimited(self) -> bool:
        return self.ms >= UNLIMITED_MS


def written_duration(text: str) -> WrittenDuration:
    """The span that a text says. Raises BadDuration."""
    ms = parse_duration(text)
    return UNLIMITED if ms >= UNLIMITED_MS else WrittenDuration(ms, text)


def written_duration_of(ms: int) -> WrittenDuration:
    """The span of that many milliseconds, with its shortest text."""
    return UNLIMITED if ms >= UNLIMITED_MS else WrittenDuration(ms, duration_text(ms))


def parse_duration(text: str) -> int:
    """Milliseconds; what is finer is cut off. UNLIMITED_MS stands for everything from there on. Raises BadDuration."""
    if len(text) > TEXT_LIMIT:
        raise BadDuration(f"it has more than {TEXT_LIMIT} characters")
    match = _ISO.fullmatch(text)
    if match is not None:
        if text.endswith(("P", "T")):
            raise BadDuration(f"nothing follows the {text[-1]}")
        return _total(match.groupdict())
    match = _DOTNET.fullmatch(text)
    if match is None:
        raise BadDuration("it is not of the form PnDTnHnMnS or d.hh:mm:ss")
    parts = match.groupdict()
    for name, end in (("hours", 24), ("minutes", 60), ("seconds", 60)):
        if Decimal(parts[name]) >= end:
            raise BadDuration(f"its {name} are not below {end}")
    return _total(parts)


def _total(parts: dict[str, str | None]) -> int:
    total = sum((Decimal(number) * _UNIT_MS[name] for name, number in parts.items() if number), Decimal(0))
    return min(int(total), UNLIMITED_MS)


UNLIMITED = WrittenDuration(UNLIMITED_MS, UNLIMITED_TEXT)


def duration_text(duration_ms: int) -> str:
    """The shortest ISO form, for error texts: `PT5M`, `P7D`, `PT1.5S`."""
    if duration_ms >= UNLIMITED_MS:
        return "unlimited"
    for unit_ms, before, after in ((DAY_MS, "P", "D"), (HOUR_MS, "PT", "H"), (MINUTE_MS, "PT", "M")):
        if duration_ms and duration_ms % unit_ms == 0:
            return f"{before}{duration_ms // unit_ms}{after}"
    seconds, rest_ms = divmod(duration_ms, SECOND_MS)
    return f"PT{seconds}S" if not rest_ms else f"PT{seconds}.{rest_ms:03d}".rstrip("0") + "S"
