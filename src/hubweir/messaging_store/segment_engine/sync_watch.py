"""Syncs that do not end: an alarm of their log while the disk hangs, since a slow sync is told when it is over.

A send waits for the sync of its log, without an error, as long as its client is patient. So the operator hears of a
disk that hangs from here, and by nobody else. Nothing is done about it: whether such a write is on the disk nobody can
say before it ends, so the log does nothing else meanwhile.

A log notes when a sync is given to a thread, and that it ended; nobody else looks at a sync that goes well.
"""

from __future__ import annotations

from hubweir.alarms import SYNC_HANGS, Alarms
from hubweir.env import Env

HANGS_S = 5.0


class SyncWatch:
    """One for a store. Used on the owner's loop.

    under_way: since when, monotonic, by what alarms call the log; written by the group commit of each log.
    """

    def __init__(self, env: Env, alarms: Alarms) -> None:
        self._env = env
        self._alarms = alarms
        self.under_way: dict[str, float] = {}
        self._hanging: dict[str, float] = {}

    def look(self) -> None:
        """Begin and end alarms. Cheap; to be called every few seconds."""
        for about, since_s in list(self._hanging.items()):
            if self.under_way.get(about) != since_s:
                self._alarms.end(SYNC_HANGS, about)
                del self._hanging[about]
        latest_s = self._env.monotonic_s() - HANGS_S
        for about, since_s in self.under_way.items():
            if since_s <= latest_s and about not in self._hanging:
                self._hanging[about] = since_s
                text = (
                    f"the disk has not ended a sync for {HANGS_S:.0f} s; sends to it wait, and none was refused for it"
                )
                self._alarms.begin(SYNC_HANGS, about, text)
