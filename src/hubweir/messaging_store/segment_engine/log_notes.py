"""The notes of one log at work: each is answered when everything that was appended before it is durable, and itself.

One write carries all notes that came since the one before began. While appends are on their way, a mark is appended
behind them, which says how they end: when they are refused, so is the note, for it must not name records that are not
there.

After a crash: see notes.py. A note that was answered is there; one that was not may be there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Protocol

from hubweir.env import Lane, Result
from hubweir.errors import DiskFull, LogFenced, LogOffline, StoreError
from hubweir.messaging_store.control_batch import pack_mark
from hubweir.messaging_store.disk.notes import BODY_LIMIT, KEY_LIMIT, FoundNotes, remove_older, save_notes
from hubweir.messaging_store.disk.segment import NO_SPACE
from hubweir.messaging_store.log import Appended, Note, OnNoted, Refused, call_all
from hubweir.messaging_store.segment_engine.log_state import LogState
from hubweir.messaging_store.segment_engine.write_round import check_behind_write


class Append(Protocol):
    """SegmentLog.append."""

    def __call__(self, run: bytearray, *, now_ms: int, on_done: Callable[[Appended | Refused], None]) -> object: ...


@dataclass(slots=True, eq=False)
class _Waiting:
    """A note that is not durable. is_removal: its key is to be forgotten. is_settled: what came before is visible."""

    note: Note
    is_removal: bool
    on_done: OnNoted
    is_settled: bool


class LogNotes:
    """append: of the log. when_synced: as of GroupCommit. found: what the start found."""

    def __init__(
        self,
        state: LogState,
        append: Append,
        when_synced: Callable[[Callable[[bool], None]], None],
        found: FoundNotes,
    ) -> None:
        self._state = state
        self._append = append
        self._when_synced = when_synced
        self._notes = dict(found.notes)
        self.notes = MappingProxyType(self._notes)
        self.damage = found.damage
        self._waiting: list[_Waiting] = []  # in the order they came
        self._behind_mark: list[_Waiting] = []  # those that the newest mark says it for
        self._mark_number = -1  # the log's next batch number behind that mark
        self._busy = False
        self._on_idle: list[Callable[[], None]] = []

    def add(self, key: bytes, body: bytes | None, now_ms: int, on_done: OnNoted) -> None:
        """See Log.note. Whether the log takes writes was asked already."""
        size = len(body or b"")
        if len(key) > KEY_LIMIT or size > BODY_LIMIT:
            raise ValueError(f"a note of {len(key)} and {size} bytes: {KEY_LIMIT} and {BODY_LIMIT} are allowed")
        end = self._state.appended
        note = Note(key, body or b"", end.index, end.offset, max(now_ms, end.last_time_ms))
        waiting = _Waiting(note, body is None, on_done, is_settled=end.number == self._state.visible.number)
        if not waiting.is_settled:
            if self._mark_number != end.number:
                self._append_mark(now_ms)
            self._behind_mark.append(waiting)
        self._waiting.append(waiting)
        self._begin()

    def when_idle(self, callback: Callable[[], None]) -> None:
        """Call back, maybe at once, when no note is under way."""
        self._on_idle.append(callback)
        self._begin()

    def let_go(self) -> None:
        """The log is closed: forget whom this calls, for they hold this."""
        self._append, self._when_synced = _nobody, _nobody

    # Steps: what came before notes is visible, then synced, then they are durable, then their owners hear of it

    def _append_mark(self, now_ms: int) -> None:
        behind: list[_Waiting] = []

        def ended(outcome: Appended | Refused) -> None:
            if isinstance(outcome, Refused):
                self._waiting = [waiting for waiting in self._waiting if waiting not in behind]
                self._state.steps.soon(lambda: self._answer(behind, outcome))
            for waiting in behind:
                waiting.is_settled = True
            self._begin()

        self._append(pack_mark(), now_ms=now_ms, on_done=ended)
        self._behind_mark, self._mark_number = behind, self._state.appended.number

    def _begin(self) -> None:
        if self._busy:
            return
        if self._waiting and self._waiting[0].is_settled:
            self._busy = True
            self._state.steps.soon(self._sync)
        elif not self._waiting:
            on_idle, self._on_idle = self._on_idle, []
            for callback in on_idle:
                callback()

    def _sync(self) -> None:
        state, waiting = self._state, self._waiting
        count = next((at for at, each in enumerate(waiting) if not each.is_settled), len(waiting))
        notes, self._waiting = waiting[:count], waiting[count:]

        def synced(durable: bool) -> None:
            if durable:
                self._write(notes)
            else:
                error = state.health.fenced or LogOffline(state.health.offline or f"log {state.log_id} is offline")
                self._ended(notes, Refused(error))

        self._when_synced(synced)

    def _write(self, notes: Sequence[_Waiting]) -> None:
        state, kept = self._state, dict(self._notes)
        for waiting in notes:
            if waiting.is_removal:
                kept.pop(waiting.note.key, None)
            else:
                kept[waiting.note.key] = waiting.note
        files, folder, epoch = state.env.files, state.folder, state.writer_epoch

        def write() -> None:
            state.env.fault("log.before_notes")
            state.check_epoch()
            state.reserve.use_for(lambda: save_notes(files, folder, epoch, kept))
            check_behind_write(state)
            remove_older(files, folder, epoch)

        def written(result: Result[None]) -> None:
            try:
                result.value()
            except Exception as error:
                if isinstance(error, LogFenced):
                    state.health.fence(error)
                self._ended(notes, Refused(_refusal(state.log_id, error), known=False))
                if not isinstance(error, OSError | StoreError):
                    raise
            else:
                self._notes.clear()
                self._notes.update(kept)
                self._ended(notes, None)

        state.steps.away(Lane.WRITES, write, written)

    def _ended(self, notes: Sequence[_Waiting], refused: Refused | None) -> None:
        self._busy = False
        try:
            self._answer(notes, refused)
        finally:
            self._begin()

    def _answer(self, notes: Sequence[_Waiting], refused: Refused | None) -> None:
        """Tell the owners; a fault of one is raised when all were told, and stops the log (rule R4)."""
        call_all(partial(waiting.on_done, refused or waiting.note) for waiting in notes)


def _nobody(*given: object, **named: object) -> None:
    """A closed log takes no note."""


def _refusal(log_id: str, error: Exception) -> StoreError:
    if isinstance(error, StoreError):
        return error
    kind = DiskFull if isinstance(error, OSError) and error.errno in NO_SPACE else LogOffline
    return kind(f"log {log_id}: a note was not saved: {error}; try again")
