"""The snapshots of one log: when its owner's state is saved, and how far the log may be trimmed for it.

A snapshot covers what was visible when it was asked for, and is written only when all of that is synced.

After a crash: see snapshot.py; a snapshot that was being saved is there whole, or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from hubweir.alarms import RECORDS_LOST
from hubweir.env import Lane, Result
from hubweir.errors import LogFenced, LogOffline
from hubweir.messaging_store.disk.snapshot import load_snapshots, save_snapshot
from hubweir.messaging_store.log import Refused, Snapshot
from hubweir.messaging_store.segment_engine.log_state import LogState
from hubweir.messaging_store.segment_engine.pending_read import read_away

T = TypeVar("T")


class LogSnapshots:
    """when_synced: as of GroupCommit. found: the snapshots that the start found, newest first."""

    def __init__(
        self, state: LogState, when_synced: Callable[[Callable[[bool], None]], None], found: Sequence[Snapshot]
    ) -> None:
        self._state = state
        self._when_synced = when_synced
        self._covered = [snapshot.index for snapshot in found]
        self._saving = False

    def covered(self) -> int | None:
        """How far trimming may go: to the older of two snapshots; nowhere with only one; None: anywhere, with none."""
        if not self._covered:
            return None
        return min(self._covered) if len(self._covered) > 1 else 0

    def take(self, state: bytes, on_done: Callable[[None | Refused], None]) -> None:
        """See Log.save_snapshot."""
        log = self._state
        snapshot = Snapshot(log.visible.index, log.visible.offset, state)
        if self._saving or log.health.is_closing:
            log.steps.soon(lambda: on_done(Refused(LogOffline(f"log {log.log_id}: a snapshot is being saved"))))
            return
        self._saving = True

        def saved(result: Result[None]) -> None:
            self._saving = False
            try:
                result.value()
            except LogFenced as error:
                log.health.fence(error)
                on_done(Refused(error))
            except OSError as error:
                on_done(Refused(LogOffline(f"log {log.log_id}: the snapshot was not saved: {error}"), known=False))
            else:
                self._covered = [snapshot.index, *self._covered][:2]
                on_done(None)

        def write() -> None:
            log.check_epoch()  # another owner's snapshots are his
            save_snapshot(log.env.files, log.folder, snapshot)

        def synced(durable: bool) -> None:
            if durable:
                log.steps.away(Lane.MAINTENANCE, write, saved)
            else:
                self._saving = False
                on_done(Refused(LogOffline(f"the snapshot was not saved: {log.health.offline}")))

        self._when_synced(synced)

    def load(self, read: Callable[[Snapshot], T], on_done: Callable[[T | None | Refused], None]) -> None:
        """See Log.load_snapshot."""
        log = self._state
        if not self._covered:
            log.steps.soon(lambda: on_done(None))
            return
        files, folder, limit = log.env.files, log.folder, log.visible.index

        def call() -> tuple[T | None, int | None]:
            """What read makes of the first one that the log reaches; and where one ends that it does not."""
            beyond = None
            for snapshot in load_snapshots(files, folder):
                if snapshot.index <= limit:
                    return read(snapshot), beyond
                beyond = snapshot.index
            return None, beyond

        def answer(found: tuple[T | None, int | None]) -> T | None:
            value, beyond = found
            if beyond is not None:
                text = f"a snapshot covers records up to {beyond - 1}, and the log ends at {limit - 1}"
                log.alarms.begin(RECORDS_LOST, log.about, text)
            return value

        read_away(log, call, answer, on_done, lane=Lane.RECOVERY)
