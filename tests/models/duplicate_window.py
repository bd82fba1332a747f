"""Duplicate detection of a fragment: which sends are dropped, by the times in its log. P11, and P1 of dropped sends.

The model. Senders send messages by their ids, and send again. Every send is appended; what becomes of it is decided
when it is visible, by the enqueued times in the log and in its order: a message whose id was there within the window is
dropped. Sender and sender again are answered then, in the same way. The fragment has a table of ids with their times:
the newest, and *generations* of older ones, which are forgotten as a whole when a message is visible behind whose time
they are over. There is room for so many ids; a send that would bring more is refused, and what it would make forgotten
counts as room. Receivers consume messages, which takes
nothing from the table.

Time. An enqueued time is what the wall clock says, but never before the last one. The wall clock jumps ahead, or back,
and is right again later. So a send that is stamped later than the monotonic clock lets pass says so in front of its
message (SKIPPED): so much of that time does not count. `on_time` is the stamp that the monotonic clock expects. All
times here are relative to now, in units; a unit passes while nothing is in flight, for a sync is short beside a window.

A crash. A kill keeps the tail, a power cut some of its oldest operations. The start makes the table again from the
snapshot and the log behind it. A unit of time may pass until then; nothing of what passed since the newest id counts,
for no stamp that a start knows tells of it. A sync that
fails takes the tail back: the senders are refused, and what was skipped is said by the next send.

Promises that must hold.
P1   A message is there, or was consumed, with each id whose send was answered.
P11  Two messages with one id are stored only if at least the window lies between them: through crashes, when the first
     was consumed, with every clock. Where no clock jumped and nothing crashed, an id is not found behind its window.
R17  No more ids are remembered than there is room for.

Left out: scheduled messages and several messages in one send (the same step decides of them), a window that is
changed, and the slack of 100 ms that a stamp may be ahead: the window here is the one with it.
tests/models/play_duplicate_window.py plays walks of this model to a fragment.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tests.models.explorer import Action, put

LONG_AGO = 99  # units: no window is as long


class Remembered(NamedTuple):
    """An id and when it came. is_saved: the snapshot has it."""

    id: int
    time: int
    is_saved: int = 0


Generation = tuple[Remembered, ...]  # in the order in which they came


class Operation(NamedTuple):
    """A message in the log's tail, with its enqueued time, and what is said to be skipped in front of it."""

    id: int
    time: int
    skipped: int


class State(NamedTuple):
    """table: generations, the oldest first; the last one takes ids. Its times are as enqueued times are now. disk: as a
    start would make it.

    logged: the newest enqueued time in the log, which begins with settings; appended: the highest of what was refused.
    offset: of the wall clock. age: of the newest stored message of each id, in time that really passed. told: ids whose
    send was answered. waiting: how many messages of each id are not consumed. is_odd: a clock jumped, or a start did
    not see what passed since the newest id.
    """

    table: tuple[Generation, ...]
    disk: tuple[Generation, ...]
    tail: tuple[Operation, ...]
    logged: int
    appended: int
    on_time: int
    offset: int
    age: tuple[int, ...]
    told: tuple[int, ...]
    waiting: tuple[int, ...]
    units: int
    jumps: int
    is_odd: int
    faults: int
    wrong: str


@dataclass(frozen=True, slots=True)
class DuplicateWindow:
    """The model; behind its bounds, mistakes to plant. room: ids that may be remembered. units: of time, in all."""

    ids: int = 2
    window: int = 2
    generation: int = 2  # so many ids make one
    room: int = 2
    tail_limit: int = 2
    units: int = 4
    jump: int = 3  # of the wall clock, ahead or back
    jumps: int = 2
    faults: int = 1

    answer_before_original: bool = False  # a send is answered while the first one with its id is in flight (rule R8)
    wall_clock_counts: bool = False  # nothing is said to be skipped
    start_believes_clock: bool = False  # all that passed before a start counts
    refused_skip_is_lost: bool = False  # behind a failed sync nobody says what was skipped
    set_back_is_not_skipped: bool = False  # a clock that was set back, and is right again, skips nothing
    refused_stamp_is_on_time: bool = False  # what was appended and refused counts as a stamp of the log
    oldest_decides: bool = False  # a generation goes when its oldest id is as old as the window
    forget_for_room: bool = False  # what is older than the window is forgotten when a send needs its room
    unchecked_without_room: bool = False  # where there is no room, a send is stored and its id not remembered
    snapshot_left_out: bool = False  # a start reads the log alone
    forget_consumed: bool = False  # an id goes with its message
    dropped_begins_anew: bool = False  # a dropped message begins the window of its id again

    FAULTS = ("kill", "power_cut", "sync_fails", "clock_jumps")

    def start(self) -> State:
        zeros = (0,) * self.ids
        return State(
            table=((),), disk=((),), tail=(), logged=0, appended=-LONG_AGO, on_time=0, offset=0,
            age=(LONG_AGO,) * self.ids, told=zeros, waiting=zeros, units=0, jumps=0, is_odd=0, faults=0, wrong="",
        )  # fmt: skip

    def steps(self, state: State) -> Iterator[tuple[Action, State]]:
        if state.wrong:
            return
        for number in range(self.ids):
            if len(state.tail) < self.tail_limit:
                yield self._sent(state, number)
        if state.tail:
            yield ("sync",), self._synced(state)
        else:
            if any(state.waiting):
                yield ("consume",), self._consumed(state)
            if any(not each.is_saved for generation in state.disk for each in generation):
                yield ("save_snapshot",), self._saved(state)
            if state.units < self.units:
                yield ("time_passes",), passed(state)
        if state.offset:
            yield ("clock_is_right",), state._replace(offset=0)
        elif state.jumps < self.jumps:
            for offset in (self.jump, -self.jump):
                after = state._replace(offset=offset, jumps=state.jumps + 1, is_odd=1)
                yield ("clock_jumps", "ahead" if offset > 0 else "back"), after
        if state.faults < self.faults:
            yield from self._faults(state)

    def broken(self, state: State) -> str | None:
        if state.wrong:
            return state.wrong
        for is_told, age in zip(state.told, state.age, strict=True):
            if is_told and age == LONG_AGO:
                return "P1: a send was answered, and no message with its id is stored"
        if remembered(state) > self.room:
            return "R17: more ids are remembered than there is room for"
        return None

    def is_quiet(self, state: State) -> bool:
        return not state.tail and not any(state.waiting)

    def view(self, state: State) -> tuple[list[int], int]:
        """The ids of all messages that wait, and how many ids the fragment remembers."""
        return [number for number, waiting in enumerate(state.waiting) for _ in range(waiting)], remembered(state)

    def _sent(self, state: State, number: int) -> tuple[Action, State]:
        time = stamp = max(state.offset, newest_time(state))
        if self.refused_stamp_is_on_time:
            stamp = max(stamp, state.appended)
        on_time, in_flight = state.on_time, len(state.tail)
        if not remembered(state) + in_flight:
            on_time = stamp
        skipped = 0 if self.wall_clock_counts else max(0, stamp - on_time)
        over = remembered(state) + in_flight + 1 - self.room
        if over > 0:
            unsaid = skipped + sum(each.skipped for each in state.tail)
            rest = self._kept(state.table, stamp - unsaid - self.window)
            over -= remembered(state) - sum(map(len, rest))
            if self.forget_for_room:
                state = state._replace(table=rest)
        if over > 0 and not self.unchecked_without_room:
            return ("send", number, "no room"), state._replace(on_time=on_time)
        on_time = on_time + skipped if self.set_back_is_not_skipped else min(on_time + skipped, stamp)
        after = state._replace(tail=(*state.tail, Operation(number, time, skipped)), on_time=on_time)
        if self.answer_before_original and any(each.id == number for each in state.tail):
            after = after._replace(told=put(after.told, number, 1))
        return ("send", number, "waits"), after

    def _kept(self, table: tuple[Generation, ...], before: int) -> tuple[Generation, ...]:
        """Without generations whose ids all came before this time or at it."""
        *older, newest = table
        place = 0 if self.oldest_decides else -1
        while older and older[0][place].time <= before:
            del older[0]
        if newest and newest[place].time <= before:
            newest = ()
        return (*older, newest)

    def _synced(self, state: State) -> State:
        operation = state.tail[0]
        after = self._visible(state._replace(tail=state.tail[1:], logged=operation.time), operation)
        return after._replace(told=put(after.told, operation.id, 1))

    def _visible(self, state: State, operation: Operation) -> State:
        """What was skipped, then the message: dropped, or stored with its id."""
        number, time, _ = operation
        table, is_dropped = self._taken_in(state.table, operation)
        disk, is_dropped_again = self._taken_in(state.disk, operation)
        wrong = "P11: a start decides otherwise" if is_dropped != is_dropped_again else ""
        if is_dropped:
            if state.age[number] >= self.window and not state.is_odd:
                wrong = "P11: an id is found behind its window"
            return state._replace(table=table, disk=disk, wrong=wrong)
        if state.age[number] < self.window:
            wrong = "P11: an id is stored twice within its window"
        return state._replace(
            table=table,
            disk=disk,
            age=put(state.age, number, 0),
            waiting=put(state.waiting, number, state.waiting[number] + 1),
            wrong=wrong,
        )

    def _taken_in(self, table: tuple[Generation, ...], operation: Operation) -> tuple[tuple[Generation, ...], bool]:
        """The table behind an operation, and whether its message is dropped."""
        number, time, skipped = operation
        table = tuple(tuple(each._replace(time=each.time + skipped) for each in generation) for generation in table)
        table = self._kept(table, time - self.window)
        found = [each.time for generation in table for each in generation if each.id == number]
        is_dropped = bool(found) and time - found[-1] < self.window
        has_room = not self.unchecked_without_room or sum(map(len, table)) < self.room
        if (not is_dropped and has_room) or (is_dropped and self.dropped_begins_anew):
            table = self._entered(table, Remembered(number, time))
        return table, is_dropped

    def _entered(self, table: tuple[Generation, ...], entry: Remembered) -> tuple[Generation, ...]:
        *older, newest = table
        newest = (*(each for each in newest if each.id != entry.id), entry)
        return (*older, newest, ()) if len(newest) >= self.generation else (*older, newest)

    def _consumed(self, state: State) -> State:
        """All messages that wait are, by an operation that is synced at once and has its time in the log, too."""
        after = state._replace(waiting=(0,) * self.ids, logged=max(state.offset, state.logged))
        return after._replace(table=((),), disk=((),)) if self.forget_consumed else after

    def _saved(self, state: State) -> State:
        table = tuple(tuple(each._replace(is_saved=1) for each in generation) for generation in state.table)
        return state._replace(table=table, disk=table)

    def _faults(self, state: State) -> Iterator[tuple[Action, State]]:
        for units in range(1 + (state.units < self.units)):
            yield ("kill", units), self._restarted(state, len(state.tail), units)
            for kept in range(len(state.tail)):
                yield ("power_cut", kept, units), self._restarted(state, kept, units)
        if state.tail:
            yield ("sync_fails",), self._sync_failed(state)

    def _restarted(self, state: State, kept: int, units: int) -> State:
        disk = state.disk
        if self.snapshot_left_out:
            rest = [tuple(each for each in generation if not each.is_saved) for generation in disk]
            disk = (*(each for each in rest[:-1] if each), rest[-1])
        after = state._replace(table=disk, disk=disk, tail=(), faults=state.faults + 1, is_odd=1)
        for operation in state.tail[:kept]:
            after = self._visible(after._replace(logged=operation.time), operation)
        for _ in range(units):
            after = passed(after)
        newest = [each.time for generation in after.table for each in generation][-1:]
        on_time = after.offset if self.start_believes_clock or not newest else newest[0]
        return after._replace(on_time=on_time, appended=-LONG_AGO)

    def _sync_failed(self, state: State) -> State:
        skipped = 0 if self.refused_skip_is_lost else sum(each.skipped for each in state.tail)
        appended = max(state.appended, newest_time(state)) if self.refused_stamp_is_on_time else state.appended
        return state._replace(tail=(), appended=appended, on_time=state.on_time - skipped, faults=state.faults + 1)


def newest_time(state: State) -> int:
    """The highest enqueued time in the log, and of what is on its way there."""
    return state.tail[-1].time if state.tail else state.logged


def remembered(state: State) -> int:
    """Ids that take room, without those in flight."""
    return sum(map(len, state.table))


def passed(state: State) -> State:
    """A unit of time is over."""
    return state._replace(
        table=older(state.table),
        disk=older(state.disk),
        logged=max(-LONG_AGO, state.logged - 1),
        appended=max(-LONG_AGO, state.appended - 1),
        age=tuple(min(LONG_AGO, age + 1) for age in state.age),
        units=state.units + 1,
    )


def older(table: tuple[Generation, ...]) -> tuple[Generation, ...]:
    return tuple(tuple(each._replace(time=each.time - 1) for each in generation) for generation in table)
