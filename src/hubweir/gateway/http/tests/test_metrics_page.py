"""The page of metrics: which requests it is for, in which format it answers, and one scrape after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from hubweir.gateway.http.exchange import Request, Response
from hubweir.gateway.http.metrics_page import METRICS_MATCH, METRICS_ROUTE, MetricsAccess, MetricsPage
from hubweir.gateway.http.open_metrics import LINES_AT_ONCE, OPEN_METRICS, PLAIN_TEXT, ProcessSamples
from hubweir.gateway.http.problem import HttpRefusal
from hubweir.metrics import SIZE, Samples
from hubweir.namespace.rights import Rights


def request(path: str = "metrics", *, method: str = "GET", query: str = "", accept: str = "") -> Request:
    headers = {b"accept": accept.encode()} if accept else {}
    return Request(method, tuple(path.split("/")), query, headers, [], "http://shop.example", _nothing)


async def _nothing() -> Any:
    raise AssertionError("the page has no body to read")


def samples(*entities: str) -> Samples:
    made = Samples()
    for entity in entities:
        made[SIZE]["shop", entity] += 3
    return made


class Processes:
    """What is asked by a scrape. most: of scrapes that were under way at once."""

    def __init__(self, *told: ProcessSamples) -> None:
        self.told = told
        self.asked = self.most = self._now = 0

    async def scrape(self) -> Sequence[ProcessSamples]:
        self.asked += 1
        self._now += 1
        self.most = max(self.most, self._now)
        await asyncio.sleep(0)
        self._now -= 1
        return self.told


def answer(page: MetricsPage, asked: Request, namespace: str = "") -> Response:
    return asyncio.run(page.answer(asked, namespace))


@pytest.fixture
def processes() -> Processes:
    return Processes(ProcessSamples("", samples("orders")))


@pytest.fixture
def page(processes: Processes) -> MetricsPage:
    return MetricsPage(processes.scrape, MetricsAccess.OPEN)


@pytest.mark.parametrize(
    ("asked", "is_for_it"),
    [
        (request(), True),
        (request(method="HEAD"), True),
        (request(query="name=up"), True),
        (request(method="POST"), False),
        (request(method="PUT"), False),
        (request("metrics/more"), False),
        (request("Metrics"), False),
        (request(query="api-version=2021-05"), False),
        (request(query="timeout=60&api-version=2021-05"), False),
    ],
)
def test_it_is_for_readers_and_not_for_who_manages_an_entity_of_that_name(
    page: MetricsPage, asked: Request, is_for_it: bool
) -> None:
    assert page.is_asked(asked) is is_for_it


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("", PLAIN_TEXT),
        ("text/plain;version=0.0.4", PLAIN_TEXT),
        ("application/openmetrics-text; version=1.0.0", OPEN_METRICS),
        ("Application/OpenMetrics-Text;version=1.0.0;q=0.75,text/plain;q=0.5", OPEN_METRICS),
    ],
)
def test_the_format_is_the_one_that_the_scraper_takes(page: MetricsPage, accept: str, content_type: str) -> None:
    response = answer(page, request(accept=accept))
    assert (response.status, response.content_type) == (200, content_type)
    assert response.headers == {"cache-control": "no-store"}
    assert response.body.endswith(b"# EOF\n") is (content_type == OPEN_METRICS)
    assert b'hubweir_size_bytes{namespace="shop",entity="orders"} 3' in response.body


def test_whoever_is_of_one_namespace_is_told_what_is_of_it() -> None:
    told = samples("orders")
    told[SIZE]["bank", "secret"] += 5
    page = MetricsPage(Processes(ProcessSamples("", told)).scrape, MetricsAccess.TOKEN)
    assert page.access is MetricsAccess.TOKEN
    assert b"secret" in answer(page, request()).body
    alone = answer(page, request(), "shop").body
    assert b"orders" in alone and b"secret" not in alone


def test_a_page_of_many_lines_is_whole(page: MetricsPage, processes: Processes) -> None:
    names = [f"orders-{number:05}" for number in range(2 * LINES_AT_ONCE)]
    processes.told = (ProcessSamples("0", samples(*names)), ProcessSamples("1", None))
    body = answer(page, request()).body.decode()
    shown = [line.split('entity="')[1][:12] for line in body.splitlines() if line.startswith("hubweir_size_bytes{")]
    assert shown == names


def test_scrapes_that_come_together_are_done_one_after_the_other(page: MetricsPage, processes: Processes) -> None:
    async def three() -> list[Response]:
        return await asyncio.gather(*(page.answer(request()) for _ in range(3)))

    bodies = {response.body for response in asyncio.run(three())}
    assert len(bodies) == 1 and (processes.asked, processes.most) == (3, 1)


def test_a_scrape_that_fails_leaves_the_next_one_its_turn(page: MetricsPage, processes: Processes) -> None:
    async def fails() -> Sequence[ProcessSamples]:
        raise OSError("no process answers")

    async def both() -> Response:
        page._scrape = fails
        with pytest.raises(OSError, match="no process answers"):
            await page.answer(request())
        page._scrape = processes.scrape
        return await asyncio.wait_for(page.answer(request()), 30)

    assert asyncio.run(both()).status == 200


def test_its_token_is_one_that_manages_an_address_that_no_entity_has() -> None:
    assert (METRICS_ROUTE.right, METRICS_ROUTE.resource) == (Rights.MANAGE, ("$metrics",))
    assert METRICS_MATCH.resource == METRICS_ROUTE.resource and METRICS_MATCH.entity == ""
    with pytest.raises(HttpRefusal) as refusal:
        asyncio.run(METRICS_ROUTE.handler(None, request(), METRICS_MATCH))  # type: ignore[arg-type]
    assert refusal.value.status == 404
