"""Looks at the clock of a broker's store every few seconds, so that people hear of a jump at once."""

from __future__ import annotations

from hubweir.env import Env, Timer
from hubweir.messaging_store.log_store import LogStore

# A sweep of retention may be an hour away; whoever looks at alarms hears of a jump within 5 s.
LOOK_MS = 2_000


class ClockLook:
    """See the module's text. Used on the loop."""

    def __init__(self, env: Env, store: LogStore) -> None:
        self._env = env
        self._store = store
        self._next: Timer | None = None

    def start(self) -> None:
        """Look now and then until `stop`."""
        self._next = self._env.call_later(LOOK_MS, self._look)

    def stop(self) -> None:
        if self._next is not None:
            self._next.cancel()

    def _look(self) -> None:
        self.start()
        self._store.keep_clock()
