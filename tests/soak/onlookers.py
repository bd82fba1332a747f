"""Who looks at a service all the time: somebody at the portal, and a scraper."""

from __future__ import annotations

import re
from contextlib import ExitStack
from http.client import HTTPConnection, HTTPResponse
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from hubweir.config.settings import DEVELOPMENT_KEY, ROOT_RULE
from hubweir.testing.server_process import ServerProcess
from tests.soak.flows import HUB, QUEUE, TOPIC, Flow

if TYPE_CHECKING:
    from tests.portal.chromium import Person

PATIENCE_S = 60.0
LOOK_S = 2.0  # at one page; those that follow something renew themselves every second
PAGES = (
    "", f"entity/{HUB}", f"events/{HUB}?follow=on", f"entity/{QUEUE}", f"messages/{QUEUE}", "charts",
    f"entity-charts/{QUEUE}", f"readers/{HUB}", "connections", f"entity/{TOPIC}/Subscriptions/even", "queues", "scale",
)  # fmt: skip
OPEN_METRICS = "application/openmetrics-text; version=1.0.0"


class ChromiumVisitor(Flow):
    """Somebody who is signed in and looks at one live page after the other, in a real browser."""

    warm_steps = len(PAGES)

    def __init__(self, server: ServerProcess, executable: str) -> None:
        super().__init__("portal in Chromium")
        self._origin = f"http://{server.host}:{server.port}"
        self._executable = executable

    def open(self, stack: ExitStack) -> None:
        from tests.portal.chromium import Person, running_chromium

        browser = stack.enter_context(running_chromium(self._executable))
        self._person: Person = Person(browser.new_context(), self._origin)
        stack.callback(self._person.leave)
        stack.callback(lambda: self._trouble.extend(self._person.offences[:5]))
        self._person.sign_in(DEVELOPMENT_KEY, ROOT_RULE)

    def step(self) -> None:
        page = self._person.open(PAGES[self.steps % len(PAGES)])
        if not page.inner_text("main").strip():
            self._trouble.append(f"{page.url} is empty")
        # Playwright handles what the page says and asks only while it is called.
        page.wait_for_timeout(LOOK_S * 1_000)


class PlainVisitor(Flow):
    """Somebody who asks for the same pages without a browser."""

    pause_s, warm_steps = LOOK_S, len(PAGES)

    def __init__(self, server: ServerProcess) -> None:
        super().__init__("portal over HTTP")
        self._server = server

    def open(self, stack: ExitStack) -> None:
        self._connection = HTTPConnection(self._server.host, self._server.port, timeout=PATIENCE_S)
        stack.callback(self._connection.close)
        form = urlencode({"rule": ROOT_RULE, "secret": DEVELOPMENT_KEY})
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        self._connection.request("POST", "/portal/sign-in", form, headers)
        answer = self._connection.getresponse()
        answer.read()
        self._cookie = ""
        self._keep_cookie(answer)

    def step(self) -> None:
        page = PAGES[self.steps % len(PAGES)]
        answer = get(self._connection, f"/portal/{page}".rstrip("/"), {"Cookie": self._cookie})
        answer.read()
        self._keep_cookie(answer)
        if answer.status != 200:
            self._trouble.append(f"/portal/{page} answered {answer.status}")

    def _keep_cookie(self, answer: HTTPResponse) -> None:
        """As a browser does: the service writes the session's cookie anew while it is used, and one ends when idle."""
        if written := answer.getheader("set-cookie"):
            self._cookie = written.partition(";")[0]


class Scraper:
    """Reads /metrics over one connection."""

    def __init__(self, server: ServerProcess) -> None:
        self._connection = HTTPConnection(server.host, server.port, timeout=PATIENCE_S)
        self.count = 0

    def close(self) -> None:
        self._connection.close()

    def scrape(self) -> str:
        """The page; AssertionError when it is none."""
        answer = get(self._connection, "/metrics", {"Accept": OPEN_METRICS})
        text = answer.read().decode()
        assert answer.status == 200 and text.endswith("# EOF\n"), f"a scrape answered {answer.status}"
        self.count += 1
        return text

    def processor_s(self, scrapes: int) -> float:
        """Of the service for one scrape of so many, one after the other; nobody else may ask it for anything."""
        before = total(self.scrape(), "process_cpu_seconds_total")
        for _ in range(scrapes - 1):
            self.scrape()
        return (total(self.scrape(), "process_cpu_seconds_total") - before) / scrapes


def get(connection: HTTPConnection, path: str, headers: dict[str, str]) -> HTTPResponse:
    """The answer, over a new connection where the service closed this one: it keeps none that is idle for long."""
    try:
        connection.request("GET", path, headers=headers)
        return connection.getresponse()
    except ConnectionError:
        connection.close()
        connection.request("GET", path, headers=headers)
        return connection.getresponse()


def total(page: str, name: str) -> float:
    """The sum of all samples of this name on a page."""
    return sum(map(float, re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)", page, re.MULTILINE)))
