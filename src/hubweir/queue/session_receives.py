"""Holders of sessions that wait for messages: those given to all of them in a turn are locked and logged together.

A holder waits in its session. In a turn only those are looked at that may have a message that is ready, or ask and do
not wait. Holders with one `on_given` are a group, mostly the links of one connection, and are told together: hundreds
of sessions get a message each in a turn, and a step for each of them costs more than the messages. A receive of such a
holder stays until as many came as it asked for, or may have come; then it is answered, without messages. A holder in no
group is answered with its messages, and so is a receive that does not wait.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from functools import partial

from msgspec import Struct

from hubweir.kernels.contract import MESSAGE_WIDTH, Q_LOCKED_UNTIL_MS
from hubweir.messaging_store.log import Refused
from hubweir.queue.fragment_core import FragmentCore
from hubweir.queue.fragment_receiver import NOTHING, FragmentReceiver, GivenMessages, OnGiven
from hubweir.queue.fragment_values import ReceivedMessages, Times
from hubweir.queue.message_giving import MessageGiving
from hubweir.queue.message_page import NEVER
from hubweir.queue.message_session import MessageSession
from hubweir.queue.receive_values import Given, Wanted, changes_of, nothing_received
from hubweir.queue.sub_queue import ReceiveMode

# Of the records that a group is told of at once: the owner copies them, or sends them on in one piece.
TOGETHER_BYTES = 1024 * 1024


class _Picked(Struct, frozen=True):
    """Messages that are ready in a holder's session. size: of their records."""

    receiver: FragmentReceiver
    session: MessageSession
    wanted: Wanted
    counts: array[int]
    size: int


class SessionReceives:
    """See the module's text. waiting: what the holders wait for."""

    def __init__(self, core: FragmentCore, giving: MessageGiving) -> None:
        self._core = core
        self._giving = giving
        self.waiting: dict[FragmentReceiver, Wanted] = {}
        self._just_asked: list[FragmentReceiver] = []

    def wait(self, receiver: FragmentReceiver, wanted: Wanted) -> None:
        """Have a holder wait for messages of its session."""
        session = receiver.session
        self.waiting[receiver] = wanted
        if wanted.waits and session is not None and not session.may_have_ready:
            return  # the session is stirred when it has
        self._just_asked.append(receiver)
        self._core.wake()

    def cancel(self, receiver: FragmentReceiver) -> None:
        """See MessageReceives.cancel."""
        wanted = self.waiting.get(receiver)
        if wanted is not None and receiver.reading:
            wanted.max_count = 0  # it is over when these are given
        elif wanted is not None:
            del self.waiting[receiver]
            wanted.on_done(nothing_received())

    def end(self) -> dict[FragmentReceiver, Wanted]:
        """Nobody waits any more: who did, and for what."""
        waiting, self.waiting, self._just_asked = self.waiting, {}, []
        return waiting

    def serve(self, times: Times) -> None:
        """Give to those who wait what is ready in their sessions."""
        state, waiting, just_asked = self._core.state, self.waiting, self._just_asked
        self._just_asked = []
        holders = [session.holder for session in state.sessions.take_stirred()]
        groups: dict[OnGiven | FragmentReceiver, list[_Picked]] = {}
        messages, now_ms = state.messages, times.stamp_ms
        for receiver in just_asked + holders:
            wanted = waiting.get(receiver)
            if wanted is None or receiver.reading:
                continue
            session = receiver.session
            assert session is not None  # it waits here
            counts, size = session.select(messages, now_ms, wanted.max_count, wanted.max_bytes)
            if not counts:
                if not wanted.waits:
                    self.cancel(receiver)
            elif receiver.mode is ReceiveMode.PEEK_LOCK:
                receiver.reading = counts
                group = (receiver.on_given if wanted.waits else None) or receiver
                its = groups.get(group)
                if its is None:
                    its = groups[group] = []
                its.append(_Picked(receiver, session, wanted, counts, size))
            else:
                del waiting[receiver]
                self._giving.give_to(receiver, counts, wanted, times, self.wait)
        if groups:
            self._lock(groups, times)

    def _lock(self, groups: dict[OnGiven | FragmentReceiver, list[_Picked]], times: Times) -> None:
        """Lock the messages of all groups, then tell one after the other."""
        portions = [each for its in groups.values() for each in _portions(its)]
        counts, ends_ms, later_ms = array("q"), array("q"), times.stamp_ms - times.monotonic_ms
        for portion in portions:
            for picked in portion:
                session, its_counts = picked.session, picked.counts
                last = its_counts[-1]  # as `select` picks them: in order
                if last > session.last_given:
                    session.last_given = last
                counts += its_counts
                ends_ms += array("q", (session.until_ms + later_ms,)) * len(its_counts)
        indexes, rows = self._giving.marked(counts, lock_ends_ms=NEVER, told_ms=-1, is_counted=True)
        rows[Q_LOCKED_UNTIL_MS::MESSAGE_WIDTH] = ends_ms  # sessions are held until different times
        at = 0
        for portion in portions:
            first, at = at, at + sum(len(picked.counts) for picked in portion)
            self._tell(portion, indexes[first:at], rows[first * MESSAGE_WIDTH : at * MESSAGE_WIDTH])

    def _tell(self, portion: list[_Picked], indexes: array[int], rows: array[int]) -> None:
        """Tell holders of messages that are locked: those together whose records are in memory."""
        place = at = 0
        while place < len(portion):
            behind, end, run = self._at_hand(portion, place, indexes, at, rows)
            if behind > place:
                self._give(portion[place:behind], run, rows[at * MESSAGE_WIDTH : end * MESSAGE_WIDTH])
            else:
                behind, end = place + 1, at + len(portion[place].counts)
                self._read(portion[place], indexes[at:end], rows[at * MESSAGE_WIDTH : end * MESSAGE_WIDTH])
            place, at = behind, end

    def _at_hand(
        self, portion: list[_Picked], place: int, indexes: array[int], at: int, rows: array[int]
    ) -> tuple[int, int, bytearray]:
        """The place and the row behind the holders, from this one on, whose records are in memory; the records."""
        run, has_changes = bytearray(), bool(self._core.state.changed)
        taken = self._core.reads.take_of_turn(indexes, at, len(indexes), rows, run)
        while place < len(portion):
            picked = portion[place]
            end = at + len(picked.counts)
            if end > taken or not picked.receiver.is_open or (has_changes and changes_of(self._core, picked.counts)):
                break
            place, at = place + 1, end
        return place, at, run

    def _give(self, portion: list[_Picked], run: bytearray, rows: array[int]) -> None:
        """Tell holders of one group of their messages; the receives of some are over by that."""
        first, over = portion[0], list[_Picked]()
        on_given = first.receiver.on_given if first.wanted.waits else None
        if on_given is None:
            first.receiver.reading = NOTHING
            del self.waiting[first.receiver]
            first.wanted.on_done(ReceivedMessages(memoryview(run), rows))
            return
        receivers, many = [each.receiver for each in portion], array("q", [len(each.counts) for each in portion])
        for picked, count in zip(portion, many, strict=True):
            wanted, session = picked.wanted, picked.session
            picked.receiver.reading = NOTHING
            wanted.max_count = left = wanted.max_count - count
            wanted.max_bytes = left_bytes = wanted.max_bytes - picked.size
            # What else is ready did not fit: the holder asks again when it has taken these.
            if left <= 0 or left_bytes <= 0 or session.ready_from < len(session.counts):
                over.append(picked)
        on_given(GivenMessages(memoryview(run), rows, receivers, many))
        for picked in over:
            if self.waiting.get(picked.receiver) is picked.wanted:
                del self.waiting[picked.receiver]
                picked.wanted.on_done(nothing_received())

    def _read(self, picked: _Picked, indexes: array[int], rows: array[int]) -> None:
        """Have a holder's messages read: they are not in memory, or what receivers changed is to be put in."""
        changes = changes_of(self._core, picked.counts)
        self._core.reads.begin(indexes, rows, changes, partial(self._was_read, picked, rows))

    def _was_read(self, picked: _Picked, rows: array[int], answer: bytearray | Refused) -> None:
        receiver, wanted = picked.receiver, picked.wanted
        if self.waiting.get(receiver) is not wanted:
            return  # the fragment ended
        if isinstance(answer, bytearray) and receiver.is_open:
            self._give([picked], answer, rows)
            return
        del self.waiting[receiver]
        again = partial(self.wait, receiver, wanted)
        given = Given(picked.counts, rows, ReceiveMode.PEEK_LOCK, True, wanted.on_done, receiver, again)
        self._giving.read(given, answer)


def _portions(its: list[_Picked]) -> Iterator[list[_Picked]]:
    """The same in lists of at most TOGETHER_BYTES, or of one."""
    portion, size = list[_Picked](), 0
    for picked in its:
        size += picked.size
        if portion and size > TOGETHER_BYTES:
            yield portion
            portion, size = [], picked.size
        portion.append(picked)
    yield portion
