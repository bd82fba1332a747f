"""A second engine behind Log (messaging_store/log.py): on a shared log that is ordered, replicated, and has no owners.

`SharedLog` (shared_log.py) stands for such a service. Nobody can be kept from appending to it. So an owner takes an
epoch by an entry, and follows: what it appends is answered when it reads it back with no newer epoch before it. Entries
of an older epoch behind a newer one are passed over by everybody: they were refused. Indexes are those of the batch
headers, never the service's own positions.

Before a prefix is trimmed, what is needed of it is appended again: the notes, and where the log ends.

After a crash: what the service has. An append that was not answered is there whole, or not at all.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TypeVar

from hubweir.errors import KernelRefusal, LogFenced, LogOffline, StoreError
from hubweir.kernels import find_offset
from hubweir.messaging_store.completion import complete_run
from hubweir.messaging_store.log import (
    Appended,
    Bounds,
    Durability,
    Lease,
    Note,
    OnNoted,
    Pending,
    Refused,
    Replayed,
    Run,
    Snapshot,
)
from hubweir.testing.shared_log import ReplicatedEnd, SharedEntry, SharedLog, VisibleBatch, batches_of
from hubweir.testing.simulated_env import SimulatedEnv

T = TypeVar("T")
DELAY_MS = 3


class _Later:
    """A Pending whose answer is on its way."""

    def __init__(self) -> None:
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class ReplicatedLog:
    """See Log. open: follow the shared log, and take the next epoch; usable when `is_open`."""

    def __init__(
        self, env: SimulatedEnv, shared: SharedLog, log_id: str, durability: Durability, *, delay_ms: int = DELAY_MS
    ) -> None:
        """delay_ms: from an append of this owner to everybody who follows."""
        self._env = env
        self._delay_ms = delay_ms
        self._shared = shared
        self._log_id = log_id
        self._durability = durability
        self._batches: list[VisibleBatch] = []
        self._notes: dict[bytes, Note] = {}
        self._note_positions: dict[bytes, int] = {}
        self._visible = self._appended = ReplicatedEnd()
        self._newest_epoch = 0
        self._tickets: deque[Callable[[StoreError | None], None]] = deque()
        self._visible_callback: Callable[[], None] = lambda: None
        self._on_closed: list[Callable[[], None]] = []
        self._is_closed = self.is_open = False
        self._offline: str | None = None
        self._epoch = 2**62  # nothing of what is there is fenced by it, and none of it is ours
        shared.follow(self._read_entry)
        self._epoch = self._newest_epoch + 1
        self._put(SharedEntry(self._epoch, self), self._opened)

    def _opened(self, fenced: StoreError | None) -> None:
        self._appended, self.is_open = self._visible, fenced is None

    # -- what it is

    @property
    def log_id(self) -> str:
        return self._log_id

    @property
    def lease(self) -> Lease:
        return Lease(self._epoch)

    @property
    def durability(self) -> Durability:
        return self._durability

    @property
    def bounds(self) -> Bounds:
        end = self._visible
        last_time_ms = None if end.last_time_ms < 0 else end.last_time_ms
        return Bounds(
            end.first_index, end.index, end.first_offset, end.offset, end.last_offset, last_time_ms, end.last_index
        )

    @property
    def notes(self) -> Mapping[bytes, Note]:
        return MappingProxyType(self._notes)

    @property
    def notes_damage(self) -> str | None:
        return None

    # -- appends and notes

    def append(self, run: bytearray, *, now_ms: int, on_done: Callable[[Appended | Refused], None]) -> Appended:
        """See Log.append."""
        if not run:
            raise KernelRefusal("an empty run cannot be appended")
        self._check_writable()
        before = self._appended
        time_ms = max(now_ms, before.last_time_ms)
        ended = complete_run(
            run, nonce=1, first_index=before.index, first_offset=before.offset, enqueued_time_ms=time_ms,
            first_number=before.number, durable_upto=self._visible.number, writer_epoch=self._epoch,
        )  # fmt: skip
        self._appended = replace(
            before, index=ended.next_index, offset=ended.next_offset, number=ended.next_number, last_time_ms=time_ms
        )
        appended = Appended(before.index, ended.next_index, before.offset, ended.next_offset, time_ms)
        entry = SharedEntry(self._epoch, self, run=bytes(run))
        self._put(entry, lambda error: on_done(appended if error is None else Refused(error)))
        return appended

    def note(self, key: bytes, body: bytes | None, *, now_ms: int, on_done: OnNoted) -> None:
        """See Log.note."""
        self._check_writable()
        end = self._appended
        note = Note(key, body or b"", end.index, end.offset, max(now_ms, end.last_time_ms))
        entry = SharedEntry(self._epoch, self, key=key, note=None if body is None else note)
        self._put(entry, lambda error: on_done(note if error is None else Refused(error)))

    def _check_writable(self) -> None:
        if self._newest_epoch > self._epoch:
            raise self._fenced()
        if self._is_closed:
            raise LogOffline(f"log {self._log_id} is closed")
        if self._offline is not None:
            raise LogOffline(self._offline)

    def _fenced(self) -> LogFenced:
        return LogFenced(f"log {self._log_id}: another process took it over, with epoch {self._newest_epoch}")

    def _put(self, entry: SharedEntry, ticket: Callable[[StoreError | None], None]) -> None:
        self._tickets.append(ticket)
        self._env.call_later(self._delay_ms, lambda: self._shared.put(entry))

    # -- following: the one place where anything becomes visible

    def _read_entry(self, position: int, entry: SharedEntry) -> None:
        is_stale = entry.epoch < self._newest_epoch
        if not is_stale:
            self._newest_epoch = entry.epoch
            self._apply(position, entry)
        if entry.by is self and self._tickets:
            self._tickets.popleft()(self._fenced() if is_stale else None)
        if entry.run and not is_stale:
            self._visible_callback()
        self._close_if_over()

    def _apply(self, position: int, entry: SharedEntry) -> None:
        if entry.end is not None:
            self._visible = entry.end
            self._batches = [batch for batch in self._batches if batch.first_index >= entry.end.first_index]
        if entry.key is not None:
            self._notes.pop(entry.key, None)
            if entry.note is not None:
                self._notes[entry.key], self._note_positions[entry.key] = entry.note, position
        for batch in batches_of(entry.run, position):
            end = self._visible
            self._batches.append(batch)
            self._visible = ReplicatedEnd(
                batch.next_index, batch.next_offset, batch.last_offset, batch.time_ms, batch.next_index - 1,
                batch.number + 1, end.first_index, end.first_offset,
            )  # fmt: skip

    # -- reads

    def read(self, index: int, *, max_bytes: int, on_done: Callable[[Run | Refused], None]) -> Run | Pending:
        """See Log.read."""
        if self._newest_epoch > self._epoch:
            return self._later(lambda: on_done(Refused(self._fenced())))
        index = max(index, self._visible.first_index)
        if index >= self._visible.index:
            return Run(b"", index, index)
        at = bisect_right(self._batches, index, key=lambda batch: batch.first_index) - 1
        taken, size = [self._batches[at]], len(self._batches[at].data)
        for batch in self._batches[at + 1 :]:
            size += len(batch.data)
            if size > max_bytes:
                break
            taken.append(batch)
        return Run(b"".join(batch.data for batch in taken), taken[0].first_index, taken[-1].next_index)

    def find_offset(self, offset: int, on_done: Callable[[int | Refused], None]) -> int | Pending:
        """See Log.find_offset."""
        for batch in self._batches:
            if batch.next_offset > offset:
                if offset <= batch.first_offset:
                    return batch.first_index
                return batch.first_index + find_offset(batch.data, 0, offset)[1]
        return self._visible.index

    def find_time(self, time_ms: int, on_done: Callable[[int | Refused], None]) -> int | Pending:
        """See Log.find_time."""
        found = (batch.first_index for batch in self._batches if batch.time_ms >= time_ms)
        return next(found, self._visible.index)

    def on_visible(self, callback: Callable[[], None]) -> None:
        """See Log.on_visible."""
        self._visible_callback = callback

    def replay(self, index: int, visit: Callable[[Run], None], on_done: Callable[[Replayed | Refused], None]) -> None:
        """See Log.replay."""

        def visit_all() -> Replayed:
            for batch in self._batches:
                if batch.next_index > index:
                    visit(Run(batch.data, batch.first_index, batch.next_index))
            return Replayed()

        self._later(lambda: on_done(self._answer(visit_all)))

    def _answer(self, ask: Callable[[], T]) -> T | Refused:
        if self._newest_epoch > self._epoch:
            return Refused(self._fenced())
        try:
            return ask()
        except StoreError as error:
            return Refused(error)

    def _later(self, call: Callable[[], None]) -> Pending:
        later = _Later()
        self._env.call_soon(lambda: None if later.is_cancelled else call())
        return later

    # -- trimming and snapshots

    def older_than(self, time_ms: int) -> int:
        """See Log.older_than."""
        younger = (batch.first_index for batch in self._batches if batch.time_ms >= time_ms)
        return next(younger, self._visible.index)

    def trim(self, index: int) -> int:
        """See Log.trim. Nothing goes while appends are on their way: they name the end before them."""
        covered = [snapshot.index for snapshot in self._shared.snapshots]
        limit = index if not covered else min(index, *covered) if len(covered) > 1 else 0
        end = self._visible
        kept = bisect_right(self._batches, limit, key=lambda batch: batch.next_index)
        if not kept or self._newest_epoch > self._epoch or self._appended.index != end.index:
            return end.first_index
        position = self._batches[kept].position if kept < len(self._batches) else self._batches[-1].position + 1
        first = self._batches[kept - 1]
        self._visible = replace(end, first_index=first.next_index, first_offset=first.next_offset)
        self._appended, self._batches = self._visible, self._batches[kept:]
        for key, note in self._notes.items():
            if self._note_positions[key] < position:
                self._put(SharedEntry(self._epoch, self, key=key, note=note), _nobody)
        # Behind the notes: who reads this entry back has them, too.
        self._put(
            SharedEntry(self._epoch, self, end=self._visible),
            lambda error: self._shared.trim(position) if error is None else None,
        )
        return self._visible.first_index

    def set_roll_age(self, roll_age_ms: int | None) -> None:
        """See Log.set_roll_age: there are no segments here."""

    def save_snapshot(self, state: bytes, on_done: Callable[[None | Refused], None]) -> None:
        """See Log.save_snapshot."""
        snapshot = Snapshot(self._visible.index, self._visible.offset, state)

        def save() -> None:
            if self._newest_epoch > self._epoch:
                on_done(Refused(self._fenced()))
                return
            self._shared.snapshots = [snapshot, *self._shared.snapshots][:2]
            on_done(None)

        self._env.call_later(self._delay_ms, save)

    def load_snapshot(self, read: Callable[[Snapshot], T], on_done: Callable[[T | None | Refused], None]) -> None:
        """See Log.load_snapshot."""
        saved = self._shared.snapshots
        self._later(lambda: on_done(self._answer(lambda: read(saved[0]) if saved else None)))

    # -- mode, faults, end

    def set_durability(self, durability: Durability) -> None:
        """See Log.set_durability: everything is durable here."""
        self._durability = durability

    def stop(self, fault: Exception) -> None:
        """See Log.stop. What waits is on its way, and nobody can take it back: its end is unknown."""
        self._offline = f"log {self._log_id}: stopped by a fault of the service: {fault}"
        error = LogOffline(self._offline)
        waiting, self._tickets = self._tickets, deque([_nobody] * len(self._tickets))
        for ticket in waiting:
            self._env.call_soon(lambda ticket=ticket: ticket(error))  # type: ignore[misc]
        self._env.call_later(1_000, self._heal)

    def _heal(self) -> None:
        self._offline = None

    def close(self, on_done: Callable[[], None]) -> None:
        """See Log.close."""
        self._is_closed = True
        self._on_closed.append(on_done)
        self._env.call_soon(self._close_if_over)

    def _close_if_over(self) -> None:
        if self._is_closed and not self._tickets:
            self._shared.leave(self._read_entry)
            waiting, self._on_closed = self._on_closed, []
            for callback in waiting:
                callback()


def _nobody(error: StoreError | None) -> None:
    """Nobody waits for it."""
