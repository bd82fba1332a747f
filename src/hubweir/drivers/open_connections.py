"""The AMQP connections of one process as their drivers know them: made here, and ended together in good order.

Ending: read no more → what was read is settled → each peer is told → who does not answer is dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from hubweir.amqp.endpoint import Endpoint
from hubweir.drivers.amqp_driver import AmqpDriver, DriverHost, ReceiveBuffer
from hubweir.drivers.loop_turn import LoopTurn
from hubweir.drivers.monotonic import monotonic_ms

_LOOK_S = 0.005


class OpenConnections:
    """Of the loop of loop_turn, which all its drivers share; and they read into one buffer."""

    def __init__(self, loop_turn: LoopTurn) -> None:
        self._loop_turn = loop_turn
        self._drivers: dict[AmqpDriver, None] = {}  # in the order in which they came
        self._buffer = ReceiveBuffer()

    def new_driver(self, endpoint: Endpoint, host: DriverHost) -> AmqpDriver:
        """The driver of a connection that was accepted."""
        driver = AmqpDriver(
            endpoint,
            host,
            self._buffer,
            loop_turn=self._loop_turn,
            on_lost=lambda gone: self._drivers.pop(gone, None),
        )
        self._drivers[driver] = None
        return driver

    async def end(
        self, *, is_settled: Callable[[], bool], say_goodbye: Callable[[], None], grace_ms: int, close_ms: int
    ) -> None:
        """End them all. grace_ms: for is_settled to become true. close_ms: for peers to answer say_goodbye."""
        for driver in list(self._drivers):
            driver.stop_reading()
        await _until(is_settled, grace_ms)
        # What was answered in this very turn of the loop is on its way before the close.
        await asyncio.sleep(0)
        say_goodbye()
        await _until(lambda: not self._drivers, close_ms if grace_ms else 0)
        for driver in list(self._drivers):
            driver.abort()
        await _until(lambda: not self._drivers, close_ms)


async def _until(holds: Callable[[], bool], limit_ms: int) -> None:
    end_ms = monotonic_ms() + limit_ms
    while not holds() and monotonic_ms() < end_ms:
        await asyncio.sleep(_LOOK_S)
