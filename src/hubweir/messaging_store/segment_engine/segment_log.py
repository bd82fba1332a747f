"""SegmentLog: a log in segment files. The engine behind the Log interface (log.py).

Appends go to group_commit.py, which moves the watermark; reads are reads.py; old segments go by trimming.py, no
further than log_snapshots.py allows; notes are log_notes.py; a start is recovery.py; a failed sync is failed_sync.py.
This file keeps the interface's promises with them, on the owner's loop; what blocks is offloaded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from hubweir.errors import DiskFull, KernelRefusal, LogFenced, LogOffline
from hubweir.messaging_store.completion import complete_run
from hubweir.messaging_store.disk.notes import FoundNotes
from hubweir.messaging_store.log import (
    Appended,
    Bounds,
    Durability,
    Lease,
    Note,
    OnNoted,
    Refused,
    Snapshot,
)
from hubweir.messaging_store.segment_engine.failed_sync import EpochSource, Repair
from hubweir.messaging_store.segment_engine.full_disk import RESUME_BYTES
from hubweir.messaging_store.segment_engine.group_commit import GroupCommit
from hubweir.messaging_store.segment_engine.idle_mark import DueMarks
from hubweir.messaging_store.segment_engine.log_notes import LogNotes
from hubweir.messaging_store.segment_engine.log_snapshots import LogSnapshots
from hubweir.messaging_store.segment_engine.log_state import LogState
from hubweir.messaging_store.segment_engine.reads import Reads
from hubweir.messaging_store.segment_engine.trimming import Trimming
from hubweir.messaging_store.segment_engine.waiting import Entry
from hubweir.messaging_store.tail import Tail

T = TypeVar("T")


class SegmentLog:
    """See Log. Made by open_log.py."""

    def __init__(
        self, state: LogState, epochs: EpochSource, marks: DueMarks, snapshots: list[Snapshot], notes: FoundNotes
    ) -> None:
        self._state = state
        self._visible_callback: Callable[[], None] | None = None
        self._closed = False
        self._on_closed: list[Callable[[], None]] = []  # who waits for the end of a close that is under way
        self._commit = GroupCommit(
            state, marks, self._moved, lambda error, entries: self._repair.failed(error, entries)
        )
        self._repair = Repair(state, self._commit, epochs)
        state.steps.on_fault = self._repair.faulted
        state.health.on_fenced = self._fenced
        self.on_fenced: Callable[[LogFenced], None] | None = None  # whoever opened the log sets it
        reads = Reads(state)
        # Each as Log says: Reads takes the question as it comes.
        self.read, self.replay = reads.read, reads.replay
        self.find_offset, self.find_time = reads.find_offset, reads.find_time
        self._snapshots = LogSnapshots(state, self._commit.when_synced, snapshots)
        self._notes = LogNotes(state, self.append, self._commit.when_synced, notes)
        self._trimming = Trimming(state, self._commit.roll)

    # -- what it is

    @property
    def log_id(self) -> str:
        return self._state.log_id

    @property
    def lease(self) -> Lease:
        return Lease(self._state.writer_epoch)

    @property
    def durability(self) -> Durability:
        return self._state.durability

    @property
    def bounds(self) -> Bounds:
        state, end = self._state, self._state.visible
        return Bounds(
            state.segments.first_index, end.index, state.segments.first_offset, end.offset, end.last_offset,
            None if end.last_time_ms < 0 else end.last_time_ms, end.last_index,
        )  # fmt: skip

    # -- append

    def append(self, run: bytearray, *, now_ms: int, on_done: Callable[[Appended | Refused], None]) -> Appended:
        """See Log.append."""
        if not run:
            raise KernelRefusal("an empty run cannot be appended")
        state = self._state
        if state.health.offline is not None or state.health.is_closing or state.health.is_full:
            self._check_writable(len(run))
        before = state.appended
        time_ms = max(now_ms, before.last_time_ms)
        end = complete_run(
            run, before, nonce=state.nonce, enqueued_time_ms=time_ms, durable_upto=state.synced.number,
            writer_epoch=state.writer_epoch,
        )  # fmt: skip
        appended = Appended(before.index, end.index, before.offset, end.offset, time_ms)
        self._commit.submit(Entry(run, before, end, appended, on_done))
        return appended

    def _check_writable(self, size: int) -> None:
        state = self._state
        if state.health.fenced is not None:
            raise LogFenced(f"log {state.log_id}: {state.health.fenced}")
        if state.health.is_closing:
            raise LogOffline(f"log {state.log_id} is closed")
        if state.health.offline is not None:
            raise LogOffline(state.health.offline)
        if state.health.is_full and not state.settings.uses_reserve:
            free = self._state.env.files.free_bytes()
            if free < size + RESUME_BYTES:
                state.disk.refused(size + RESUME_BYTES)
                raise DiskFull(f"log {state.log_id}: {free} bytes are left on the disk; send again when there is space")
            state.health.found_space()

    def fence(self, error: LogFenced) -> None:
        """Another writer has the lease: from now on appends raise LogFenced, and reads are refused with it."""
        self._state.health.fence(error)

    def _fenced(self, error: LogFenced) -> None:
        self._repair.stop()
        try:
            self._commit.fence(error)
        finally:
            if self.on_fenced is not None:
                self.on_fenced(error)

    def stop(self, fault: Exception) -> None:
        """See Log.stop."""
        self._state.steps.report(fault)
        self._repair.faulted(fault)

    def set_durability(self, durability: Durability) -> None:
        """See Log.set_durability."""
        self._state.durability = durability

    def set_roll_age(self, roll_age_ms: int | None) -> None:
        """See Log.set_roll_age."""
        self._commit.roll_age_ms = roll_age_ms

    # -- read: see __init__

    def on_visible(self, callback: Callable[[], None]) -> None:
        """See Log.on_visible."""
        self._visible_callback = callback

    # -- notes

    @property
    def notes(self) -> Mapping[bytes, Note]:
        return self._notes.notes

    @property
    def notes_damage(self) -> str | None:
        return self._notes.damage

    def note(self, key: bytes, body: bytes | None, *, now_ms: int, on_done: OnNoted) -> None:
        """See Log.note."""
        self._check_writable(len(body or b""))
        self._notes.add(key, body, now_ms, on_done)

    # -- trimming and snapshots

    def older_than(self, time_ms: int) -> int:
        """See Log.older_than."""
        return self._trimming.older_than(time_ms)

    def trim(self, index: int) -> int:
        """See Log.trim."""
        return self._trimming.trim(index, covered=self._snapshots.covered(), roll_age_ms=self._commit.roll_age_ms)

    def save_snapshot(self, state: bytes, on_done: Callable[[None | Refused], None]) -> None:
        """See Log.save_snapshot."""
        self._snapshots.take(state, on_done)

    def load_snapshot(self, read: Callable[[Snapshot], T], on_done: Callable[[T | None | Refused], None]) -> None:
        """See Log.load_snapshot."""
        self._snapshots.load(read, on_done)

    # -- end

    def close(self, on_done: Callable[[], None]) -> None:
        """See Log.close. Whoever asks while it closes is called when it is closed, too."""
        if self._closed and not self._on_closed:
            self._state.env.call_soon(on_done)
            return
        self._on_closed.append(on_done)
        if not self._closed:
            self._closed = True
            self._repair.stop()
            self._commit.close(lambda: self._notes.when_idle(lambda: self._trimming.when_idle(self._has_closed)))

    def _has_closed(self) -> None:
        """Give the memory back, and forget who knows this log, so that all of it is freed when its owner forgets it."""
        state = self._state
        state.tail = Tail(0, state.visible.index)
        state.steps.let_go()
        self._commit.let_go()
        self._notes.let_go()
        state.health.let_go()
        self._visible_callback = self.on_fenced = None
        waiting, self._on_closed = self._on_closed, []
        for callback in waiting:
            callback()

    def _moved(self) -> None:
        if self._visible_callback is not None:
            self._visible_callback()
