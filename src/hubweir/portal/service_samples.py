"""Samples of all processes of the service, for the pages that draw them: taken when somebody looks, and kept a moment.

A scrape visits every entity. However many people look, one is made every KEPT_MS at most, and one at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from hubweir.env import Clock
from hubweir.gateway.http.open_metrics import ProcessSamples

TakeSamples = Callable[[], Awaitable[Sequence[ProcessSamples]]]
KEPT_MS = 2_000


class ServiceSamples:
    """See the module's text."""

    def __init__(self, take: TakeSamples, clock: Clock) -> None:
        self._take = take
        self._clock = clock
        self._turn = asyncio.Lock()
        self._taken: Sequence[ProcessSamples] = ()
        self._until_ms = -1

    async def now(self) -> Sequence[ProcessSamples]:
        """What they measure, at most KEPT_MS ago."""
        async with self._turn:
            if self._clock.monotonic_ms() >= self._until_ms:
                self._taken = await self._take()
                self._until_ms = self._clock.monotonic_ms() + KEPT_MS
            return self._taken
