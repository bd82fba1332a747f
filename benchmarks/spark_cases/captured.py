"""Capture: what a broker stores with it and without it, and how fast Spark reads the files."""

from __future__ import annotations

import asyncio
import sys
import time

from capture import Round, parser, play
from goals.figure import Figure, ratios
from hubweir.service.parts import SWITCH_INTERVAL_S
from hubweir.spark.event_columns import COLUMN_NAMES
from spark_cases.events import BODY_BYTES, PARTITIONS
from spark_cases.stream_runs import Bench

_SECONDS = 4.0


def capture_in_broker(rounds: int, seconds: float = _SECONDS) -> list[Figure]:
    """As `./run bench capture` does it, before there is a JVM: with as many events offered as the broker stores."""
    options = parser().parse_args([f"--seconds={seconds}", f"--partitions={PARTITIONS}", f"--size={BODY_BYTES}"])
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL_S)  # as the server's process has it
    plain: list[Round] = []
    captured: list[Round] = []
    for number in range(rounds):
        print(f"capture: round {number + 1} of {rounds}", flush=True)
        plain.append(asyncio.run(play(options, is_captured=False)))
        captured.append(asyncio.run(play(options, is_captured=True)))
    sys.setswitchinterval(before)
    with_it, without = [one.stored for one in captured], [one.stored for one in plain]
    return [
        Figure("captured in the broker", tuple(one.captured for one in captured), "events/s", 500_000, 1_000_000),
        Figure("  afterwards, until it has caught up", tuple(one.catching_up for one in captured), "events/s"),
        Figure("  stored meanwhile", tuple(with_it), "events/s"),
        Figure("  stored with capture / without", ratios(with_it, without), "x", 0.7, 0.9),
    ]


def captured_reading(bench: Bench) -> list[Figure]:
    """The files of the hub that was filled, read as a table into no sink."""
    files = bench.spark.read.format("eventhubs-capture").load(str(bench.folder / "captured"))
    rows = files.select("sequenceNumber").count()  # and the JVM compiles what it runs
    if not rows:
        raise RuntimeError("no window was full, so nothing was captured: more --events")
    rates = []
    for number in range(bench.rounds):
        print(f"captured files: round {number + 1} of {bench.rounds}", flush=True)
        begun = time.perf_counter()
        files.select(*COLUMN_NAMES).write.format("noop").mode("overwrite").save()
        rates.append(rows / (time.perf_counter() - begun))
    return [Figure(f"eventhubs-capture read of {rows:,} rows", tuple(rates), "rows/s", 500_000)]
