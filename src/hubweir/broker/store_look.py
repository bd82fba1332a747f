"""Looks at a store every few seconds, its clock and its syncs, so that people hear at once of what goes wrong."""

from __future__ import annotations

from collections.abc import Callable

from hubweir.env import Env, Timer

# A sweep of retention may be an hour away; whoever looks at alarms hears of a clock that jumped within 5 s.
LOOK_MS = 2_000


class StoreLook:
    """See the module's text. looks: what is called each time. Used on the loop."""

    def __init__(self, env: Env, *looks: Callable[[], None]) -> None:
        self._env = env
        self._looks = looks
        self._next: Timer | None = None

    def start(self) -> None:
        """Look now and then until `stop`."""
        self._next = self._env.call_later(LOOK_MS, self._look)

    def stop(self) -> None:
        if self._next is not None:
            self._next.cancel()

    def _look(self) -> None:
        self.start()
        for look in self._looks:
            look()
