"""The demo's picture: how late flights left, week by week for each airport, and over the year for each carrier."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path

import matplotlib

from delays import Delays

# Without a screen: the picture goes into a file.
matplotlib.use("Agg")
from matplotlib import pyplot as plot

_NAMES = {"EWR": "Newark", "JFK": "Kennedy", "LGA": "La Guardia"}


def draw(delays: Delays, path: Path) -> None:
    """Write the chart as PNG."""
    by_airport: dict[str, dict[int, tuple[int, int]]] = defaultdict(lambda: defaultdict(lambda: (0, 0)))
    by_carrier: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for (origin, carrier, week), (flights, minutes) in delays.items():
        known = by_airport[origin][week]
        by_airport[origin][week] = (known[0] + flights, known[1] + minutes)
        known = by_carrier[carrier]
        by_carrier[carrier] = (known[0] + flights, known[1] + minutes)
    figure, (weeks, carriers) = plot.subplots(2, 1, figsize=(10, 8), layout="constrained")
    for origin, line in sorted(by_airport.items()):
        points = sorted(line.items())
        times = [datetime.fromtimestamp(week, UTC) for week, _ in points]
        weeks.plot(times, [minutes / flights for _, (flights, minutes) in points], label=_NAMES.get(origin, origin))
    weeks.set_title("Mean departure delay out of New York, 2013, by week")
    weeks.set_ylabel("minutes")
    weeks.legend()
    ranked = sorted(by_carrier.items(), key=lambda entry: entry[1][1] / entry[1][0])
    carriers.bar([carrier for carrier, _ in ranked], [minutes / flights for _, (flights, minutes) in ranked])
    carriers.set_title("By carrier")
    carriers.set_ylabel("minutes")
    figure.savefig(path, dpi=110)
    plot.close(figure)
