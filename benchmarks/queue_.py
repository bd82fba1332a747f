"""Queues at speed: messages/s, latency, memory, start after a kill, sessions, deadlines, each against its goal.

    ./run bench queue [--messages N] [--rounds N] [--waiting N] [--sessions N] [--pending N] [--only SECTION …]
                      [--outcome WHICH]

Messages have 200 B, are received under peek-lock, and each is settled by a disposition of its own that the service
answers: completed, or for the rates as --outcome says (what is abandoned comes again until its deliveries are used up).
Rates: batches of 100 with many on their way, and one message a send with many on their way; durable (synced before the
answer) and express (written), beside a quorum queue of RabbitMQ where Debian's rabbitmq-server is installed. The server
runs alone on the first core where there are two. What the sections measure says queue_cases/.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from goals.figure import Figure
from goals.table import table_of
from hubweir import kernels
from hubweir.testing.event_loops import LOOPS
from hubweir.testing.server_process import ServerProcess
from queue_cases.deadlines import measure_deadlines
from queue_cases.latency import measure_latency
from queue_cases.queues import BODY_BYTES
from queue_cases.rates import measure_rates
from queue_cases.sessions import measure_sessions
from queue_cases.settler import OUTCOMES
from queue_cases.waiting import measure_waiting
from spine import pid_of, pin

SECTIONS = ("rates", "latency", "waiting", "sessions", "deadlines")


def main() -> int:
    parser = argparse.ArgumentParser(prog="./run bench queue", description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--messages", type=int, default=200_000, help="messages a round (default 200000)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds a row (default 3)")
    parser.add_argument("--waiting", type=int, default=1_000_000, help="messages that wait (default 1000000)")
    parser.add_argument("--sessions", type=int, default=10_000, help="sessions that are held at once (default 10000)")
    parser.add_argument("--pending", type=int, default=100_000, help="messages that wait for a time (default 100000)")
    parser.add_argument("--only", choices=SECTIONS, nargs="+", default=SECTIONS, help="these sections alone")
    parser.add_argument("--outcome", choices=OUTCOMES, default="complete", help="of what is received for the rates")
    chosen = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 200)
    loop = LOOPS[max(LOOPS)]  # uvloop where it is installed, as the service chooses
    figures: list[Figure] = []
    busy_before = os.getloadavg()
    with tempfile.TemporaryDirectory(prefix="hubweir-bench-") as folder, asyncio.Runner(loop_factory=loop) as runner:
        with ServerProcess(data=Path(folder) / "rates") as server:
            placed = pin(pid_of(server))
            if "rates" in chosen.only:
                outcome = OUTCOMES[chosen.outcome]
                figures += measure_rates(server, chosen.messages, chosen.rounds, outcome, runner, console)
            if "latency" in chosen.only:
                figures += measure_latency(server, chosen.rounds, runner, console)
            if "sessions" in chosen.only:
                figures += measure_sessions(server, chosen.messages, chosen.sessions, chosen.rounds, runner, console)
            if "deadlines" in chosen.only:
                figures += measure_deadlines(server, chosen.pending, runner, console)
        if "waiting" in chosen.only:
            figures += measure_waiting(Path(folder) / "waiting", chosen.waiting, runner, console)
    console.print(table_of(figures))
    load = ", ".join(f"{each[0]:.1f}" for each in (busy_before, os.getloadavg()))
    console.print(
        f"{BODY_BYTES} B; kernels: {kernels.which()}; {placed}; load of the machine before and behind: {load}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
