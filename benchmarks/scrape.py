"""What a scrape of /metrics costs: how long it takes, how much of a core at one a second, how long it holds the loop.

    ./run bench scrape [--entities 1000] [--scrapes 100] [--brokers 1]

A server in a process of its own with as many entities, half of them queues, half event hubs of two partitions. Each of
them was sent something, so that none of its counters is left out. Then come the scrapes, one after the other, in both
formats. Processor time is that of the server, as its own metrics tell it. The first scrape stands alone: it makes the
heads of all lines.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from contextlib import ExitStack, closing
from http.client import HTTPConnection

from rich.console import Console

from goals.figure import Figure
from goals.table import table_of
from hubweir.auth.shared_access_signature import make_token
from hubweir.config.settings import DEVELOPMENT_KEY, ROOT_RULE
from hubweir.testing.server_process import ServerProcess

GOAL_MS, MOONSHOT_MS = 20.0, 10.0
GOAL_PERCENT, MOONSHOT_PERCENT = 1.0, 0.5
FORMATS = {"OpenMetrics": "application/openmetrics-text; version=1.0.0", "Prometheus": "text/plain; version=0.0.4"}
ENTRY = (
    '<entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml"><{kind} '
    'xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect">{members}</{kind}></content></entry>'
)
KINDS = (
    ("queue", ENTRY.format(kind="QueueDescription", members="")),
    ("hub", ENTRY.format(kind="EventHubDescription", members="<PartitionCount>2</PartitionCount>")),
)
PATIENCE_S = 60.0
IDLE_S = 3.0  # less than an idle connection is kept


class Scraper:
    """One connection to the server, with a token for everything."""

    def __init__(self, server: ServerProcess) -> None:
        self._connection = HTTPConnection(server.host, server.port, timeout=PATIENCE_S)
        expires_s = int(time.time()) + 3_600
        self._token = make_token(f"https://{server.host}/", ROOT_RULE, DEVELOPMENT_KEY, expires_s)

    def close(self) -> None:
        self._connection.close()

    def ask(self, method: str, path: str, body: str | bytes | None = None, accept: str = "*/*") -> str:
        """The body of an answer, which must be a success."""
        self._connection.request(method, path, body, {"Authorization": self._token, "Accept": accept})
        answer = self._connection.getresponse()
        text = answer.read().decode()
        assert answer.status < 300, f"{method} {path}: {answer.status} {text[:300]}"
        return text


def make_entities(scraper: Scraper, count: int) -> None:
    """So many entities, each with one event or message in it."""
    for number in range(count):
        kind, entry = KINDS[number % len(KINDS)]
        scraper.ask("PUT", f"/{kind}-{number}?api-version=2021-05", entry)
        scraper.ask("POST", f"/{kind}-{number}/messages", "one")


def values(text: str, name: str) -> list[float]:
    """Of all samples of this name."""
    return [float(value) for value in re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", text, re.MULTILINE)]


def processor_s(text: str) -> float:
    """Of all processes of the server until this page."""
    return sum(values(text, "process_cpu_seconds_total"))


def measure(scraper: Scraper, accept: str, scrapes: int) -> tuple[list[float], float, str]:
    """The milliseconds of each scrape, the server's processor time for one, and the last page.

    What the server takes while nobody scrapes is taken off.
    """
    cpu_s, began_s = processor_s(scraper.ask("GET", "/metrics", accept=accept)), time.perf_counter()
    took_ms, text = [], ""
    for _ in range(scrapes):
        each_s = time.perf_counter()
        text = scraper.ask("GET", "/metrics", accept=accept)
        took_ms.append((time.perf_counter() - each_s) * 1_000)
    busy_s, busy_cpu_s = time.perf_counter() - began_s, processor_s(text) - cpu_s
    time.sleep(IDLE_S)
    idle_cpu_s = processor_s(scraper.ask("GET", "/metrics", accept=accept)) - processor_s(text)
    one_s = (busy_cpu_s - idle_cpu_s * busy_s / IDLE_S) / (scrapes - busy_s / IDLE_S)  # the last page is in both
    return took_ms, one_s, text


def main() -> None:
    options = argparse.ArgumentParser(prog="./run bench scrape")
    options.add_argument("--entities", type=int, default=1_000)
    options.add_argument("--scrapes", type=int, default=100)
    options.add_argument("--brokers", type=int, default=1)
    chosen = options.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        ServerProcess(folder, arguments=("--brokers", str(chosen.brokers))) as server,
        ExitStack() as stack,
    ):
        scraper = stack.enter_context(closing(Scraper(server)))
        make_entities(scraper, chosen.entities)
        began_s = time.perf_counter()
        first = scraper.ask("GET", "/metrics", accept=FORMATS["OpenMetrics"])
        figures = [Figure("the first", ((time.perf_counter() - began_s) * 1_000,), "ms")]
        text = first
        for name, accept in FORMATS.items():
            took_ms, cpu_s, text = measure(scraper, accept, chosen.scrapes)
            figures += [
                Figure(f"a scrape, {name}", tuple(took_ms), "ms", GOAL_MS, MOONSHOT_MS, is_limit=True),
                Figure(
                    f"of a core at one a second, {name}", (cpu_s * 100,), "%", GOAL_PERCENT, MOONSHOT_PERCENT,
                    is_limit=True,
                ),
            ]  # fmt: skip
        stalls = values(text, "hubweir_loop_longest_stall_seconds")
        figures.append(Figure("the longest stall of a loop", tuple(1_000 * stall for stall in stalls), "ms"))
        memory = values(text, "process_resident_memory_bytes")
        figures.append(Figure("memory of a process", tuple(each / 2**20 for each in memory), "MB"))
    console = Console()
    lines = sum(not line.startswith("#") for line in text.splitlines())
    console.print(f"{chosen.entities} entities, {lines} samples, {len(text) // 1_000} kB, median of {chosen.scrapes}")
    console.print(table_of(figures))


if __name__ == "__main__":
    main()
