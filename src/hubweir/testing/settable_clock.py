"""A clock that a test sets forward, and that no timer goes by: what drivers/service_clock.py is of a real loop."""

from __future__ import annotations

from hubweir.env import Ahead


class SettableClock:
    """waits: how often somebody waited until its timers had rung."""

    def __init__(self) -> None:
        self.ahead = Ahead()
        self.waits = 0

    def forward(self, by_ms: int, *, tokens_by_ms: int = 0) -> None:
        self.ahead.clock_ms += by_ms
        self.ahead.tokens_ms += tokens_by_ms

    async def rung(self, *, limit_s: float) -> None:
        self.waits += 1
