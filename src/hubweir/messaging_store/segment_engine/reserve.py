"""Space set aside for what must still work on a full disk: a file that is given up when it is needed. (Rule R13)

A full disk must not keep a store from being opened and read, an idle log from being vouched for, or a delete, which is
what makes space again, from being written to the catalog. So each store keeps RESERVE, a file of nothing. A call that
may use it, and finds no space, gives it up and runs once more. It is made again when twice its size is free, looked
for after 1 s and then ever later, up to every 30 s.

Size: a new epoch, a mark in a new segment, or a catalog's operation takes up to 8 KiB of a file system with 4 KiB
blocks, folder included; 4 MiB are five hundred of them, or what a crash left unvouched in the newest segments.

After a crash: it is there, there in part (then it is filled up), or not there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from hubweir.alarms import RESERVE_USED, Alarms
from hubweir.counters import Counters
from hubweir.env import Env, Lane, Result, SyncFailed, Timer, join_path
from hubweir.errors import DiskFull
from hubweir.messaging_store.disk.layout import RESERVE_NAME
from hubweir.messaging_store.disk.segment import NO_SPACE

T = TypeVar("T")
RESERVE_BYTES = 4 * 1024 * 1024
FIRST_LOOK_MS, LAST_LOOK_MS = 1000, 30_000
USED_UP = (
    f"the disk is nearly full, and the {RESERVE_BYTES // 2**20} MiB kept for deletes, marks and the next start are "
    f"used up; they are set aside again when {2 * RESERVE_BYTES // 2**20} MiB are free: delete a hub, shorten "
    "retention or add space"
)


class Reserve:
    """The reserve of one store folder. is_there: it can be given up."""

    def __init__(self, env: Env, folder: str, counters: Counters, alarms: Alarms, about: str) -> None:
        """about: the store, as its alarms name it."""
        self._env = env
        self._folder = folder
        self._counters = counters
        self._alarms = alarms
        self._about = about
        self._path = join_path(folder, RESERVE_NAME)
        self.is_there = env.files.exists(self._path)
        self._timer: Timer | None = None  # of a look that is due or under way
        self._stopped = False
        self._delay_ms = FIRST_LOOK_MS
        self._has_alarm = True  # maybe one of whoever had the store before

    def use_for(self, call: Callable[[], T]) -> T:
        """What call returns; run again with the reserve given up when there was no space. Blocking, in any thread.

        call leaves nothing behind when it raises for want of space, or begins anew.
        """
        try:
            return call()
        except SyncFailed:
            raise  # whatever it failed for: it is never tried again (rule R9)
        except (DiskFull, OSError) as error:
            if isinstance(error, OSError) and error.errno not in NO_SPACE or not self._give_up():
                raise
        return call()

    def _give_up(self) -> bool:
        """Free the space; False when there is none to free."""
        if not self.is_there:
            return False
        files = self._env.files
        try:
            files.remove(self._path)
            files.sync_folder(self._folder)  # some file systems use freed blocks again only behind this
        except FileNotFoundError:
            pass  # another thread was faster
        except OSError:
            return False
        self.is_there = False
        self._counters["store.reserve_used"] += 1
        return True

    def make(self) -> None:
        """Set the space aside if there is enough; blocking. That it failed shows in is_there."""
        files = self._env.files
        try:
            there = files.exists(self._path)
            if self._stopped or not there and files.free_bytes() < 2 * RESERVE_BYTES:
                return
            file = files.open(self._path, create=not there)
            try:
                if file.size() < RESERVE_BYTES:
                    file.reserve(RESERVE_BYTES)
                    file.sync()
                    files.sync_folder(self._folder)
            finally:
                file.close()
            self.is_there = True
        except OSError:
            self.is_there = files.exists(self._path)

    def watch(self) -> None:
        """On the loop: see to it that a reserve that is gone comes back, and an alarm stands until it does."""
        if self.is_there:
            if self._has_alarm:
                self._alarms.end(RESERVE_USED, self._about)
                self._delay_ms = FIRST_LOOK_MS
                self._has_alarm = False
        elif not self._stopped:
            self._alarms.begin(RESERVE_USED, self._about, USED_UP)
            self._has_alarm = True
            if self._timer is None:
                self._timer = self._env.call_later(self._delay_ms, self._look)
                self._delay_ms = min(2 * self._delay_ms, LAST_LOOK_MS)

    def _look(self) -> None:
        self._env.offload(Lane.MAINTENANCE, self.make, self._looked)

    def _looked(self, result: Result[None]) -> None:
        self._timer = None
        result.value()
        self.watch()

    def stop(self) -> None:
        """The store closes."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
