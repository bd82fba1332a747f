"""Usage of a namespace by the hour: units held, bytes and events that moved, what was refused or delayed.

Units are billed by the hour of the wall clock, UTC: an hour costs the most units held at any moment of it, so a unit
costs one hour at least. (Source: the service's pages on scalability and pricing.) An hour in which the service did
not run costs nothing.

Calls carry monotonic time; `set_clocks` says which wall time it stands for, at the start and now and then. Hours that
pass between two calls are entered with the units held. Where the wall clock is set, what was lived is entered first;
hours jumped over are no use, and an hour that comes a second time goes on in its own row.

After a crash: what `snapshot` gave last is what `restored` knows; moves since then are not counted, events are not
affected. The snapshot is plain data (a dict of integers and lists), whoever keeps the namespace stores it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields

from hubweir.errors import CorruptStore, NewerFormat

HOUR_MS = 3_600_000
# The longest month and a day: last month's bill can be read on the first of the next.
HOURS_KEPT = 32 * 24
FORMAT = 1


@dataclass(slots=True)
class HourUsage:
    """One hour. hour_ms: its start, milliseconds since 1970; units: the most held, 0 when units were off.

    refusals, refused_events: requests answered server-busy. delays: sends to consumers that were paced. inflations:
    how often auto-inflate added units.
    """

    hour_ms: int
    units: int = 0
    bytes_in: int = 0
    events_in: int = 0
    bytes_out: int = 0
    events_out: int = 0
    refusals: int = 0
    refused_events: int = 0
    delays: int = 0
    inflations: int = 0


@dataclass(slots=True)
class MovedCounts:
    """What moved in one process since it was asked last, by the columns of HourUsage. Corrections are negative."""

    bytes_in: int = 0
    events_in: int = 0
    bytes_out: int = 0
    events_out: int = 0
    refusals: int = 0
    refused_events: int = 0
    delays: int = 0


_WIDTH = len(fields(HourUsage))


@dataclass(frozen=True, slots=True)
class Bill:
    """A span of time. unit_hours: what is billed. hours_by_unit: how many hours the first, second, … unit was held.

    total: the sums of all columns; its hour_ms is the first hour's, its units the most held in any.
    """

    unit_hours: int
    hours_by_unit: tuple[int, ...]
    total: HourUsage


class Usage:
    """The rows of the last HOURS_KEPT hours, and the one that is running."""

    def __init__(self, *, now_ms: int, wall_ms: int) -> None:
        self._rows: dict[int, HourUsage] = {}
        self._units = 0
        self._wall_offset_ms = wall_ms - now_ms
        self._open((wall_ms // HOUR_MS) * HOUR_MS)

    def row(self, now_ms: int) -> HourUsage:
        """The running hour, to be counted up by the caller; not to be kept."""
        if not self._from_ms <= now_ms < self._until_ms:
            self._move(now_ms)
        return self._row

    def add(self, counts: MovedCounts, now_ms: int) -> None:
        """Count what moved elsewhere into the running hour."""
        row = self.row(now_ms)
        for column in fields(counts):
            setattr(row, column.name, getattr(row, column.name) + getattr(counts, column.name))

    def find(self, hour_ms: int) -> HourUsage | None:
        """The row of an hour; None when nothing is known of it."""
        return self._rows.get(hour_ms)

    def hold(self, units: int, now_ms: int) -> None:
        """From now on the namespace holds this many units; 0: units are off."""
        row = self.row(now_ms)
        row.units = max(row.units, units)
        self._units = units

    def set_clocks(self, now_ms: int, wall_ms: int) -> None:
        """Say which wall time it is now; does nothing when that was known."""
        if wall_ms - now_ms == self._wall_offset_ms:
            return
        self.row(now_ms)
        self._wall_offset_ms = wall_ms - now_ms
        self._open((wall_ms // HOUR_MS) * HOUR_MS)

    def hours(self, now_ms: int) -> list[HourUsage]:
        """All rows, oldest first, up to the running hour."""
        self.row(now_ms)
        return [self._rows[hour] for hour in sorted(self._rows)]

    def bill(self, start_ms: int, end_ms: int, now_ms: int) -> Bill:
        """The sum of the hours that start in start_ms (included) to end_ms (excluded), both wall time."""
        rows = [row for row in self.hours(now_ms) if start_ms <= row.hour_ms < end_ms]
        sums = [sum(column) for column in zip(*(astuple(row)[2:] for row in rows), strict=True)]
        most = max((row.units for row in rows), default=0)
        total = HourUsage(rows[0].hour_ms if rows else start_ms, most, *sums)
        by_unit = tuple(sum(row.units >= unit for row in rows) for unit in range(1, most + 1))
        return Bill(sum(by_unit), by_unit, total)

    def snapshot(self, now_ms: int) -> dict[str, object]:
        """Everything as plain data: `{"format": 1, "hours": [[columns of HourUsage in order], …]}`."""
        return {"format": FORMAT, "hours": [list(astuple(row)) for row in self.hours(now_ms)]}

    @classmethod
    def restored(cls, snapshot: Mapping[str, object], *, now_ms: int, wall_ms: int) -> Usage:
        """Go on from a snapshot. Raises NewerFormat, or CorruptStore when it is no snapshot."""
        version, hours = snapshot.get("format"), snapshot.get("hours")
        if isinstance(version, int) and version > FORMAT:
            raise NewerFormat(f"The usage snapshot has format {version}; this version reads up to {FORMAT}.")
        if version != FORMAT or not isinstance(hours, Sequence):
            raise CorruptStore("The usage snapshot has no format or no hours.")
        usage = cls(now_ms=now_ms, wall_ms=wall_ms)
        usage._rows = {row.hour_ms: row for row in map(_read_row, hours)}
        usage._open((wall_ms // HOUR_MS) * HOUR_MS)
        return usage

    def _move(self, now_ms: int) -> None:
        """Enter the hours since the running one with the units held, and go to the one that now_ms is in."""
        hour_ms = (now_ms + self._wall_offset_ms) // HOUR_MS * HOUR_MS
        first_ms = max(self._row.hour_ms + HOUR_MS, hour_ms - HOURS_KEPT * HOUR_MS)
        for lived_ms in range(first_ms, hour_ms, HOUR_MS):
            self._open(lived_ms)
        self._open(hour_ms)

    def _open(self, hour_ms: int) -> None:
        row = self._rows.get(hour_ms)
        if row is None:
            row = self._rows[hour_ms] = HourUsage(hour_ms)
            while len(self._rows) > HOURS_KEPT:
                del self._rows[min(key for key in self._rows if key != hour_ms)]
        row.units = max(row.units, self._units)
        self._row = row
        self._from_ms = hour_ms - self._wall_offset_ms
        self._until_ms = self._from_ms + HOUR_MS


def _read_row(columns: object) -> HourUsage:
    if not isinstance(columns, Sequence) or len(columns) != _WIDTH:
        raise CorruptStore(f"An hour of the usage snapshot has no {_WIDTH} columns.")
    if any(not isinstance(value, int) or isinstance(value, bool) or value < 0 for value in columns):
        raise CorruptStore("An hour of the usage snapshot holds something else than counts.")
    if columns[0] % HOUR_MS:
        raise CorruptStore("An hour of the usage snapshot starts inside an hour.")
    return HourUsage(*columns)
