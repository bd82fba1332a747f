"""A service that works for half an hour, with somebody at its portal and a scraper: nothing is lost, nothing grows.

Official clients send and receive all the time (flows.py), somebody looks at the portal's live pages, in Chromium where
it is installed, and `/metrics` is read once a second (onlookers.py). In the end everything has come, each message once
(ledger.py); memory, file descriptors and threads are what they were behind the warm-up (growth.py); no error stands in
the log, no alarm was ever raised, no request failed in the service; and a scrape costs at most a hundredth of a core.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from importlib.util import find_spec
from pathlib import Path

import pytest

from hubweir.testing.server_process import ServerProcess
from tests.conformance.foreign.queue_checks import administration
from tests.soak.flows import (
    HUB,
    PARTITIONS,
    CatalogFlow,
    EventFlow,
    Flow,
    QueueFlow,
    SessionFlow,
    TopicFlow,
    prepare,
)
from tests.soak.growth import ALLOWED, LEAST, Growth, Sample, growth, sample
from tests.soak.ledger import Ledger
from tests.soak.onlookers import ChromiumVisitor, PlainVisitor, Scraper, total
from tests.workers.notices import notice

SLICE_S, SLICES = 50, 36  # half an hour with --all, else one of these slices
WARM_S = 300.0  # how long a service and its clients may take until all of them work
EVERY_S = 1.0  # between two scrapes
SHARE = 0.01  # of a core that one scrape a second may take
SCRAPES = 50  # of which its processor time is measured
CREATE_S = 60.0
# A partition keeps its newest bytes in memory: so few are there long before the warm-up is over.
ARGUMENTS = ("--log-format", "json", "--log-tail-bytes", "65536")
FAILURES = ("hubweir_alarms_begun_total", "hubweir_server_errors_total", "hubweir_log_faults_total")


class Soak:
    """One service and all who use it, for some seconds. complaints: what was wrong, when it is over."""

    def __init__(self, data: Path, program: Sequence[str] = ("-m", "hubweir")) -> None:
        self.complaints: list[str] = []
        self.figures: list[str] = []
        self._data = data
        self._server = ServerProcess(data, program=program, arguments=ARGUMENTS, on_line=self._said)

    def run(self, seconds: float, executable: str | None = None) -> None:
        """executable: of a Chromium that looks at the portal; None: somebody asks for its pages without a browser."""
        with ExitStack() as stack:
            server = stack.enter_context(self._server)
            scraper = stack.enter_context(closing(Scraper(server)))
            flows = self._flows(stack, executable)
            for flow in flows:
                flow.begin()
            self._wait_until_warm(flows, scraper)
            samples, page = self._watch(scraper, seconds)
            for flow in flows:
                flow.stop()
            for flow in flows:
                self.complaints += flow.complaints()
            self._judge(samples, page, scraper)
            sent = sum(ledger.sent for flow in flows for ledger in flow.ledgers)
            steps = ", ".join(f"{flow.name} {flow.steps}" for flow in flows)
            self.figures += [f"{sent:,} events and messages came, {scraper.count} scrapes; steps: {steps}"]
            if code := server.stop():
                self.complaints.append(f"the service ended with {code}")

    def _flows(self, stack: ExitStack, executable: str | None) -> list[Flow]:
        server, string = self._server, self._server.connection_string()
        command = [sys.executable, "-m", "hubweir", "eventhub", "create", HUB, "--partitions", str(PARTITIONS)]
        subprocess.run([*command, "--connection-string", string], check=True, capture_output=True, timeout=CREATE_S)
        client = stack.enter_context(administration(server, self._data))
        prepare(client)
        visitor = ChromiumVisitor(server, executable) if executable else PlainVisitor(server)
        flows = [each(string) for each in (EventFlow, QueueFlow, SessionFlow, TopicFlow)]
        return [*flows, CatalogFlow(client), visitor]

    def _wait_until_warm(self, flows: Sequence[Flow], scraper: Scraper) -> None:
        """How fast a machine starts all of this is no growth of the service."""
        until = time.monotonic() + WARM_S
        while not all(flow.is_warm for flow in flows):
            scraper.scrape()
            if time.monotonic() > until:
                slow = [f"{flow.name} made {flow.steps} steps" for flow in flows if not flow.is_warm]
                raise AssertionError(f"after {WARM_S:.0f} s: {', '.join(slow)}")
            time.sleep(EVERY_S)

    def _watch(self, scraper: Scraper, seconds: float) -> tuple[list[Sample], str]:
        """What the process was each second, and the last page of its metrics."""
        assert self._server.pid is not None
        samples: list[Sample] = []
        page, until = "", time.monotonic() + seconds
        while time.monotonic() < until or len(samples) < LEAST:
            page = scraper.scrape()
            samples.append(sample(self._server.pid))
            time.sleep(EVERY_S)
        return samples, page

    def _judge(self, samples: Sequence[Sample], page: str, scraper: Scraper) -> None:
        grown = growth(samples)
        self.complaints += [each.complaint for each in grown if each.complaint]
        self.complaints += [f"{name} is {total(page, name):.0f}" for name in FAILURES if total(page, name)]
        share = scraper.processor_s(SCRAPES) / EVERY_S
        if share > SHARE:
            self.complaints.append(f"a scrape takes {share:.2%} of a core; {SHARE:.0%} is allowed")
        self.figures += [f"{each.figure}: {each.earlier:,}, later {each.later:,}" for each in grown]
        self.figures += [f"a scrape takes {share:.2%} of a core at one a second"]

    def _said(self, line: str) -> None:
        """A line of the service's output: its log, and for people the connection strings."""
        if line.startswith("{"):
            said = json.loads(line)
            if said["level"] in ("error", "critical"):
                self.complaints.append(f"the log has an error: {said['kind']}: {said['message']}")
        elif line.startswith("Traceback"):
            self.complaints.append("the service printed a traceback")


def browser(config: pytest.Config) -> str | None:
    """A Chromium, if there is one; a notice if there is none."""
    if find_spec("playwright"):
        from tests.portal.chromium import chromium

        if executable := chromium():
            return executable
    notice(config, "a long life", "no Chromium is installed: the portal of tests/soak is looked at without a browser")
    return None


@pytest.mark.conformance
@pytest.mark.timeout(WARM_S + SLICE_S * SLICES + 600)
def test_a_service_that_works_all_the_time_loses_nothing_and_does_not_grow(
    tmp_path: Path, measure: Callable[[int], int], request: pytest.FixtureRequest
) -> None:
    soak = Soak(tmp_path / "data")
    soak.run(SLICE_S * measure(SLICES), browser(request.config))
    print("\n".join(soak.figures))
    assert not soak.complaints, "\n".join(soak.complaints + soak.figures)


@pytest.mark.timeout(WARM_S + 300)
def test_a_service_that_leaks_and_complains_is_found_out(tmp_path: Path) -> None:
    soak = Soak(tmp_path / "data", (str(Path(__file__).with_name("leaking_server.py")),))
    soak.run(0)  # of the least number of samples
    found = "\n".join(soak.complaints)
    for defect in ("memory_bytes grew", "descriptors grew", "the log has an error: alarm", "hubweir_alarms_begun"):
        assert defect in found, found


def test_a_ledger_tells_what_was_lost_repeated_made_up_and_out_of_order() -> None:
    ledger = Ledger("numbers", is_ordered=True)
    assert ledger.send(2) == range(2) and ledger.send(4) == range(2, 6)
    for number in (0, 2, 1, 3, 3, 4, 9):
        ledger.come(number)
    ledger.explain(4)
    assert ledger.complaints() == [
        "numbers: 4 was lost",
        "numbers: 5 was lost",
        "numbers: 3 came too often",
        "numbers: 9 was never sent",
        "numbers: 1 came behind 2",
    ]
    assert not Ledger("nothing").complaints()


def test_a_ledger_is_content_with_what_came_again_because_it_was_given_back() -> None:
    ledger = Ledger("numbers")
    ledger.send(3)
    assert [ledger.come(number) for number in (2, 0, 1)] == [True] * 3
    ledger.explain(0)
    assert not ledger.is_whole
    assert not ledger.come(0)
    assert ledger.is_whole and not ledger.complaints()


def test_a_burst_is_no_growth_and_a_slow_rise_is() -> None:
    still = [Sample(10**8, 50, 20)] * 30
    assert not any(each.complaint for each in growth([*still, Sample(9 * 10**8, 900, 90), *still]))
    rising = [Sample(10**8 + each * 2**20, 50 + each, 20 + each) for each in range(30)]
    assert [each.figure for each in growth(rising) if each.complaint] == list(ALLOWED)
    assert (
        Growth("threads", 20, 22).complaint == ""
        and "grew from 20 to 23; 2 more" in Growth("threads", 20, 23).complaint
    )
