"""`/metrics`: what a scraper reads, in the format that it asks for.

Who may read it is a setting. OPEN: everybody who reaches a port. TOKEN: whoever shows a token with Manage for
`/$metrics`; a token of the default namespace is shown everything, one of another namespace what is of that one alone.
One scrape at a time: those that come meanwhile wait, so that nobody makes the service measure itself all the time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum

from hubweir.gateway.http.exchange import Request, Response
from hubweir.gateway.http.open_metrics import OPEN_METRICS, PLAIN_TEXT, ExpositionWriter, ProcessSamples
from hubweir.gateway.http.problem import HttpRefusal
from hubweir.gateway.http.route import Match, Route
from hubweir.namespace.rights import Rights

PATH = ("metrics",)
# No entity has such a name, so a token that is made for this address is good for nothing else.
RESOURCE = ("$metrics",)

Scrape = Callable[[], Awaitable[Sequence[ProcessSamples]]]


class MetricsAccess(Enum):
    """Who may read the page; see the module's text."""

    OPEN = "open"
    TOKEN = "token"


class MetricsPage:
    """See the module's text. scrape: asks all processes of the service."""

    def __init__(self, scrape: Scrape, access: MetricsAccess) -> None:
        self.access = access
        self._scrape = scrape
        self._writer = ExpositionWriter()
        self._turn = asyncio.Lock()

    def is_asked(self, request: Request) -> bool:
        """Whether a request is for this page. A client that manages an entity called metrics names the version of the
        interface; a scraper does not.
        """
        is_read = request.segments == PATH and request.method in ("GET", "HEAD")
        return is_read and "api-version" not in request.query

    async def answer(self, request: Request, namespace: str = "") -> Response:
        """The page. namespace: what is of it, alone."""
        accepted = (request.header(b"accept") or "").lower()
        is_open_metrics = "application/openmetrics-text" in accepted
        parts: list[bytes] = []
        async with self._turn:
            told = await self._scrape()
            for part in self._writer.families(told, is_open_metrics=is_open_metrics, namespace=namespace):
                parts.append(part.encode())
                await asyncio.sleep(0)
        content_type = OPEN_METRICS if is_open_metrics else PLAIN_TEXT
        return Response(200, b"".join(parts), content_type, {"cache-control": "no-store"})


async def _nothing(gateway: object, request: Request, match: Match) -> Response:
    """The page is no route: whoever has it answers it."""
    raise HttpRefusal(404, "There is nothing at this address.")


# What a token is asked for.
METRICS_ROUTE = Route("GET", PATH, RESOURCE, Rights.MANAGE, _nothing)
METRICS_MATCH = Match("", {}, RESOURCE)
