"""Duplicate detection of a fragment: ids that are remembered for a window of time. Promises P11, P1 of dropped sends.

The model. Senders send messages by their ids, and send again when nobody answered. The fragment remembers ids in
generations. A generation takes ids for a span of time, and is forgotten as a whole when its youngest id is as old as
the window. The table of generations is in memory; on disk are a snapshot of it and the log behind the snapshot.
Receivers consume messages, which takes nothing from the table. Ages are counted in units of the store's time: it goes
on while the service runs and stands still while it does not, so it is never ahead of the time that really passed
(docs/reliability.md, on clocks). The wall clock may jump ahead at any moment, and is right again later.

Atomic steps. A send is the look-up, and the append of the message with its id, or the answer. A sync makes the oldest
operation durable: its id enters the newest generation, and all senders that wait for that id are answered. A snapshot
is written whole, renamed into place, and the log before it is trimmed. A unit of time passes while nothing is in
flight: a sync is short beside a window.

A crash. A kill keeps the tail, a power cut some of its oldest operations. The start makes the table again from the
snapshot and the log, and leaves out the generations that are due: others have had their room since. A unit of time
may pass until the start, and the store does not see it. A sync that fails takes the tail back; all senders that wait
are refused.

Promises that must hold.
P1   A message is stored with each id whose send was answered, also by "seen before".
P11  Two messages with one id are stored only if at least the window lies between them: through crashes, when the
     first was consumed, with every clock. Behind the window and the span of a generation an id is not found any more,
     if the store saw all that time pass.
R17  No more ids are remembered than there is room for: a send beyond is refused, never unchecked.

Left out: scheduled messages (their id is remembered when they are scheduled, by the same step), and the second
snapshot that rule R11 keeps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tests.models.explorer import Action, put

AHEAD = 100  # units of time that the wall clock jumps: more than any window


class Remembered(NamedTuple):
    """An id and its age by the time of the store."""

    id: int
    age: int


Generation = tuple[Remembered, ...]  # the oldest first


class Operation(NamedTuple):
    """A message in the log's tail. is_repeated: one with its id is in the log, not yet as old as the window.

    has_room: its id will be remembered.
    """

    id: int
    is_repeated: int
    has_room: int


class State(NamedTuple):
    """table, snapshot: generations, the oldest first. log: the ids that were synced behind the snapshot.

    senders: the id that each waits for, from 1; 0: none. age: of the newest message of each id, in time that really
    passed. told: ids whose send was answered. stored: ids of which a message is, or was, there. waiting: ids of which a
    message is not consumed. is_ahead: the wall clock has jumped. is_behind: time has passed that the store did not see.
    """

    table: tuple[Generation, ...]
    snapshot: tuple[Generation, ...]
    log: Generation
    tail: tuple[Operation, ...]
    senders: tuple[int, ...]
    age: tuple[int, ...]
    told: tuple[int, ...]
    stored: tuple[int, ...]
    waiting: tuple[int, ...]
    is_ahead: int
    is_behind: int
    faults: int
    wrong: str


@dataclass(frozen=True, slots=True)
class DuplicateWindow:
    """The model; behind its bounds, mistakes to plant. room: ids that may be remembered at once."""

    ids: int = 3
    senders: int = 2
    window: int = 2
    span: int = 2
    room: int = 2
    tail_limit: int = 2
    log_limit: int = 3  # the fragment saves a snapshot before it goes on
    faults: int = 2
    jumps: bool = True

    answer_before_original: bool = False  # a repeated send is answered while the first is in flight (rule R8)
    snapshot_holds_unsynced: bool = False
    snapshot_left_out: bool = False  # a start reads the log alone
    wall_clock_ages: bool = False  # ids grow old by the wall clock
    wall_clock_at_start: bool = False  # a start believes the wall clock about the time in which nothing ran
    oldest_decides: bool = False  # a generation goes when its oldest id is as old as the window
    unchecked_without_room: bool = False  # where there is no room, a send is stored and its id not remembered
    start_keeps_due: bool = False  # a start takes up ids that had made room
    forget_consumed: bool = False  # an id goes with its message
    no_refusal_of_repeats: bool = False  # a failed sync refuses the first sender only; the others are answered

    FAULTS = ("kill", "power_cut", "sync_fails", "clock_jumps")

    def start(self) -> State:
        zeros = (0,) * self.ids
        return State(
            table=(), snapshot=(), log=(), tail=(), senders=(0,) * self.senders,
            age=(self.window + self.span,) * self.ids,
            told=zeros, stored=zeros, waiting=zeros, is_ahead=0, is_behind=0, faults=0, wrong="",
        )  # fmt: skip

    def steps(self, state: State) -> Iterator[tuple[Action, State]]:
        if state.wrong:
            return
        for name, waits_for in enumerate(state.senders):
            if not waits_for:
                for number in range(self.ids):
                    yield from self._send(state, name, number)
        for number, waiting in enumerate(state.waiting):
            if waiting:
                yield ("consume", number), self._consumed(state, number)
        if state.table and self._is_due(state, state.table[0]):
            yield ("forget",), state._replace(table=state.table[1:])
        if state.table != state.snapshot or state.log:
            yield ("save_snapshot",), self._saved(state)
        if state.tail:
            yield ("sync",), self._synced(state)
        else:
            yield ("time_passes",), self._passed(state, store_time=1)
        if self.jumps:
            yield ("clock_is_right" if state.is_ahead else "clock_jumps",), state._replace(is_ahead=1 - state.is_ahead)
        if state.faults < self.faults:
            yield from self._faults(state)

    def broken(self, state: State) -> str | None:
        if state.wrong:
            return state.wrong
        for is_told, is_stored in zip(state.told, state.stored, strict=True):
            if is_told and not is_stored:
                return "P1: a send was answered, and no message with its id is stored"
        if remembered_count(state) > self.room:
            return "R17: more ids are remembered than there is room for"
        return None

    def is_quiet(self, state: State) -> bool:
        return not state.tail and not state.table and not any(state.senders) and not any(state.waiting)

    def view(self, state: State) -> tuple[list[int], list[int]]:
        """The ids of which a message waits, and the ids that a send would find."""
        found = {remembered.id for generation in state.table for remembered in generation}
        return [number for number, waiting in enumerate(state.waiting) if waiting], sorted(found)

    def _send(self, state: State, name: int, number: int) -> Iterator[tuple[Action, State]]:
        waits = state._replace(senders=put(state.senders, name, number + 1))
        if any(operation.id == number for operation in state.tail):
            if self.answer_before_original:
                yield ("send", name, number, "seen before"), state._replace(told=put(state.told, number, 1))
            else:
                yield ("send", name, number, "waits for the first"), waits
        elif self._is_found(state, number):
            after = state._replace(told=put(state.told, number, 1))
            if state.age[number] == self.window + self.span and not state.is_behind:
                after = after._replace(wrong="P11: an id is found long behind its window")
            yield ("send", name, number, "seen before"), after
        elif remembered_count(state) >= self.room and not self.unchecked_without_room:
            yield ("send", name, number, "no room"), state
        elif len(state.tail) < self.tail_limit and len(state.tail) + len(state.log) < self.log_limit:
            has_room = remembered_count(state) < self.room
            operation = Operation(number, int(state.age[number] < self.window), int(has_room))
            yield ("send", name, number, "waits"), waits._replace(tail=(*state.tail, operation))

    def _is_found(self, state: State, number: int) -> bool:
        """In a generation that is not due. One that is due counts for nothing, whether it went already or not."""
        for generation in state.table:
            for remembered in generation:
                if remembered.id == number and not self._is_due(state, generation):
                    return True
        return False

    def _is_due(self, state: State, generation: Generation) -> bool:
        deciding = generation[0 if self.oldest_decides else -1]
        ahead = AHEAD if self.wall_clock_ages and state.is_ahead else 0
        return deciding.age + ahead >= self.window

    def _consumed(self, state: State, number: int) -> State:
        after = state._replace(waiting=put(state.waiting, number, 0))
        if self.forget_consumed:
            after = after._replace(
                table=without(state.table, number),
                snapshot=without(state.snapshot, number),
                log=tuple(one for one in state.log if one.id != number),
            )
        return after

    def _saved(self, state: State) -> State:
        table = state.table
        if self.snapshot_holds_unsynced:
            for operation in state.tail:
                table = self._entered(table, operation.id, 0)
        return state._replace(snapshot=table, log=())

    def _synced(self, state: State) -> State:
        number = state.tail[0].id
        after = self._stored(state._replace(tail=state.tail[1:]), state.tail[0])
        senders = tuple(0 if waits_for == number + 1 else waits_for for waits_for in state.senders)
        return after._replace(senders=senders, told=put(state.told, number, 1))

    def _stored(self, state: State, operation: Operation) -> State:
        """A message is in the log for good, its id in the table and in the log."""
        number = operation.id
        if operation.has_room:
            table, log = self._entered(state.table, number, 0), (*state.log, Remembered(number, 0))
            state = state._replace(table=table, log=log)
        return state._replace(
            age=put(state.age, number, 0),
            stored=put(state.stored, number, 1),
            waiting=put(state.waiting, number, 1),
            wrong="P11: an id is stored twice within its window" if operation.is_repeated else state.wrong,
        )

    def _entered(self, table: tuple[Generation, ...], number: int, age: int) -> tuple[Generation, ...]:
        """The newest generation takes an id while its oldest is young enough; else a generation begins."""
        if table and table[-1][0].age - age < self.span:
            return (*table[:-1], (*table[-1], Remembered(number, age)))
        return (*table, (Remembered(number, age),))

    def _passed(self, state: State, *, store_time: int) -> State:
        """A unit of time passes; the time of the store goes on by store_time."""
        limit = self.window + self.span  # higher ages are not told apart
        return state._replace(
            table=older(state.table, store_time, limit),
            snapshot=older(state.snapshot, store_time, limit),
            log=aged(state.log, store_time, limit),
            age=tuple(min(age + 1, limit) for age in state.age),
        )

    def _faults(self, state: State) -> Iterator[tuple[Action, State]]:
        for off in (0, 1):
            yield ("kill", off), self._restarted(state, len(state.tail), off=off)
            for kept in range(len(state.tail)):
                yield ("power_cut", kept, off), self._restarted(state, kept, off=off)
        if state.tail:
            yield ("sync_fails",), self._sync_failed(state)

    def _restarted(self, state: State, kept: int, *, off: int) -> State:
        """The table is made again from the disk. The operations that the tail kept lie behind that in the log."""
        after = state._replace(tail=(), senders=(0,) * self.senders, faults=state.faults + 1)
        if off:
            seen = AHEAD if self.wall_clock_at_start and state.is_ahead else 0
            after = self._passed(after, store_time=seen)._replace(is_behind=1)
        table = () if self.snapshot_left_out else after.snapshot
        for remembered in after.log:
            table = self._entered(table, remembered.id, remembered.age)
        while table and self._is_due(after, table[0]) and not self.start_keeps_due:
            table = table[1:]
        after = after._replace(table=table)
        for operation in state.tail[:kept]:
            after = self._stored(after, operation)
        return after

    def _sync_failed(self, state: State) -> State:
        after = state._replace(tail=(), senders=(0,) * self.senders, faults=state.faults + 1)
        if self.no_refusal_of_repeats:
            for waits_for in set(state.senders) - {0}:
                if state.senders.count(waits_for) > 1:
                    after = after._replace(told=put(after.told, waits_for - 1, 1))
        return after


def remembered_count(state: State) -> int:
    """Ids that take room: those of the table, and those in flight."""
    return sum(map(len, state.table)) + sum(operation.has_room for operation in state.tail)


def without(table: tuple[Generation, ...], number: int) -> tuple[Generation, ...]:
    rest = (tuple(one for one in generation if one.id != number) for generation in table)
    return tuple(generation for generation in rest if generation)


def aged(generation: Generation, time: int, limit: int) -> Generation:
    return tuple(Remembered(number, min(age + time, limit)) for number, age in generation)


def older(table: tuple[Generation, ...], time: int, limit: int) -> tuple[Generation, ...]:
    return tuple(aged(generation, time, limit) for generation in table) if time else table
