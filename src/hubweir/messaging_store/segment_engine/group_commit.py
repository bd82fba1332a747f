"""Group commit of one log: which runs the next write and sync carry, and whom their end releases.

What is appended in one loop turn goes into one round, up to a bound of bytes: if all that a few publishers have under
way were one round, the disk would wait for them while they send, and they for the disk while it writes. Where more is
under way than twice that, half of it is the next round, so that a disk whose syncs take long has many bytes for each:
half of what waits and of what was just written, for those who hear of that send again. Durable: one offloaded write
and sync a round, one round of a log at a time; when it ends, the watermark moves, the tickets are called in order, and
what waits then is the next round. Relaxed: the write happens on the loop and is visible at once; a sync follows 50 ms
or 1 MiB later, and when too much is unsynced, or a new segment or more space is needed, the round goes the durable way.

A log that falls idle gets a mark within 1 s: a control batch that vouches for the records before it.

After a crash: a round is there whole, in part, or not at all; its tickets had not been called (recovery.py). A round
that fails is not tried again: no space or no descriptor → the runs are refused and nothing of them stays; else →
failed_sync.py. A fault of ours in any step ends there, too (steps.py).

Long because one machine says what the next write carries: in both modes, after a failure and at the close.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial

from hubweir.env import Result, Timer
from hubweir.errors import DiskFull, LogFenced, LogOffline, OutOfFiles, StoreError
from hubweir.messaging_store.control_batch import CLOSED
from hubweir.messaging_store.disk.segment import (
    NO_FILES,
    NO_SPACE,
    SEGMENT_HEADER_SIZE,
    ActiveSegment,
)
from hubweir.messaging_store.disk.sparse_index import SegmentIndexes
from hubweir.messaging_store.log import Durability, Refused
from hubweir.messaging_store.segment_engine.full_disk import RESUME_BYTES
from hubweir.messaging_store.segment_engine.idle_mark import DueMarks, IdleMark, mark_entry
from hubweir.messaging_store.segment_engine.log_state import LogState
from hubweir.messaging_store.segment_engine.roll import (
    close_segment,
    needs_new_segment,
    save_indexes,
    superseded_whole,
)
from hubweir.messaging_store.segment_engine.waiting import Entry, EntryQueue, SyncWaiters, tell, tell_fenced
from hubweir.messaging_store.segment_engine.write_round import FencedBehindWrite, WriteRound, check_behind_write
from hubweir.messaging_store.tail import TailRun
from hubweir.service_log import ROLL, SLOW_SYNC

logger = logging.getLogger(__name__)

SLOW_SYNC_MS = 1_000


class GroupCommit:
    """The write side of one log. on_failure gets an error that is not about space, and the entries it hit."""

    def __init__(
        self,
        state: LogState,
        marks: DueMarks,
        on_visible: Callable[[], None],
        on_failure: Callable[[OSError, list[Entry]], None],
    ) -> None:
        self._state = state
        self._on_visible = on_visible
        self._on_failure = on_failure
        self.roll_age_ms = state.settings.roll_age_ms
        self._queue = EntryQueue()
        self._round: Sequence[Entry] = ()  # what is being written
        self._written_bytes = 0  # of the newest durable round
        self._answering: Sequence[Entry] = ()  # what is visible, and not answered yet
        self._flush_scheduled = False
        self._busy = False  # a round or a failure's repair is under way
        self._syncing = False  # relaxed: a sync is under way; writes on the loop go on beside it
        self.unsynced_bytes = 0  # relaxed: shown already, and covered by no sync yet
        self._sync_timer: Timer | None = None
        self._mark = IdleMark(state, marks, self._is_idle, self.submit)
        self._roll_wanted = self._round_wanted = False
        self._sync_waiters = SyncWaiters(state)
        self._on_closed: Callable[[], None] | None = None
        self._close_marked = False

    # -- what the log calls

    def submit(self, entry: Entry) -> None:
        """Queue a completed run for the next round."""
        state = self._state
        entry.began_s = state.env.monotonic_s()
        if not self._queue.add(entry, state.settings.queue_bytes):
            raise LogOffline(f"log {state.log_id}: {self._queue.bytes} bytes wait for the disk; send again later")
        state.appended = entry.end
        self._mark.appended(is_mark=entry.is_mark)
        self._schedule_flush()

    def roll(self) -> None:
        """Start a new segment, even if nothing is appended: so that an old one can expire."""
        self._roll_wanted = True
        self._schedule_flush()

    def when_synced(self, callback: Callable[[bool], None]) -> None:
        """Call back when everything visible now is synced (True), or cannot be (False)."""
        if self._sync_waiters.add(callback):
            self._sync_soon()

    def close(self, on_closed: Callable[[], None]) -> None:
        """Write and sync what is pending and the closing mark, then call back."""
        self._on_closed = on_closed
        self._state.health.close()
        self._mark.stop()
        self._state.steps.soon(self._after_round)

    def let_go(self) -> None:
        """The log is closed: forget whom this tells, for they hold this. So a closed log is freed at once."""
        self._on_visible, self._on_failure = lambda: None, lambda error, entries: None
        self._mark.let_go()

    def drain_for_failure(self) -> list[Entry]:
        """Everything that waits, taken out; no round starts until resume."""
        self._busy = True
        self._round = ()
        return self._queue.take_all()

    def drain_for_fault(self) -> tuple[list[Entry], list[Entry]]:
        """The same when a step was cut short, and no call uses the file: what may be in it, and what only waited."""
        being_written = [*self._answering, *self._round, *self._queue.take_tried()]
        self._answering = ()
        self._flush_scheduled = self._syncing = False
        if self._sync_timer is not None:
            self._sync_timer.cancel()
            self._sync_timer = None
        self._mark.reset()
        return being_written, self.drain_for_failure()

    def fence(self, error: LogFenced) -> None:
        """Offline for good: what waits is refused, and readers are told. A round under way ends by itself."""
        waiting = self._queue.take_all()
        self._mark.stop()
        self._state.counters["log.refused"] += len(waiting)
        try:
            tell_fenced(waiting, error)
        finally:
            self._on_visible()
            self._sync_waiters.release()
            self._after_round()

    def go_back(self, *, is_synced: bool) -> None:
        """What was drained is refused, and its numbers are free again: the log ends at what is visible.

        is_synced: all of that is in a new segment, and durable.
        """
        state = self._state
        state.appended = state.visible
        if is_synced:
            state.synced = state.visible

    def resume(self) -> None:
        """A failure was dealt with: everything visible is synced, or the log is offline."""
        self._busy = False
        self.unsynced_bytes = 0
        self._on_visible()  # a fault may have come before readers were told
        self._sync_waiters.release()
        self._after_round()

    # -- rounds

    def _schedule_flush(self) -> None:
        if not self._flush_scheduled:
            self._flush_scheduled = True
            self._state.steps.at_turn_end(self._flush)

    def _flush(self) -> None:
        self._flush_scheduled = False
        state = self._state
        if self._busy or state.health.offline is not None or not (self._queue.entries or self._roll_wanted):
            return
        waiting = self._queue.entries
        new = needs_new_segment(
            state,
            size=len(waiting[0].run) if waiting else None,
            roll_age_ms=self.roll_age_ms,
            is_asked=self._roll_wanted,
        )
        if not new and not self._queue.entries:
            self._roll_wanted = False
            return self._after_round()
        entries, size = self._take(new)
        active = state.segments.active
        room = active is not None and active.end + size <= active.reserved
        few = self.unsynced_bytes + size <= state.settings.relaxed_unsynced_bytes
        ordinary = room and few and not (new or self._close_marked or self._round_wanted)
        if state.durability is Durability.RELAXED and ordinary:
            self._write_now(entries, size)
            if self._queue.entries:
                self._schedule_flush()
        elif self._syncing:
            self._put_back(entries)  # its end comes back here
        else:
            self._start_round(entries, size, new)

    def _take(self, new: bool) -> tuple[list[Entry], int]:
        """The entries of the next round: all that fit into it and the segment, one at least; and their bytes."""
        active = self._state.segments.active
        end = SEGMENT_HEADER_SIZE if new or active is None else active.end
        settings = self._state.settings
        most = max(settings.round_bytes, (self._queue.bytes + self._written_bytes) // 2)
        entries, size = self._queue.take(min(settings.segment_bytes - end, most))
        self._round = entries
        return entries, size

    def _put_back(self, entries: list[Entry]) -> None:
        self._queue.put_back(entries)
        self._round = ()

    def _start_round(self, entries: list[Entry], size: int, new: bool) -> None:
        state = self._state
        self._busy, self._written_bytes = True, size
        old = state.segments.active
        before = entries[0].before if entries else state.visible
        header = state.new_header(before, superseded_whole(state.segments.kept, before.index)) if new else None
        began_s = state.syncs.under_way[state.about] = state.env.monotonic_s()
        round_ = WriteRound(state, entries, size, old, header, began_s)
        state.steps.write_away(round_.write, partial(self._round_ended, round_))

    def _round_ended(self, round_: WriteRound, result: Result[ActiveSegment]) -> None:
        state, entries, old, new = self._state, round_.entries, round_.old, round_.header is not None
        state.syncs.under_way.pop(state.about, None)
        try:
            segment = result.value()
        except (DiskFull, OutOfFiles) as error:
            if new:
                # The new segment may be there, empty: it supersedes, so nothing goes into the old one any more.
                if old is not None:
                    save_indexes(state, old)
                state.synced, self.unsynced_bytes = state.visible, 0
                state.segments.give_up()
            self._refuse(error, entries)
        except LogFenced as error:
            self._taken_over(error, entries)
        except OSError as error:
            self._on_failure(error, entries)
        else:
            if new and old is not None:
                save_indexes(state, old)
            self._round_done(entries, segment, round_)

    def _round_done(self, entries: list[Entry], segment: ActiveSegment, round_: WriteRound) -> None:
        state = self._state
        if segment is not state.segments.active:
            is_roll = bool(state.segments.kept)  # else it is the log's first
            state.segments.started(segment)
            if is_roll:
                header = segment.header
                ROLL.say(logger, log=state.about, first=header.first_index, epoch=header.writer_epoch)
        self._note_sync(round_.began_s, round_.took_s)
        if state.health.is_full:
            state.health.found_space()
        self._show(entries, segment, is_synced=True)
        self.unsynced_bytes = 0
        self._busy = self._roll_wanted = self._round_wanted = False
        state.reserve.watch()
        self._answering, self._round = (*self._answering, *entries), ()
        try:
            if self._queue.entries:
                self._flush()  # the disk works while publishers are answered and readers are served
        finally:
            self._answer()
        self._sync_waiters.release()
        self._after_round()

    def _write_now(self, entries: list[Entry], size: int) -> None:
        """Relaxed: write on the loop; visible at once, a sync is due later."""
        state, active = self._state, self._state.segments.active
        assert active is not None
        try:
            state.env.fault("log.before_relaxed_write")
            active.write([entry.run for entry in entries], is_synced=False)
        except OSError as error:
            if error.errno not in NO_SPACE + NO_FILES:
                self._on_failure(error, entries)
                return
            # Part of it may be in the file: a round goes over the same place, or cuts it off before it refuses.
            for entry in entries:
                entry.is_tried = active.is_torn
            self._put_back(entries)
            self._round_wanted = True
            self._schedule_flush()
            return
        self.unsynced_bytes += size
        self._show(entries, active, is_synced=False)
        self._answering, self._round = (*self._answering, *entries), ()
        self._answer()
        if self.unsynced_bytes >= state.settings.relaxed_sync_bytes:
            self._sync_soon()
        elif self._sync_timer is None:
            self._sync_timer = state.steps.later(state.settings.relaxed_sync_ms, lambda: self._sync_soon(is_due=True))
        self._mark.arm()

    def _show(self, entries: list[Entry], segment: ActiveSegment, *, is_synced: bool) -> None:
        """The entries are in the file and visible: indexes, tail, watermark. is_synced: so all that is visible is."""
        state = self._state
        known = state.segments.active_segment
        assert known is not None
        if known.indexes is None:
            known.indexes = SegmentIndexes()
        for entry in entries:
            known.indexes.note_run(entry.run, segment.end)
            segment.end += len(entry.run)
            if not entry.is_mark:
                run = TailRun(
                    entry.before.number, memoryview(entry.run).toreadonly(), entry.before.index, entry.end.index,
                    entry.end.offset, entry.appended.enqueued_time_ms,
                )  # fmt: skip
                state.tail.add(run)
        known.end_position = segment.end
        if entries:
            state.visible = entries[-1].end
        if is_synced:
            state.synced = state.visible
        state.tail.shrink(state.synced.number)

    def _answer(self) -> None:
        entries, self._answering = self._answering, ()
        latency, now_s = self._state.counters.commit, self._state.env.monotonic_s()
        tell(entries)
        appends = size = 0
        for entry in entries:
            if not entry.is_mark:
                appends += 1
                size += len(entry.run)
                took_s = now_s - entry.began_s
                latency.sum_s += took_s
                latency.buckets[int(took_s * 1e6).bit_length()] += 1
        if appends:
            self._state.counters["log.appends"] += appends
            self._state.counters["log.appended_bytes"] += size
            self._on_visible()

    def _refuse(self, error: StoreError, entries: list[Entry]) -> None:
        """Nothing of these, nor of what waits behind them, is stored: their numbers are free again."""
        state = self._state
        waiting = self._round = entries + self._queue.take_all()
        state.appended = state.visible
        if isinstance(error, DiskFull):
            state.health.ran_out_of_space()
            state.disk.refused(sum(len(entry.run) for entry in entries) + RESUME_BYTES)
        else:
            state.health.found_space()
        self._roll_wanted = False  # whoever wanted it asks again; nobody may ask a full disk in a loop
        state.counters["log.refused"] += len(waiting)
        self._mark.appended(is_mark=False)
        self._busy = False
        state.reserve.watch()
        self._round = ()
        tell(waiting, Refused(error))
        if self._close_marked:
            self._finish_close()
        else:
            self._after_round()

    def _taken_over(self, error: LogFenced, entries: list[Entry]) -> None:
        """A round found another owner of the store: did he find what it wrote?"""
        self._round, self._busy = (), False
        try:
            tell_fenced(entries, error, is_written=isinstance(error, FencedBehindWrite))
        finally:
            self._state.health.fence(error)
            self._after_round()  # another log may have fenced this one during the round: a close waits for its end

    # -- relaxed: the sync that follows

    def _sync_soon(self, *, is_due: bool = False) -> None:
        if is_due:
            self._sync_timer = None
        state, active = self._state, self._state.segments.active
        if self._busy or self._syncing or active is None or state.health.offline is not None or not self.unsynced_bytes:
            return  # a round under way syncs everything, or there is nothing to do
        self._syncing = True
        target, size = state.visible, self.unsynced_bytes
        asked_s = state.syncs.under_way[state.about] = state.env.monotonic_s()

        def done(result: Result[float]) -> None:
            self._syncing = False
            state.syncs.under_way.pop(state.about, None)
            if self._busy or active is not state.segments.active:
                return self._after_round()  # a failure is, or was, dealt with: that decides what is synced
            try:
                took_s = result.value()
            except LogFenced as error:
                state.health.fence(error)
                return self._after_round()  # as behind a round
            except OSError as error:
                self._on_failure(error, [])
                return
            self._note_sync(asked_s, took_s)
            state.synced = target
            self.unsynced_bytes -= size
            state.tail.shrink(target.number)
            self._sync_waiters.release()
            if self.unsynced_bytes and self._sync_timer is None:
                self._sync_timer = state.steps.later(
                    state.settings.relaxed_sync_ms, lambda: self._sync_soon(is_due=True)
                )
            self._after_round()

        def sync() -> float:
            state.env.fault("log.before_relaxed_sync")
            began_s = state.env.monotonic_s()
            active.file.sync()
            took_s = state.env.monotonic_s() - began_s
            check_behind_write(state)
            return took_s

        state.steps.write_away(sync, done)

    def _note_sync(self, asked_s: float, took_s: float) -> None:
        """A sync ended well that was asked for then, and took so long. A slow one is a line of the log: whoever sends
        waited for it."""
        state = self._state
        state.counters["log.syncs"] += 1
        latency = state.counters.sync
        latency.sum_s += took_s
        latency.buckets[int(took_s * 1e6).bit_length()] += 1
        waited_ms = int(1_000 * (state.env.monotonic_s() - asked_s))
        if waited_ms >= SLOW_SYNC_MS:
            state.counters["log.slow_syncs"] += 1
            SLOW_SYNC.say(logger, log=state.about, ms=waited_ms)

    # -- after a round: the next one, the end, or an idle mark (idle_mark.py)

    def _after_round(self) -> None:
        if self._busy:
            return
        if self._state.health.offline is None and (self._queue.entries or self._roll_wanted):
            self._flush()
        elif self._state.health.is_closing:
            self._advance_close()
        else:
            self._mark.arm()

    def _is_idle(self) -> bool:
        return not (self._busy or self._syncing or self._queue.entries or self.unsynced_bytes)

    def _advance_close(self) -> None:
        state = self._state
        if self._syncing:
            return
        if state.health.offline is not None or state.segments.active is None or self._close_marked:
            self._finish_close()
        elif self.unsynced_bytes:
            self._sync_soon()
        else:
            self._close_marked = True
            self.submit(mark_entry(state, CLOSED))

    def _finish_close(self) -> None:
        """Give the spare space back, save the indexes, close the file, tell the owner. Failures change nothing now."""
        state, on_closed = self._state, self._on_closed
        self._on_closed = None
        if on_closed is None:
            return
        close_segment(state, state.segments.give_up(), on_closed)
