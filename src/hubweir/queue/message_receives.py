"""Receivers of a fragment: what they wait for, and what they are given.

A receive is answered in the turn in which there is a message, and one that does not wait in the next turn, whatever
there is; receivers of one sub-queue are served in the order in which they asked. How messages go to them says
message_giving.py; holders of sessions wait in session_receives.py.
"""

from __future__ import annotations

from array import array

from hubweir.errors import NOT_ALLOWED, ServiceError
from hubweir.queue.fragment_core import FragmentCore
from hubweir.queue.fragment_receiver import FragmentReceiver
from hubweir.queue.fragment_values import OnDone, ReceivedMessages, Times
from hubweir.queue.message_giving import MessageGiving
from hubweir.queue.receive_values import RECEIVE_LIMIT, Wanted, nothing_received
from hubweir.queue.session_receives import SessionReceives
from hubweir.queue.sub_queue import ReceiveMode, SubQueue


class MessageReceives:
    """See the module's text."""

    def __init__(self, core: FragmentCore) -> None:
        self._core = core
        self._waiting: dict[FragmentReceiver, Wanted] = {}  # without a session, in the order they came
        self._room = array("q", bytes(8 * RECEIVE_LIMIT))  # for the counts of one receive
        self.giving = MessageGiving(core)
        self._in_sessions = SessionReceives(core, self.giving)

    # Receivers

    def open(self, sub_queue: SubQueue, mode: ReceiveMode) -> FragmentReceiver:
        """See Fragment.open_receiver."""
        if sub_queue is SubQueue.MAIN and self._core.settings.requires_session:
            text = (
                "It is not possible for an entity that requires sessions to create a non-sessionful message receiver. "
                f"'{self._core.entity}' requires sessions: accept one."
            )
            raise ServiceError(NOT_ALLOWED, text)
        return FragmentReceiver(sub_queue, mode)

    def close(self, receiver: FragmentReceiver) -> None:
        """It receives no more; what it waits for is answered empty, and what is being read for it becomes free."""
        receiver.is_open = False
        self.cancel(receiver)

    def receive(
        self,
        receiver: FragmentReceiver,
        *,
        max_count: int,
        max_bytes: int,
        waits: bool,
        on_done: OnDone[ReceivedMessages],
    ) -> None:
        """See Fragment.receive."""
        if not receiver.is_open or self._is_asked(receiver) or receiver.reading:
            raise ServiceError(NOT_ALLOWED, f"a receiver of '{self._core.entity}' is closed, or receives already")
        receiver.is_cancelled = False
        self._wait(receiver, Wanted(max(1, min(max_count, RECEIVE_LIMIT)), max_bytes, waits, on_done))

    def _is_asked(self, receiver: FragmentReceiver) -> bool:
        return receiver in (self._waiting if receiver.session is None else self._in_sessions.waiting)

    def _wait(self, receiver: FragmentReceiver, wanted: Wanted) -> None:
        if receiver.session is not None:
            self._in_sessions.wait(receiver, wanted)
            return
        self._waiting[receiver] = wanted
        if not wanted.waits or self._core.state.messages.may_have_ready(receiver.sub_queue):
            self._core.wake()  # otherwise there is a turn when a message becomes ready

    def cancel(self, receiver: FragmentReceiver) -> None:
        """Answer what it waits for empty; what is being read for it is answered as planned, and empty if it is lost."""
        receiver.is_cancelled = True
        if receiver.session is not None:
            self._in_sessions.cancel(receiver)
            return
        wanted = self._waiting.pop(receiver, None)
        if wanted is not None:
            wanted.on_done(nothing_received())

    def end(self, error: ServiceError) -> None:
        """Refuse all that wait."""
        waiting = self._waiting | self._in_sessions.end()
        self._waiting = {}
        for receiver, wanted in waiting.items():
            receiver.is_open = False
            wanted.on_done(error)

    def serve(self, times: Times) -> None:
        """Give to those who wait what is ready."""
        messages, empty = self._core.state.messages, set[SubQueue]()
        self._core.reads.begin_turn()
        for receiver, wanted in list(self._waiting.items()):
            sub_queue = receiver.sub_queue
            if sub_queue in empty:
                self._pass_over(receiver, wanted)
                continue
            many, _ = messages.select(sub_queue, times.stamp_ms, self._room, wanted.max_count, wanted.max_bytes)
            if many:
                self._give(receiver, self._room[:many], times)
            else:
                empty.add(sub_queue)
                self._pass_over(receiver, wanted)
        self._in_sessions.serve(times)
        self._core.reads.end_turn()

    def _pass_over(self, receiver: FragmentReceiver, wanted: Wanted) -> None:
        """There is nothing for it in this turn."""
        if not wanted.waits:
            self.cancel(receiver)

    def _give(self, receiver: FragmentReceiver, counts: array[int], times: Times) -> None:
        """Answer what it waits for with these."""
        wanted = self._waiting.pop(receiver, None)
        if wanted is not None:  # it was not cancelled meanwhile
            self.giving.give_to(receiver, counts, wanted, times, self._wait)
