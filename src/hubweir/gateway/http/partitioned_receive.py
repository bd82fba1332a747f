"""One receive of one message from an entity of several fragments, for one request.

The fragments are looked at one after the other; when none has a message, all wait for one, and the first that comes is
the answer. So nothing comes only where no fragment has a message. What others bring meanwhile is released. A fragment
that is away is passed over. So are all of a broker of which one does not answer for a moment; and once the time of the
request is over, nobody waits for one any longer than that.

Clients of the cloud have to live with less: at little traffic a receive there finds nothing, though another fragment
has a message. For tests of that a receive looks at one fragment alone (GatewaySettings.lone_receives).

To receive and delete, a message is locked first and completed when it is chosen, so that only this one is gone.
"""

from __future__ import annotations

import asyncio
from array import array
from functools import partial

from hubweir.broker.commands.command import Answer
from hubweir.broker.commands.fragment import MessagesReceived, MessagesSettled, SettleMessages
from hubweir.broker.commands.process import Refusal
from hubweir.errors import TIMED_OUT, ServiceError
from hubweir.gateway.brokers import BrokerClient, error_of
from hubweir.gateway.fragments import FragmentPlace, Fragments
from hubweir.gateway.http.head_receive import HeadReceive, token_of
from hubweir.kernels.contract import Q_LOCK, Q_LOCK_CHECK, Q_LOCKED_UNTIL_MS
from hubweir.queue.settle_outcome import SettleOutcome
from hubweir.queue.sub_queue import ReceiveMode, SubQueue

# A broker that answers at all does so in some milliseconds.
LOOK_S = 0.5


class PartitionedReceive:
    """As HeadReceive, with the same calls. place: where the message that came was."""

    def __init__(
        self, fragments: Fragments, sub_queue: SubQueue, mode: ReceiveMode, first: int, *, is_lone: bool = False
    ) -> None:
        """first: any number; it says which fragment is looked at first. is_lone: and no other is."""
        first %= len(fragments.places)
        self._places = (fragments.places[first:] + fragments.places[:first])[: 1 if is_lone else None]
        self.place: FragmentPlace = self._places[0]
        self._sub_queue = sub_queue
        self._mode = mode
        self._process_id = -1
        self._receives: list[HeadReceive] = []  # under way
        self._chosen: HeadReceive | None = None
        self._refusals: list[ServiceError] = []  # of the fragments that were asked last
        self._is_late = self._is_over = False
        self._silent: list[BrokerClient] = []  # one look at each was in vain
        self._late_timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self.done: asyncio.Future[MessagesReceived | ServiceError] = self._loop.create_future()

    def start(self, process_id: int) -> None:
        """Ask for the next message. process_id: of the gateway."""
        self._process_id = process_id
        self._look(0)

    def stop_waiting(self) -> None:
        """The time is over: `done` follows when all were looked at, with what is there."""
        self._is_late = True
        for receive in self._receives:
            if receive.waits:
                receive.stop_waiting()
        self._late_timer = self._loop.call_later(LOOK_S, self._wait_no_longer)

    def taken(self) -> None:
        """The answer goes to the peer: the message is its own to settle."""
        if self._chosen is not None:
            self._chosen.taken()

    def give_up(self) -> None:
        """Nobody waits any more; see HeadReceive."""
        self._is_over = True
        if self._late_timer is not None:
            self._late_timer.cancel()
        for receive in self._receives:
            receive.give_up()
        if self._chosen is not None:
            self._chosen.give_up()

    # Looking

    def _look(self, at: int) -> None:
        """Ask one fragment after the other for what is there now."""
        if self._is_over:
            return
        if at == 0:
            self._refusals = []
        while at < len(self._places) and self._places[at].broker in self._silent:
            at += 1
        if at == len(self._places):
            self._wait()
            return
        receive = HeadReceive(self._places[at], self._sub_queue, ReceiveMode.PEEK_LOCK, waits=False)
        self._receives = [receive]
        timer = self._loop.call_later(LOOK_S, self._leave, receive, at)

        def looked(done: asyncio.Future[MessagesReceived | ServiceError]) -> None:
            timer.cancel()
            if receive in self._receives and not self._came(receive):
                self._look(at + 1)

        receive.done.add_done_callback(looked)
        receive.start(self._process_id)

    def _leave(self, receive: HeadReceive, at: int) -> None:
        """It takes too long."""
        self._silent.append(receive.place.broker)
        self._receives.remove(receive)
        receive.give_up()
        self._look(at + 1)

    # Waiting

    def _wait(self) -> None:
        """None has a message: wait for one of all."""
        if self._is_late or len(self._refusals) == len(self._places):
            self._nothing()
            return
        self._refusals = []
        self._receives = [HeadReceive(place, self._sub_queue, ReceiveMode.PEEK_LOCK) for place in self._places]
        for receive in list(self._receives):
            receive.done.add_done_callback(partial(self._waited, receive))
            receive.start(self._process_id)

    def _waited(self, receive: HeadReceive, done: asyncio.Future[MessagesReceived | ServiceError]) -> None:
        if receive not in self._receives or self._came(receive):
            return
        self._receives.remove(receive)
        if not self._receives:
            self._nothing()

    def _wait_no_longer(self) -> None:
        """What was asked to wait was told to end, and some have not said how."""
        left = [receive for receive in self._receives if receive.waits]
        if left:
            self._receives = []
            for receive in left:
                receive.give_up()
            self._nothing()

    # Ends

    def _came(self, receive: HeadReceive) -> bool:
        """Whether one that is done brought a message, which is the answer then."""
        result = receive.done.result()
        if isinstance(result, ServiceError):
            self._refusals.append(result)
        if isinstance(result, ServiceError) or not result.rows or self._is_over:
            return False
        others, self._receives = self._receives, []
        for each in others:
            if each is not receive:
                each.give_up()
        self._chosen, self.place = receive, receive.place
        if self._mode is ReceiveMode.PEEK_LOCK:
            self._end(result)
        else:
            self._delete(receive, result)
        return True

    def _delete(self, receive: HeadReceive, found: MessagesReceived) -> None:
        """Complete the message that is the answer."""
        rows = array("q", found.rows)
        command = SettleMessages(receive.place.log_id, token_of(rows), SettleOutcome.COMPLETE)
        receive.taken()  # it is not released any more, whatever becomes of the request
        receive.place.broker.submit(command, partial(self._deleted, found.run, rows))

    def _deleted(self, run: bytes | memoryview, rows: array[int], answer: Answer) -> None:
        if isinstance(answer, MessagesSettled) and not any(answer.codes):
            rows[Q_LOCK], rows[Q_LOCK_CHECK], rows[Q_LOCKED_UNTIL_MS] = 0, 0, -1
            self._end(MessagesReceived(run, rows.tobytes()))
        elif isinstance(answer, MessagesSettled):
            self._look(0)  # its lock ended meanwhile: it is somebody else's
        elif isinstance(answer, Refusal) and not answer.known:
            text = f"The outcome of this receive from '{self.place.entity}' is not known: {answer.text}"
            self._end(ServiceError(TIMED_OUT, text))
        else:
            self._end(error_of(answer))

    def _nothing(self) -> None:
        """No fragment has a message; or none can say so."""
        all_away = len(self._refusals) == len(self._places)
        self._end(self._refusals[0] if all_away else MessagesReceived(b"", b""))

    def _end(self, result: MessagesReceived | ServiceError) -> None:
        if not self.done.done():
            self.done.set_result(result)
