"""Keeps a store's clock: what it knows outlives the process, and an alarm tells what is wrong with it.

After a crash: the next process knows the time that this one saw, but for the last minute (clock_file.py).
"""

from __future__ import annotations

import logging

from hubweir.alarms import CLOCK_AWAY, DAMAGED_FILE, Alarms
from hubweir.env import Env, Lane, Result, join_path
from hubweir.messaging_store.disk.clock_file import load_clock, save_clock
from hubweir.messaging_store.disk.layout import CLOCK_NAME
from hubweir.messaging_store.segment_engine.reserve import Reserve
from hubweir.messaging_store.trusted_clock import TrustedClock

logger = logging.getLogger(__name__)

# What a killed process knew of the time is this old at most; the rest is found out anew.
CLOCK_SAVE_MS = 60_000


class ClockKeeper:
    """Of one store folder. about: the store, as its alarms name it."""

    def __init__(self, env: Env, folder: str, alarms: Alarms, about: str) -> None:
        self._env = env
        self._folder = folder
        self._alarms = alarms
        self._about = about
        self._saved_ms = 0  # on the boot clock

    def load(self, reserve: Reserve) -> TrustedClock:
        """Go on with the clock of the process before; begin one where there is none. Blocking; raises OSError."""
        files, folder = self._env.files, self._folder
        state = load_clock(files, folder)
        if state is None:
            if files.exists(join_path(folder, CLOCK_NAME)):
                text = f"{folder}/{CLOCK_NAME} is damaged; the clock is believed as it is"
                self._alarms.begin(DAMAGED_FILE, self._about, text)
            state = begun = TrustedClock(self._env).state
            reserve.use_for(lambda: save_clock(files, folder, begun))
        # A process that is killed soon is not to be forgotten: the first time comes with the first sweep.
        self._saved_ms = self._env.boottime_ms() - CLOCK_SAVE_MS
        return TrustedClock(self._env, state)

    def keep(self, clock: TrustedClock, *, is_saved: bool) -> None:
        """Tell what is wrong with the clock; with is_saved, make what it knows durable once a minute, away from the
        loop."""
        text = clock.trouble
        if text is None:
            self._alarms.end(CLOCK_AWAY, self._about)
        else:
            self._alarms.begin(CLOCK_AWAY, self._about, text)
        now_ms = self._env.boottime_ms()
        if now_ms - self._saved_ms < CLOCK_SAVE_MS or not is_saved:
            return
        self._saved_ms = now_ms
        files, folder, state = self._env.files, self._folder, clock.state
        self._env.offload(Lane.MAINTENANCE, lambda: save_clock(files, folder, state), _saved)


def _saved(result: Result[None]) -> None:
    try:
        result.value()
    except OSError as error:
        logger.warning("%s cannot be written, it is tried again in a minute: %s", CLOCK_NAME, error)
