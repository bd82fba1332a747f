"""Queues of one log: runs that wait for a round to write them, callers that wait for what is visible to be synced.

Runs wait in the order of appends, counted in bytes, bounded. Nothing of them is in the file, so what is taken out and
refused leaves nothing behind; but for those that were tried. Callers are snapshots and notes, which cover durable
records only (rule R11).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from msgspec import Struct

from hubweir.errors import LogFenced
from hubweir.messaging_store.completion import LogEnd
from hubweir.messaging_store.log import Appended, Refused, call_all
from hubweir.messaging_store.segment_engine.log_state import LogState


class Entry(Struct):
    """One run on its way to the file. before, end: the ends of the log without and with it.

    is_tried: it waits again, behind a write that failed and may have left a part of it in the file. began_s: when it
    was queued (Env.monotonic_s).
    """

    run: bytearray
    before: LogEnd
    end: LogEnd
    appended: Appended
    on_done: Callable[[Appended | Refused], None] | None
    is_mark: bool = False
    is_tried: bool = False
    began_s: float = 0.0


def tell(entries: Iterable[Entry], refused: Refused | None = None) -> None:
    """Call the ticket of every entry, in order: with its own numbers, or with refused.

    Raises the first exception of one, when all were called.
    """
    call_all([partial(entry.on_done, refused or entry.appended) for entry in entries if entry.on_done is not None])


def tell_fenced(entries: Iterable[Entry], error: LogFenced, *, is_written: bool = False) -> None:
    """Refuse every entry, in order: another process owns the store, and may have found what is in the file.

    is_written: all of them may be there, and not those alone that were tried. Raises as `tell`.
    """
    call_all(
        [
            partial(entry.on_done, Refused(error, known=not (is_written or entry.is_tried)))
            for entry in entries
            if entry.on_done is not None
        ]
    )


class EntryQueue:
    """entries: the runs that wait, the first to come in front. bytes: of all of them."""

    __slots__ = ("bytes", "entries")

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.bytes = 0

    def add(self, entry: Entry, limit_bytes: int) -> bool:
        """Queue a run behind the others; False, and not queued, when limit_bytes would be passed. One always fits."""
        size = len(entry.run)
        if self.bytes + size > limit_bytes and self.entries:
            return False
        self.entries.append(entry)
        self.bytes += size
        return True

    def take(self, room_bytes: int) -> tuple[list[Entry], int]:
        """The first runs, as many as fit into room_bytes and one at least, and their bytes; taken out."""
        size = number = 0
        for entry in self.entries:
            if number and size + len(entry.run) > room_bytes:
                break
            size += len(entry.run)
            number += 1
        taken = self.entries[:number]
        del self.entries[:number]  # the list stays: a new one for each append would be one more to collect
        self.bytes -= size
        return taken, size

    def put_back(self, entries: list[Entry]) -> None:
        """What was taken goes in front again."""
        self.entries[:0] = entries
        self.bytes += sum(len(entry.run) for entry in entries)

    def take_tried(self) -> list[Entry]:
        """What a failed write may have left in the file, taken out."""
        tried = [entry for entry in self.entries if entry.is_tried]
        self.entries = [entry for entry in self.entries if not entry.is_tried]
        self.bytes -= sum(len(entry.run) for entry in tried)
        return tried

    def take_all(self) -> list[Entry]:
        """Everything that waits, taken out."""
        entries, self.entries, self.bytes = self.entries, [], 0
        return entries


class SyncWaiters:
    """The waiters of one log. A callback gets True when it is synced, False when it cannot be."""

    __slots__ = ("_state", "_waiting")

    def __init__(self, state: LogState) -> None:
        self._state = state
        self._waiting: list[tuple[int, Callable[[bool], None]]] = []

    def add(self, callback: Callable[[bool], None]) -> bool:
        """Call back in time, never inside this call; whether a sync has to be seen to."""
        state = self._state
        is_online = state.health.offline is None
        if is_online and state.synced.number < state.visible.number:
            self._waiting.append((state.visible.number, callback))
            return True
        state.steps.soon(lambda: callback(is_online))
        return False

    def release(self) -> None:
        """Something was synced, or the log went offline."""
        if not self._waiting:
            return
        state = self._state
        waiting, self._waiting = self._waiting, []
        is_online = state.health.offline is None
        for number, callback in waiting:
            if is_online and state.synced.number < number:
                self._waiting.append((number, callback))
            else:
                state.steps.soon(lambda callback=callback: callback(is_online))  # type: ignore[misc]
