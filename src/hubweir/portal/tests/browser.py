"""A browser without a screen: it keeps the portal's cookie, fills forms with the page's nonce, and follows where told.

Requests go straight to the application of a world with virtual time and a disk in memory.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from functools import partial
from html import unescape
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode

from hubweir.gateway.amqp.tests.world import KEY, ROOT, World
from hubweir.gateway.http.application import Application
from hubweir.gateway.http.open_metrics import ProcessSamples
from hubweir.gateway.http.tests.service import Answer
from hubweir.gateway.http.tests.world_requests import let_run
from hubweir.metrics import Samples
from hubweir.portal.portal import Portal

HOST = "localhost:5672"
REDIRECTS_LIMIT = 4


class Browser:
    """cookie: as the portal set it last; "" for none. peer: the address that it comes from."""

    def __init__(self, world: World, *, portal: Portal | None = None, host: str = HOST, scheme: str = "http",
                 peer: str = "127.0.0.1") -> None:  # fmt: skip
        self.world = world
        self.portal = portal or Portal(world.process, partial(samples_of, world))
        self.cookie = ""
        self.host, self.scheme, self.peer = host, scheme, peer
        self.nonce = ""
        self.set_cookies: list[str] = []

    # What people do

    def sign_in(self, key: str = KEY, rule: str = ROOT, **fields: str) -> Answer:
        return self.post("sign-in", {"rule": rule, "secret": key, **fields})

    def get(self, page: str, **headers: str) -> Answer:
        """A page, by its path below `/portal`; the nonce of its forms is kept."""
        answer = self.ask("GET", f"/portal/{page}".rstrip("/"), headers=headers)
        found = re.search(r'name="csrf" value="([^"]+)"', answer.body.decode(errors="replace"))
        if found:
            self.nonce = unescape(found[1])
        return answer

    def post(self, page: str, fields: Mapping[str, str], **headers: str) -> Answer:
        """A form, with the nonce of the newest page."""
        body = urlencode({"csrf": self.nonce, **fields}).encode()
        return self.ask("POST", f"/portal/{page}", body, headers=headers)

    def follow(self, answer: Answer) -> Answer:
        """Where an answer leads."""
        assert answer.status == 303, (answer.status, text_of(answer))
        for _ in range(REDIRECTS_LIMIT):
            answer = self.get(answer.headers["location"].removeprefix("/portal").removeprefix("/"))
            if answer.status != 303:
                break
        return answer

    def ask_late(self, method: str, path: str, **fields: str) -> Answer:
        """A request whose answer takes real time, because a time-out of the portal has to pass."""
        body = urlencode({"csrf": self.nonce, **fields}).encode() if method == "POST" else b""
        return self.ask(method, path, body, pause_s=0.01)

    # How

    def ask(self, method: str, path: str, body: bytes = b"", *, headers: Mapping[str, str] | None = None,
            pause_s: float = 0) -> Answer:  # fmt: skip
        """One request, answered while the world runs. headers: `content_type` stands for content-type.

        pause_s: of real time, between looks for the answer.
        """
        sent = {"host": self.host, "content-length": str(len(body))}
        if method == "POST":
            sent["content-type"] = "application/x-www-form-urlencoded"
        if self.cookie:
            sent["cookie"] = self.cookie
        sent |= {name.replace("_", "-"): value for name, value in (headers or {}).items()}
        raw_path, _, query = path.partition("?")
        scope = {
            "type": "http", "method": method, "raw_path": raw_path.encode(), "query_string": query.encode(),
            "scheme": self.scheme, "client": (self.peer, 50_000),
            "headers": [(name.encode(), value.encode()) for name, value in sent.items()],
        }  # fmt: skip
        return asyncio.run(self._run(scope, body, pause_s))

    async def _run(self, scope: dict[str, Any], body: bytes, pause_s: float) -> Answer:
        pieces, told = [body], list[Any]()

        async def receive() -> Any:
            return {"type": "http.request", "body": pieces.pop() if pieces else b"", "more_body": False}

        async def send(message: Any) -> None:
            told.append(message)

        task = asyncio.ensure_future(
            Application(self.world.process, lambda: True, self.portal.answer)(scope, receive, send)
        )
        for _ in range(200):
            if task.done():
                break
            await let_run(self.world, 10)
            await asyncio.sleep(pause_s)
        assert task.done(), "the portal does not answer"
        task.result()
        headers = {name.decode(): value.decode() for name, value in told[0]["headers"]}
        if "set-cookie" in headers:
            self.set_cookies.append(headers["set-cookie"])
            pair = headers["set-cookie"].partition(";")[0]
            self.cookie = "" if pair.endswith("=") else pair
        return Answer(told[0]["status"], headers, b"".join(part["body"] for part in told[1:]))


async def samples_of(world: World) -> list[ProcessSamples]:
    """What the one process of a world measures, as its service would say it (service/scrape.py)."""
    samples = Samples()
    for broker in world.brokers:
        for _ in broker.measure(samples):
            pass
    for gateway in world.process.gateways:
        gateway.measure(samples)
    samples.count(world.counters)
    for metric, series in samples.items():  # the catalog of a world has no name of its own
        if metric.labels[:1] == ("namespace",):
            for labels in [each for each in series if not each[0]]:
                series[world.gateway.settings.namespace, *labels[1:]] += series.pop(labels)
    return [ProcessSamples("", samples)]


def signed_in(world: World, rule: str = ROOT, key: str = KEY, **fields: str) -> Browser:
    """A browser of somebody who signed in, with the first page seen."""
    browser = Browser(world)
    browser.follow(browser.sign_in(key, rule, **fields))
    return browser


def fields_of(answer: Answer) -> dict[str, str]:
    """What a browser sends of a page's form when nobody touches it, but for the nonce."""
    form = _FormReader()
    form.feed(answer.text)
    form.close()
    return form.fields


class _FormReader(HTMLParser):
    """All fields of a page, by the rules of HTML for what is sent: a box only with its tick."""

    def __init__(self) -> None:
        super().__init__()
        self.fields: dict[str, str] = {}
        self._select = self._text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        name, value = given.get("name") or "", given.get("value") or ""
        if tag == "input" and name != "csrf" and (given.get("type") != "checkbox" or "checked" in given):
            self.fields[name] = value
        elif tag == "select":
            self._select = name
        elif tag == "option" and (self._select not in self.fields or "selected" in given):
            self.fields[self._select] = value
        elif tag == "textarea":
            self._text, self.fields[name] = name, ""

    def handle_data(self, data: str) -> None:
        if self._text:
            self.fields[self._text] += data.replace("\n", "\r\n")

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            self._text = ""


def text_of(answer: Answer) -> str:
    """What a person reads of a page: without tags, with single spaces."""
    body = answer.text.partition("<body>")[2] or answer.text
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", body)).split())
