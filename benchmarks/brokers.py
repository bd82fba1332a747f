"""Broker processes and fragments: what two processes do against one, what a hop costs, what fragments cost, a restart.

    ./run bench brokers [--events N] [--messages N] [--gigabytes N] [--rounds N] [--only SECTION …]

Events and messages have 200 B; all is durable; messages are received under peek-lock, and each is settled by a
disposition of its own that the service answers. Sections: spread (two brokers against one process, load over 32
connections), hop (an event for a log of another process), fragments (16 in one process against one, by the receiver's
credit), restart (a killed broker with a large log). Nothing is pinned to a core: load generator and service share the
machine, so rates stand beside the processor time that they cost. What the sections measure says broker_cases/.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from broker_cases.fragments import measure_fragments
from broker_cases.hop import measure_hop
from broker_cases.processes import Service
from broker_cases.restart import measure_restart
from broker_cases.spread import measure_spread
from goals.figure import Figure
from goals.table import table_of
from hubweir import kernels
from hubweir.testing.event_loops import LOOPS

SECTIONS = ("spread", "hop", "fragments", "restart")
BROKERS = 2


def main() -> int:
    parser = argparse.ArgumentParser(prog="./run bench brokers", description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--events", type=int, default=800_000, help="events a round (default 800000)")
    parser.add_argument("--messages", type=int, default=300_000, help="messages a round (default 300000)")
    parser.add_argument("--gigabytes", type=float, default=1.0, help="of log at the restart (default 1)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds a row (default 3)")
    parser.add_argument("--only", choices=SECTIONS, nargs="+", default=SECTIONS, help="these sections alone")
    chosen = parser.parse_args()
    if sys.platform != "linux":
        parser.error("several broker processes are served on Linux alone")
    console = Console(width=None if sys.stdout.isatty() else 200)
    loop = LOOPS[max(LOOPS)]  # uvloop where it is installed, as the service chooses
    figures: list[Figure] = []
    busy_before = os.getloadavg()
    with (
        tempfile.TemporaryDirectory(prefix="hubweir-bench-") as folder,
        asyncio.Runner(loop_factory=loop) as runner,
        Service(Path(folder) / "one", 1) as one,
        Service(Path(folder) / "several", BROKERS) as several,
    ):
        if "spread" in chosen.only:
            both = [one, several]
            figures += measure_spread(both, chosen.events, chosen.messages, chosen.rounds, runner, console)
        if "hop" in chosen.only:
            figures += measure_hop(several, chosen.events, chosen.rounds, runner, console)
        if "fragments" in chosen.only:
            figures += measure_fragments(one, chosen.messages, chosen.rounds, runner, console)
        if "restart" in chosen.only:
            figures += measure_restart(several, int(chosen.gigabytes * 1e9), chosen.rounds, runner, console)
    console.print(table_of(figures))
    load = ", ".join(f"{each[0]:.1f}" for each in (busy_before, os.getloadavg()))
    console.print(f"kernels: {kernels.which()}; {os.cpu_count()} cores; load of the machine before and behind: {load}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
