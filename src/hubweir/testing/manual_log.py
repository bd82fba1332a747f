"""A log that does nothing by itself: whoever tests its owner says when the oldest append is synced, and when it fails.

A third engine behind Log (messaging_store/log.py), as far as a fragment of a queue, or of a topic, uses it: appends,
reads, replays and the newest snapshot, which is saved at once; nothing is trimmed, and there are no notes. Every
append is one operation of the tail until `sync` makes the oldest visible. `fail` refuses the whole tail, as a failed
sync does (rule R9). `restarted` is the log of the next process, which has what is synced and as much of the tail as
the crash left.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NoReturn, TypeVar

from hubweir.errors import StoreError
from hubweir.messaging_store.completion import LogEnd, complete_run
from hubweir.messaging_store.log import (
    Appended,
    Bounds,
    Durability,
    Lease,
    Note,
    OnAppended,
    Pending,
    Refused,
    Replayed,
    Run,
    Snapshot,
)
from hubweir.testing.visible_batches import VisibleBatches

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _InFlight:
    run: bytearray
    appended: Appended
    end: LogEnd
    on_done: OnAppended


class ManualLog:
    """See the module's text, and Log. Callbacks come within `sync` and `fail`, and within `save_snapshot`,
    `load_snapshot` and `replay`: so no loop is needed."""

    def __init__(self, log_id: str, *, writer_epoch: int = 1) -> None:
        self.log_id = log_id
        self.lease = Lease(writer_epoch)
        self.durability = Durability.DURABLE
        self.notes: Mapping[bytes, Note] = MappingProxyType({})
        self.notes_damage: str | None = None
        self._batches = VisibleBatches()
        self._runs: list[bytes] = []  # what is synced
        self._end = self._appended_end = LogEnd()
        self._tail: deque[_InFlight] = deque()
        self._snapshot: Snapshot | None = None

    # What the test decides

    @property
    def in_flight(self) -> int:
        """How many appends are not decided."""
        return len(self._tail)

    def sync(self) -> None:
        """The oldest append is durable, and answered."""
        oldest = self._tail.popleft()
        self._take(bytes(oldest.run), oldest.end)
        oldest.on_done(oldest.appended)

    def fail(self) -> None:
        """A sync failed: nothing that is in flight is stored, and all of it is refused, in order."""
        refused, self._tail = self._tail, deque()
        self._appended_end = self._end
        for each in refused:
            each.on_done(Refused(StoreError(f"log {self.log_id}: a sync failed")))

    def restarted(self, kept: int) -> ManualLog:
        """The log that the next process opens: a crash kept so many of the appends in flight, the oldest first."""
        log = ManualLog(self.log_id, writer_epoch=self.lease.writer_epoch + 1)
        for run in self._runs:
            log._take(run, self._end)
        for each in list(self._tail)[:kept]:
            log._take(bytes(each.run), each.end)
        log._appended_end = log._end
        log._snapshot = self._snapshot
        return log

    def _take(self, run: bytes, end: LogEnd) -> None:
        self._runs.append(run)
        for _ in self._batches.add(run, len(self._runs)):
            pass
        self._end = end

    # Log

    @property
    def bounds(self) -> Bounds:
        """See Log.bounds."""
        end = self._end
        last_time_ms = None if end.last_time_ms < 0 else end.last_time_ms
        return Bounds(0, end.index, 0, end.offset, end.last_offset, last_time_ms, end.last_index)

    def append(self, run: bytearray, *, now_ms: int, on_done: OnAppended) -> Appended:
        """See Log.append."""
        before = self._appended_end
        time_ms = max(now_ms, before.last_time_ms)
        end = self._appended_end = complete_run(
            run, before, nonce=1, enqueued_time_ms=time_ms, durable_upto=self._end.number,
            writer_epoch=self.lease.writer_epoch,
        )  # fmt: skip
        appended = Appended(before.index, end.index, before.offset, end.offset, time_ms)
        self._tail.append(_InFlight(run, appended, end, on_done))
        return appended

    def read(self, index: int, *, max_bytes: int, on_done: Callable[[Run | Refused], None]) -> Run | Pending:
        """See Log.read. It answers at once, always."""
        if index >= self._end.index:
            return Run(b"", index, index)
        return self._batches.read(index, max_bytes)

    def replay(self, index: int, visit: Callable[[Run], None], on_done: Callable[[Replayed | Refused], None]) -> None:
        """See Log.replay."""
        for run in self._batches.runs_from(index):
            visit(run)
        on_done(Replayed())

    def save_snapshot(self, state: bytes, on_done: Callable[[None | Refused], None]) -> None:
        """See Log.save_snapshot."""
        self._snapshot = Snapshot(self._end.index, self._end.offset, state)
        on_done(None)

    def load_snapshot(self, read: Callable[[Snapshot], T], on_done: Callable[[T | None | Refused], None]) -> None:
        """See Log.load_snapshot."""
        on_done(None if self._snapshot is None else read(self._snapshot))

    def trim(self, index: int) -> int:
        """See Log.trim. It keeps all."""
        return 0

    def _not_here(self, *_: object, **__: object) -> NoReturn:
        raise NotImplementedError("a log under a test's control has no notes, searches or end")

    note = older_than = find_offset = find_time = _not_here
    on_visible = set_roll_age = set_durability = stop = close = _not_here
