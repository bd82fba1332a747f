"""A second engine behind Log (messaging_store/log.py): on a shared log that is ordered, replicated, and has no owners.

`SharedLog` (shared_log.py) stands for such a service. Nobody can be kept from appending to it. So an owner takes an
epoch by an entry, and follows: the epoch is its own when it reads that entry back and the epoch is above all before it.
What it appends is answered when it reads it back with no newer epoch before it. Entries of an older epoch behind a
newer one are passed over by everybody: they were refused. Indexes are those of the batch headers, never the service's
own positions.

Nothing that is on its way can be taken back. So what ended unknown, for its owner was stopped, is passed over by him
when it comes, and before he appends again he puts an entry that says where the log ends: whatever lies there behind
that end is dropped by everybody who reads it.

Before a prefix is trimmed, what is needed of it is appended again: the notes, and where the log ends. What is left
begins with an entry that counts, so whoever comes knows the epoch by it.

After a crash: what the service has. An append that was not answered is there whole, or not at all.

Long because it is one whole engine: whoever writes another one reads in one place what Log asks for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeVar

from msgspec.structs import replace

from hubweir.env import Env
from hubweir.errors import KernelRefusal, LogFenced, LogOffline, StoreError
from hubweir.messaging_store.completion import LogEnd, complete_run
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
from hubweir.testing.shared_log import ReplicatedEnd, SharedEntry, SharedLog
from hubweir.testing.visible_batches import VisibleBatch, VisibleBatches

T = TypeVar("T")
DELAY_MS = 3
OnRead = Callable[[Refused | None], None]  # of an own entry that was read back: None when it counts


class _Later:
    """A Pending whose answer is on its way."""

    def __init__(self) -> None:
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class ReplicatedLog:
    """See Log. To open it: follow the shared log, and take the next epoch; usable when on_open says so."""

    def __init__(
        self,
        env: Env,
        shared: SharedLog,
        log_id: str,
        durability: Durability,
        on_open: OnRead,
        *,
        delay_ms: int = DELAY_MS,
    ) -> None:
        """on_open: once, with None, or with why the log is another's already. delay_ms: from an append of this owner
        to everybody who follows."""
        self._env = env
        self._delay_ms = delay_ms
        self._shared = shared
        self._log_id = log_id
        self._durability = durability
        self._batches = VisibleBatches()
        self._notes: dict[bytes, Note] = {}
        self._note_positions: dict[bytes, int] = {}
        self._visible = ReplicatedEnd()
        self._appended: LogEnd = self._visible
        self._newest_epoch = 0
        self._tickets: deque[OnRead] = deque()
        self._visible_callback: Callable[[], None] = lambda: None
        self._on_closed: list[Callable[[], None]] = []
        self._is_open = self._is_closed = False
        self._read_position = -1  # of the entry that was read last
        self._on_its_way: deque[SharedEntry] = deque()
        self._offline: str | None = None
        self._epoch = 2**62  # nothing of what is there is fenced by it, and none of it is ours
        shared.follow(self._read_entry)
        self._epoch = self._newest_epoch + 1
        self._put(SharedEntry(self._epoch, self), lambda fenced: self._opened(fenced, on_open))

    def _opened(self, fenced: Refused | None, on_open: OnRead) -> None:
        self._appended, self._is_open = self._visible, fenced is None
        on_open(fenced)

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
        end = self._appended = complete_run(
            run, before, nonce=1, enqueued_time_ms=time_ms, durable_upto=self._visible.number, writer_epoch=self._epoch
        )
        appended = Appended(before.index, end.index, before.offset, end.offset, time_ms)
        entry = SharedEntry(self._epoch, self, run=bytes(run))
        self._put(entry, lambda refused: on_done(refused or appended))
        return appended

    def note(self, key: bytes, body: bytes | None, *, now_ms: int, on_done: OnNoted) -> None:
        """See Log.note."""
        self._check_writable()
        end = self._appended
        note = Note(key, body or b"", end.index, end.offset, max(now_ms, end.last_time_ms))
        entry = SharedEntry(self._epoch, self, key=key, note=None if body is None else note)
        self._put(entry, lambda refused: on_done(refused or note))

    def _check_writable(self) -> None:
        if self._newest_epoch > self._epoch or not self._is_open:
            raise self._fenced()
        if self._is_closed:
            raise LogOffline(f"log {self._log_id} is closed")
        if self._offline is not None:
            raise LogOffline(self._offline)

    def _fenced(self) -> LogFenced:
        return LogFenced(f"log {self._log_id}: another process took it over, with epoch {self._newest_epoch}")

    def _put(self, entry: SharedEntry, ticket: OnRead) -> None:
        self._tickets.append(ticket)
        self._on_its_way.append(entry)  # whatever timer rings first: they arrive in order
        self._env.call_later(self._delay_ms, self._arrive)

    def _arrive(self) -> None:
        self._shared.put(self._on_its_way.popleft())

    # -- following: the one place where anything becomes visible

    def _read_entry(self, position: int, entry: SharedEntry) -> None:
        # Of two that take the same epoch at once, the one whose entry comes second has it not.
        is_stale = entry.epoch < self._newest_epoch + entry.takes_epoch
        self._read_position = position
        ticket = self._tickets.popleft() if entry.by is self and self._tickets else None
        is_visible = bool(entry.run) and not is_stale and ticket is not _ended_unknown
        if not is_stale:
            self._newest_epoch = entry.epoch
        if is_visible or (not is_stale and not entry.run):
            self._apply(position, entry)
        if ticket is not None:
            ticket(Refused(self._fenced()) if is_stale else None)
        if is_visible:
            self._visible_callback()
        self._close_if_over()

    def _apply(self, position: int, entry: SharedEntry) -> None:
        if entry.end is not None:
            self._visible = entry.end
            self._batches.keep(entry.end.first_index, entry.end.index)
        if entry.key is not None:
            self._notes.pop(entry.key, None)
            if entry.note is not None:
                self._notes[entry.key], self._note_positions[entry.key] = entry.note, position
        for batch in self._batches.add(entry.run, position):
            end = self._visible
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
        return self._batches.read(index, max_bytes)

    def find_offset(self, offset: int, on_done: Callable[[int | Refused], None]) -> int | Pending:
        """See Log.find_offset."""
        found = self._batches.find_offset(offset)
        return self._visible.index if found is None else found

    def find_time(self, time_ms: int, on_done: Callable[[int | Refused], None]) -> int | Pending:
        """See Log.find_time."""
        return self.older_than(time_ms)

    def on_visible(self, callback: Callable[[], None]) -> None:
        """See Log.on_visible."""
        self._visible_callback = callback

    def replay(self, index: int, visit: Callable[[Run], None], on_done: Callable[[Replayed | Refused], None]) -> None:
        """See Log.replay."""

        def visit_all() -> Replayed:
            for run in self._batches.runs_from(index):
                visit(run)
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
        found = self._batches.find_time(time_ms)
        return self._visible.index if found is None else found

    def trim(self, index: int) -> int:
        """See Log.trim. Nothing goes while anything is on its way: it would be overtaken by what is put again."""
        covered = [snapshot.index for snapshot in self._shared.snapshots]
        limit = index if not covered else min(index, *covered) if len(covered) > 1 else 0
        end = self._visible
        last, first = self._batches.split_at(limit)
        if last is None or self._newest_epoch > self._epoch or self._tickets:
            return end.first_index
        self._appended = self._visible = replace(end, first_index=last.next_index, first_offset=last.next_offset)
        self._batches.keep(last.next_index, end.index)
        self._put_again(first)
        return self._visible.first_index

    def _put_again(self, first: VisibleBatch | None) -> None:
        """Put what is needed of the prefix behind it, then forget all before the first batch that is left.

        Where none is left, the log begins with what is put again.
        """
        begun: list[int] = []

        def put(refused: Refused | None) -> None:
            begun.append(self._read_position)

        def ended(refused: Refused | None) -> None:
            put(refused)
            if refused is None:
                self._shared.trim(begun[0] if first is None else first.position)

        for key, note in self._notes.items():
            if first is None or self._note_positions[key] < first.position:
                self._put(SharedEntry(self._epoch, self, key=key, note=note), put)
        # Behind the notes: who reads this entry back has them, too.
        self._put(SharedEntry(self._epoch, self, end=self._visible), ended)

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
        if self._offline is not None:
            return
        self._offline = f"log {self._log_id}: stopped by a fault of the service: {fault}"
        unknown = Refused(LogOffline(self._offline), known=False)
        waiting, self._tickets = self._tickets, deque([_ended_unknown] * len(self._tickets))
        for ticket in waiting:
            self._env.call_soon(lambda ticket=ticket: ticket(unknown))  # type: ignore[misc]
        self._env.call_later(1_000, self._heal)

    def _heal(self) -> None:
        """What ended unknown is dropped by whoever reads the end behind it; appends come behind that."""
        self._appended = self._visible
        self._put(SharedEntry(self._epoch, self, end=self._visible), _nobody)
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


def _nobody(refused: Refused | None) -> None:
    """Nobody waits for it."""


def _ended_unknown(refused: Refused | None) -> None:
    """Whoever waited for it was told that its end is unknown."""
