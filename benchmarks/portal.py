"""What the pages of the portal take: with many entities and many connections, by the watch of whoever asks.

    ./run bench portal [--entities 1000] [--connections 10000] [--visits 20] [--brokers 1]

A server in a process of its own (or several) with as many entities, half of them queues, half event hubs of two
partitions, and as many AMQP connections that are open and silent. Somebody signs in and opens each page so many times,
one after the other, over one connection. Memory is what the system says of all processes of the server: before the
first scrape, behind some, and behind the last page.
"""

from __future__ import annotations

import argparse
import io
import resource
import socket
import struct
import tempfile
import time
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from urllib.parse import urlencode

import fastavro
from rich.console import Console

from goals.figure import Figure
from goals.table import table_of
from hubweir.config.settings import DEVELOPMENT_KEY, ROOT_RULE
from hubweir.testing.server_process import ServerProcess
from scrape import Scraper, make_entities

GOAL_MS, MOONSHOT_MS = 100.0, 30.0
GOAL_MB, MOONSHOT_MB = 15.0, 8.0
PATIENCE_S = 60.0
SCRAPES = 5  # the first makes the heads of all lines, which are kept
PAGES = (
    "", "event-hubs", "queues", "queues?search=queue-9", "entity/hub-1", "entity/queue-0", "readers/hub-1",
    "events/hub-1", "events/hub-1?view=avro", "messages/queue-0", "scale", "charts", "policies", "alarms",
    "connections", "connections?page=200",
)  # fmt: skip
_OPEN = b"\x00\x53\x10\xc0\x08\x01\xa1\x05bench"  # a performative with a container id and nothing else
HELLO = b"AMQP\x00\x01\x00\x00" + struct.pack(">IBBH", 8 + len(_OPEN), 2, 0, 0) + _OPEN


class Visitor:
    """A browser that is signed in."""

    def __init__(self, server: ServerProcess) -> None:
        self._connection = HTTPConnection(server.host, server.port, timeout=PATIENCE_S)
        form = urlencode({"rule": ROOT_RULE, "secret": DEVELOPMENT_KEY})
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        self._connection.request("POST", "/portal/sign-in", form, headers)
        answer = self._connection.getresponse()
        answer.read()
        assert answer.status == 303, f"signing in: {answer.status}"
        self._cookie = str(answer.getheader("set-cookie")).partition(";")[0]

    def close(self) -> None:
        self._connection.close()

    def open(self, page: str) -> float:
        """Milliseconds until all of a page is there."""
        began_s = time.perf_counter()
        self._connection.request("GET", f"/portal/{page}".rstrip("/"), headers={"Cookie": self._cookie})
        answer = self._connection.getresponse()
        answer.read()
        assert answer.status == 200, f"{page}: {answer.status}"
        return (time.perf_counter() - began_s) * 1_000


def avro_file() -> bytes:
    """A body for the view Avro: a hundred records."""
    out, fields = io.BytesIO(), [{"name": "dish", "type": "string"}, {"name": "table", "type": "int"}]
    schema = fastavro.parse_schema({"type": "record", "name": "Order", "fields": fields})
    fastavro.writer(out, schema, [{"dish": "two teas", "table": number} for number in range(100)], codec="deflate")
    return out.getvalue()


def connect(server: ServerProcess, count: int, stack: ExitStack) -> None:
    """Open so many connections, and leave them alone."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + 256
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, wanted)), hard))
    connections = []
    for _ in range(count):
        connection = stack.enter_context(socket.create_connection((server.host, server.port), PATIENCE_S))
        connection.sendall(HELLO)
        connections.append(connection)
    for connection in connections:
        assert connection.recv(8) == HELLO[:8], "the server opens each"


def memory_mb(server: ServerProcess) -> float:
    """Resident, of the server's process and of those that it started."""
    pids = [str(server.pid), *Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()]
    texts = (Path(f"/proc/{pid}/status").read_text() for pid in pids)
    return sum(int(text.partition("VmRSS:")[2].split()[0]) for text in texts) / 1_024


def main() -> None:
    options = argparse.ArgumentParser(prog="./run bench portal")
    options.add_argument("--entities", type=int, default=1_000)
    options.add_argument("--connections", type=int, default=10_000)
    options.add_argument("--visits", type=int, default=20)
    options.add_argument("--brokers", type=int, default=1)
    chosen = options.parse_args()
    arguments = ("--brokers", str(chosen.brokers), "--unauthorized-connection-ms", "3600000")
    with (
        tempfile.TemporaryDirectory() as folder,
        ServerProcess(folder, arguments=arguments) as server,
        ExitStack() as stack,
    ):
        with closing(Scraper(server)) as maker:
            make_entities(maker, chosen.entities)
            for partition in range(2):
                maker.ask("POST", f"/hub-1/partitions/{partition}/messages", avro_file())
        connect(server, chosen.connections, stack)
        scraper = stack.enter_context(closing(Scraper(server)))
        before_mb = memory_mb(server)
        for _ in range(SCRAPES):
            scraper.ask("GET", "/metrics")
        scraped_mb = memory_mb(server)
        began_s = time.perf_counter()
        visitor = stack.enter_context(closing(Visitor(server)))
        figures = [
            Figure("signing in at a server that nobody looked at", ((time.perf_counter() - began_s) * 1_000,), "ms")
        ]
        for page in PAGES:
            took = tuple(visitor.open(page) for _ in range(chosen.visits))
            figures.append(Figure(f"/portal/{page}", took, "ms", GOAL_MS, MOONSHOT_MS, is_limit=True))
        slowest = max(median(each.values) for each in figures[1:])
        figures.append(Figure("the slowest page", (slowest,), "ms", GOAL_MS, MOONSHOT_MS, is_limit=True))
        used_mb = memory_mb(server)
        figures += [
            Figure("memory that the scrapes added, all processes", (scraped_mb - before_mb,), "MB"),
            Figure("memory that the pages added, all processes", (used_mb - scraped_mb,), "MB"),
            Figure(
                "both, a process", ((used_mb - before_mb) / chosen.brokers,), "MB", GOAL_MB, MOONSHOT_MB, is_limit=True
            ),
        ]
    console = Console()
    console.print(
        f"{chosen.entities} entities, {chosen.connections} connections, {chosen.brokers} broker process(es), "
        f"median of {chosen.visits} visits"
    )
    console.print(table_of(figures))


if __name__ == "__main__":
    main()
