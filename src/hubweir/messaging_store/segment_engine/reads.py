"""The reads of one log: answered at once from its tail in memory, or away from the loop from its segments.

Only what is visible is read. Which segment an answer lies in is looked up here, on the loop; the bytes are read and
verified by log_reader.py, and what retention takes away meanwhile is asked for again (pending_read.py). Reading
changes nothing but what is known of damage.
"""

from __future__ import annotations

from collections.abc import Callable

from hubweir.env import Buffer, Lane
from hubweir.errors import LogFenced
from hubweir.kernels import find_offset
from hubweir.messaging_store.disk.log_reader import (
    ReadDamaged,
    find_offset_in,
    find_time_in,
    read_run,
    replay_runs,
    segment_of,
)
from hubweir.messaging_store.disk.recovery import place_of_damage
from hubweir.messaging_store.log import Pending, Refused, Replayed, Run
from hubweir.messaging_store.record import headers_of
from hubweir.messaging_store.segment_engine.log_state import LogState
from hubweir.messaging_store.segment_engine.pending_read import read_away, refuse_soon


class Reads:
    """Every method is as the one of that name in Log."""

    def __init__(self, state: LogState) -> None:
        self._state = state

    def read(self, index: int, *, max_bytes: int, on_done: Callable[[Run | Refused], None]) -> Run | Pending:
        """See Log.read."""
        state = self._state
        if state.health.fenced is not None:  # what is here may be superseded, and what is new is elsewhere
            return refuse_soon(state, LogFenced(f"log {state.log_id}: {state.health.fenced}"), on_done)
        limit = state.visible.index
        index = max(index, state.segments.first_index)
        if index >= limit:
            return Run(b"", index, index)
        if index >= state.tail.start_index:
            found = state.tail.read(index, max_bytes)
            assert found is not None
            return found
        segments = state.segments.kept[segment_of(state.segments.kept, index) :]
        files = state.env.files
        state.counters["log.cold_reads"] += 1
        latency, began_s = state.counters.read, state.env.monotonic_s()

        def answer(run: Run | ReadDamaged) -> Run | Refused:
            if isinstance(run, Run):
                took_s = state.env.monotonic_s() - began_s
                latency.sum_s += took_s
                latency.buckets[int(took_s * 1e6).bit_length()] += 1
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
        if offset >= state.visible.offset:
            return limit
        if offset <= state.segments.first_offset:
            return state.segments.first_index
        first = state.tail.first_run()
        if first is not None and offset >= next(headers_of(first.data)).first_offset:
            run = state.tail.find_offset(offset)
            return limit if run is None else _index_of_offset(run.data, offset, run.next_index)
        segments = state.segments.kept[self._segment_of_offset(offset) :]
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
        if time_ms > state.visible.last_time_ms or state.segments.first_index >= limit:
            return limit
        first = state.tail.first_run()
        if first is not None and (first.time_ms < time_ms or state.tail.start_index <= state.segments.first_index):
            found = state.tail.find_time(time_ms)
            return limit if found is None else max(found, state.segments.first_index)
        segments = state.segments.kept[self._segment_of_time(time_ms) :]
        files = state.env.files
        return read_away(
            state,
            lambda: find_time_in(files, segments, time_ms, limit),
            lambda index: index,
            on_done,
            lambda: self.find_time(time_ms, on_done),
        )

    def _segment_of_offset(self, offset: int) -> int:
        numbers = range(len(self._state.segments.kept))
        return max(n for n in numbers if self._state.segments.kept[n].header.first_offset <= offset)

    def _segment_of_time(self, time_ms: int) -> int:
        numbers = range(len(self._state.segments.kept))
        return max((n for n in numbers if self._state.segments.kept[n].header.last_time_ms < time_ms), default=0)

    def _quarantine(self, found: ReadDamaged) -> None:
        """Tell the operator what cannot be served."""
        self._state.damage.found(found.start, found.resume, place_of_damage(found.segment, found.damage))

    def replay(self, index: int, visit: Callable[[Run], None], on_done: Callable[[Replayed | Refused], None]) -> None:
        """See Log.replay."""
        state = self._state
        if state.health.fenced is not None:  # as with reads
            refuse_soon(state, LogFenced(f"log {state.log_id}: {state.health.fenced}"), on_done)
            return
        files, index = state.env.files, max(index, state.segments.first_index)
        segments = state.segments.kept[segment_of(state.segments.kept, index) :] if state.segments.kept else []
        limit, limit_number = state.visible.index, state.visible.number

        def call() -> list[ReadDamaged]:
            damaged: list[ReadDamaged] = []
            for run in replay_runs(
                files, segments, index, limit=limit, limit_number=limit_number, on_damage=damaged.append
            ):
                visit(run)
            return damaged

        def answer(damaged: list[ReadDamaged]) -> Replayed:
            for found in damaged:
                self._quarantine(found)
            return Replayed(tuple(found.error() for found in damaged))

        read_away(state, call, answer, on_done, lane=Lane.RECOVERY)


def _index_of_offset(data: Buffer, offset: int, default: int) -> int:
    """Index of the first record of a run at or behind an offset."""
    for header in headers_of(data):
        if header.first_offset + header.record_bytes > offset:
            return header.first_index + find_offset(data, header.position, offset)[1]
    return default
