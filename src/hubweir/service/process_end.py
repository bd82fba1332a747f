"""The end of a broker process in order: it is asked, has its time, and is killed when it has not ended then.

Its clients have stop_grace_ms, and what is pending has STOP_S behind that. An order ends one life of it, and gives all
of that; the stop of the service ends the last one, and its clients' time counts from the moment when the service began
to stop. Clients that were let go before need no more of it.
"""

from __future__ import annotations

import asyncio
import logging
import signal

from hubweir.drivers.watched_process import WatchedProcess
from hubweir.env import Env
from hubweir.service.bounded_stop import DISK_WAIT_S, EXIT_LEFT

logger = logging.getLogger(__name__)

STOP_S = DISK_WAIT_S + 2.0  # for a process that was asked to end, and ends itself without a disk that hangs


class ProcessEnd:
    """Of one broker process, in all its lives. is_last: the service stops, and no life follows."""

    def __init__(self, index: int, env: Env, clients_s: float) -> None:
        """clients_s: what clients may take of an end."""
        self.is_last = False
        self._index = index
        self._env = env
        self._clients_s = clients_s
        self._clients_until_ms = 0  # of the last one

    def begin_last(self) -> None:
        """The service stops. The second call does nothing."""
        if not self.is_last:
            self.is_last = True
            self._clients_until_ms = self._env.machine.monotonic_ms() + round(self._clients_s * 1_000)

    def clients_are_gone(self) -> None:
        """They were let go, of the last life."""
        self._clients_until_ms = 0

    async def of(self, life: WatchedProcess) -> bool:
        """End a life, and wait until it is gone. Whether it left a disk that hangs, or had to be killed."""
        within_s = self._clients_left_s() + STOP_S
        life.send(signal.SIGTERM)
        try:
            async with asyncio.timeout(within_s):
                await life.ended()
            return life.exit_code == EXIT_LEFT
        except TimeoutError:
            logger.error("broker process %d did not end within %.0f s: it is killed", self._index, within_s)
            await life.kill()
            return True

    def _clients_left_s(self) -> float:
        if not self.is_last:
            return self._clients_s
        return max(0, self._clients_until_ms - self._env.machine.monotonic_ms()) / 1_000
