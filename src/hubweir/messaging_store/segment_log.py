"""SegmentLog: a log in segment files. The engine behind the Log interface (log.py).

Appends go to group_commit.py, which moves the watermark; reads are answered from tail.py, or offloaded to
log_reader.py; a start is recovery.py; a failed sync is failed_sync.py. This file keeps the interface's promises with
them, on the owner's loop; what blocks is offloaded, but for a start's `replay` and `load_snapshot`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hubweir.env import Buffer, Result
from hubweir.errors import DiskFull, KernelRefusal, LogFenced, LogOffline
from hubweir.kernels import find_offset
from hubweir.messaging_store.completion import complete_run
from hubweir.messaging_store.control_batch import pack_control
from hubweir.messaging_store.failed_sync import EpochSource, Repair
from hubweir.messaging_store.group_commit import GroupCommit
from hubweir.messaging_store.log import Appended, Bounds, Durability, Lease, OnAppended, Pending, Refused, Run
from hubweir.messaging_store.log_reader import (
    ReadDamaged,
    find_offset_in,
    find_time_in,
    read_run,
    replay_runs,
    segment_of,
)
from hubweir.messaging_store.log_state import End, Entry, LogState
from hubweir.messaging_store.pending_read import read_away
from hubweir.messaging_store.record import headers_of
from hubweir.messaging_store.recovery import describe_damage
from hubweir.messaging_store.retention import Held, expired_count, remove_segments, trim_limit
from hubweir.messaging_store.snapshot import Snapshot, load, save

# A log that was refused for want of space tries again when this much more than the send needs is free: its share of
# a step, and the file system's own blocks. Not more, or one log would wait for what the others are using up.
RESUME_BYTES = 64 * 1024


class SegmentLog:
    """See Log. Made by open_log.py."""

    def __init__(self, state: LogState, epochs: EpochSource, snapshots: list[Snapshot]) -> None:
        self._state = state
        self._snapshots = [snapshot.index - 1 for snapshot in snapshots]  # control batches may have come behind them
        self._controls = 0
        self._visible_callback: Callable[[], None] | None = None
        self._removing = False
        self._saving = False
        self._closed = False
        self._on_closed: list[Callable[[], None]] = []  # who waits for the end of a close that is under way
        self._commit = GroupCommit(state, self._moved, lambda error, entries: self._repair.failed(error, entries))
        self._repair = Repair(state, self._commit, epochs)
        state.steps.on_fault = self._repair.faulted

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
            state.first_index, end.index, state.first_offset, end.offset, end.last_offset,
            None if end.last_time_ms < 0 else end.last_time_ms, end.last_index,
        )  # fmt: skip

    @property
    def alarms(self) -> list[str]:
        """What the operator must know: damage, and why the log is offline."""
        return list(self._state.alarms)

    # -- append

    def append(self, run: bytearray, *, now_ms: int, on_done: Callable[[Appended | Refused], None]) -> Appended:
        """See Log.append."""
        if not run:
            raise KernelRefusal("an empty run cannot be appended")
        return self._append(run, now_ms, on_done)

    def append_control(self, control: int, body: bytes, *, now_ms: int, on_done: OnAppended | None = None) -> None:
        """See Log.append_control."""
        self._append(pack_control(control, body), now_ms, on_done)
        # It stands at the next index, which no snapshot before it covers any more.
        self._snapshots = [min(index, self._state.appended.index - 1) for index in self._snapshots]
        self._controls += 1

    def _append(self, run: bytearray, now_ms: int, on_done: Callable[[Appended | Refused], None] | None) -> Appended:
        state = self._state
        self._check_writable(len(run))
        before = state.appended
        time_ms = max(now_ms, before.last_time_ms)
        ended = complete_run(
            run, nonce=state.nonce, first_index=before.index, first_offset=before.offset, enqueued_time_ms=time_ms,
            durable_upto=state.synced.index, writer_epoch=state.writer_epoch,
        )  # fmt: skip
        if ended.last_record_offset is None:
            end = End(ended.next_index, ended.next_offset, before.last_offset, before.last_time_ms, before.last_index)
        else:
            end = End(ended.next_index, ended.next_offset, ended.last_record_offset, time_ms, ended.next_index - 1)
        appended = Appended(before.index, end.index, before.offset, end.offset, time_ms)
        self._commit.submit(Entry(run, before, end, appended, on_done))
        return appended

    def _check_writable(self, size: int) -> None:
        state = self._state
        if state.fenced:
            raise LogFenced(f"log {state.log_id}: a newer writer owns it; writer epoch {state.writer_epoch} is over")
        if state.closing:
            raise LogOffline(f"log {state.log_id} is closed")
        if state.offline is not None:
            raise LogOffline(state.offline)
        if state.full and not state.settings.uses_reserve:
            free = self._state.env.files.free_bytes()
            if free < size + RESUME_BYTES:
                raise DiskFull(f"log {state.log_id}: {free} bytes are left on the disk; send again when there is space")
            state.full = False

    def fence(self) -> None:
        """Another writer has the lease: from now on appends raise LogFenced."""
        self._state.fenced = True

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

    # -- read

    def read(self, index: int, *, max_bytes: int, on_done: Callable[[Run | Refused], None]) -> Run | Pending:
        """See Log.read."""
        state = self._state
        limit = state.visible.index
        index = max(index, state.first_index)
        if index >= limit:
            return Run(b"", index, index)
        if index >= state.tail.start_index:
            return state.tail.read(index, max_bytes) or Run(b"", limit, limit)
        segments = state.segments[segment_of(state.segments, index) :]
        files = state.env.files
        state.counters.add("log.cold_reads")

        def answer(run: Run | ReadDamaged) -> Run | Refused:
            if isinstance(run, Run):
                return run
            self._quarantine(run)
            return Refused(run.error())

        return read_away(
            state,
            lambda: read_run(files, segments, index, limit, max_bytes),
            answer,
            on_done,
            lambda: self.read(index, max_bytes=max_bytes, on_done=on_done),
        )

    def find_offset(self, offset: int, on_done: Callable[[int | Refused], None]) -> int | Pending:
        """See Log.find_offset."""
        state = self._state
        limit = state.visible.index
        if offset >= state.visible.offset or state.first_index >= limit:
            return limit
        if offset <= state.first_offset:
            return state.first_index
        first = state.tail.first_run()
        if first is not None and offset >= next(headers_of(first.data)).first_offset:
            run = state.tail.find_offset(offset)
            return limit if run is None else _index_of_offset(run.data, offset, run.next_index)
        segments = state.segments[self._segment_of_offset(offset) :]
        files = state.env.files
        return read_away(
            state,
            lambda: find_offset_in(files, segments, offset, limit),
            lambda index: index,
            on_done,
            lambda: self.find_offset(offset, on_done),
        )

    def find_time(self, time_ms: int, on_done: Callable[[int | Refused], None]) -> int | Pending:
        """See Log.find_time."""
        state = self._state
        limit = state.visible.index
        if time_ms > state.visible.last_time_ms or state.first_index >= limit:
            return limit
        first = state.tail.first_run()
        if first is not None and (first.time_ms < time_ms or state.tail.start_index <= state.first_index):
            found = state.tail.find_time(time_ms)
            return limit if found is None else max(found, state.first_index)
        segments = state.segments[self._segment_of_time(time_ms) :]
        files = state.env.files
        return read_away(
            state,
            lambda: find_time_in(files, segments, time_ms, limit),
            lambda index: index,
            on_done,
            lambda: self.find_time(time_ms, on_done),
        )

    def _segment_of_offset(self, offset: int) -> int:
        numbers = range(len(self._state.segments))
        return max((n for n in numbers if self._state.segments[n].header.first_offset <= offset), default=0)

    def _segment_of_time(self, time_ms: int) -> int:
        numbers = range(len(self._state.segments))
        return max((n for n in numbers if self._state.segments[n].header.last_time_ms < time_ms), default=0)

    def _quarantine(self, found: ReadDamaged) -> None:
        """Tell the operator what cannot be served."""
        if found.damage not in found.segment.damage:
            found.segment.damage.append(found.damage)
            self._state.counters.add("log.corrupt_records", found.resume - found.start)
            self._state.alarm(describe_damage(found.segment, found.damage))

    def on_visible(self, callback: Callable[[], None]) -> None:
        """See Log.on_visible."""
        self._visible_callback = callback

    def replay(self, index: int = 0) -> Iterator[Run]:
        """See Log.replay."""
        state = self._state
        index = max(index, state.first_index)
        segments = state.segments[segment_of(state.segments, index) :] if state.segments else []
        return replay_runs(state.env.files, segments, index, state.visible.index)

    # -- retention and snapshots

    def expire(self, *, now_ms: int, retention_ms: int, keep_from: int | None = None, kept_longer_ms: int = 0) -> int:
        """See Log.expire. The files go away from the loop, oldest first."""
        state = self._state
        if self._removing or self._closed:
            return state.first_index
        count, roll = expired_count(
            state.segments, state.visible.last_time_ms,
            oldest_kept_ms=now_ms - retention_ms, trim_limit=trim_limit(self._snapshots),
            held=None if keep_from is None else Held(keep_from, now_ms - retention_ms - kept_longer_ms),
        )  # fmt: skip
        goes_on = state.offline is None and not state.closing
        if roll and goes_on and state.segments[-1].first_index < state.visible.index:
            self._commit.roll()
        gone, superseded = state.segments[:count], state.superseded
        if not gone and not superseded:
            return state.first_index
        state.segments = state.segments[count:]
        state.superseded = []
        if gone:
            first = state.segments[0].header
            state.first_index, state.first_offset = first.first_index, first.first_offset
            state.counters.add("log.expired_segments", len(gone))
        self._removing = True
        files, folder = state.env.files, state.folder

        def removed(result: Result[None]) -> None:
            self._removing = False
            try:
                result.value()
            except OSError:
                # They are found again at the next start. Superseded ones must not outlive what supersedes them.
                state.superseded = (
                    superseded + [name for segment in gone for name in segment.names()] + state.superseded
                )

        state.steps.away(lambda: remove_segments(files, folder, superseded, gone), removed)
        return state.first_index

    def save_snapshot(self, state: bytes, on_done: Callable[[None | Refused], None]) -> None:
        """See Log.save_snapshot."""
        log = self._state
        snapshot = Snapshot(log.visible.index, state)
        if self._saving or self._closed:
            log.steps.soon(lambda: on_done(Refused(LogOffline(f"log {log.log_id}: a snapshot is being saved"))))
            return
        self._saving = True
        controls = self._controls

        def saved(result: Result[None]) -> None:
            self._saving = False
            try:
                result.value()
            except OSError as error:
                on_done(Refused(LogOffline(f"log {log.log_id}: the snapshot was not saved: {error}"), known=False))
            else:
                self._snapshots = [snapshot.index - (controls != self._controls), *self._snapshots][:2]
                on_done(None)

        def synced(durable: bool) -> None:
            if durable:
                log.steps.away(lambda: save(log.env.files, log.folder, snapshot), saved)
            else:
                self._saving = False
                on_done(Refused(LogOffline(log.offline or f"log {log.log_id} is offline")))

        self._commit.when_synced(synced)

    def load_snapshot(self) -> tuple[int, bytes] | None:
        """See Log.load_snapshot."""
        for snapshot in load(self._state.env.files, self._state.folder):
            if snapshot.index <= self._state.visible.index:
                return snapshot.index, snapshot.state
            self._state.alarm(f"log {self.log_id}: a snapshot covers records that the log does not have")
        return None

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
            self._commit.close(self._has_closed)

    def _has_closed(self) -> None:
        waiting, self._on_closed = self._on_closed, []
        for callback in waiting:
            callback()

    def _moved(self) -> None:
        if self._visible_callback is not None:
            self._visible_callback()


def _index_of_offset(data: Buffer, offset: int, default: int) -> int:
    """Index of the first record of a run at or behind an offset."""
    for header in headers_of(data):
        if header.count and header.first_offset + header.record_bytes > offset:
            return header.first_index + find_offset(data, header.position, offset)[1]
    return default
