"""One receive of one message from one fragment, for one request: a receiver is opened, asked once, and closed.

However it ends, the receiver is closed. A message that came and that nobody takes is released: it is active again as
if it had not been delivered. Under receive-and-delete it is gone once the broker has given it (promise P9).
After a crash of this process the broker closes its receivers, and locks end by their time.
"""

from __future__ import annotations

import asyncio
import struct
from array import array
from enum import Enum, auto

from hubweir.broker.commands.command import Answer, Owner, nobody_waits
from hubweir.broker.commands.fragment import (
    CancelReceive,
    CloseReceiver,
    MessagesReceived,
    OpenReceiver,
    ReceiveMessages,
    ReceiverOpened,
    SettleMessages,
)
from hubweir.broker.commands.process import Refusal
from hubweir.errors import TIMED_OUT, ServiceError
from hubweir.gateway.brokers import error_of
from hubweir.gateway.fragments import FragmentPlace
from hubweir.kernels.contract import Q_LOCK, Q_LOCK_CHECK
from hubweir.queue.settle_outcome import SettleOutcome
from hubweir.queue.sub_queue import ReceiveMode, SubQueue

# Receivers of requests belong to no connection: each is closed by itself, and all of them with their process.
NO_CONNECTION = -2


class _Step(Enum):
    OPENING = auto()
    RECEIVING = auto()
    ENDED = auto()


class _Peer(Enum):
    """What the peer still wants of the receive."""

    WAITS = auto()
    LATE = auto()  # it waits for what is on its way, and for no message that is not
    GONE = auto()  # it takes none any more: one that came, or comes, is released
    TOOK = auto()  # the message is its own to settle


class HeadReceive:
    """See the module's text. done: set with the answer, rows or none; or with why there is none."""

    def __init__(self, place: FragmentPlace, sub_queue: SubQueue, mode: ReceiveMode, *, waits: bool = True) -> None:
        """waits: for a message; otherwise there is one now, or none."""
        self.place = place
        self._sub_queue = sub_queue
        self._mode = mode
        self.waits = waits
        self._step = _Step.OPENING
        self._receiver_id = -1
        self._peer = _Peer.WAITS
        self.done: asyncio.Future[MessagesReceived | ServiceError] = asyncio.get_running_loop().create_future()

    def start(self, process_id: int) -> None:
        """Ask for the next message. process_id: of the gateway."""
        owner = Owner(process_id, NO_CONNECTION)
        command = OpenReceiver(self.place.log_id, owner, self._sub_queue, self._mode)
        self.place.broker.submit(command, self._opened)

    def stop_waiting(self) -> None:
        """The time is over: `done` follows with what is on its way, or with nothing."""
        if self._peer is _Peer.WAITS:
            self._peer = _Peer.LATE
        if self._step is _Step.RECEIVING:
            self.place.broker.submit(CancelReceive(self.place.log_id, self._receiver_id), nobody_waits)

    def taken(self) -> None:
        """The answer goes to the peer: the message is its own to settle."""
        self._peer = _Peer.TOOK

    def give_up(self) -> None:
        """Nobody waits any more. Does nothing behind `taken`; without it, a message that came or comes is released."""
        if self._peer in (_Peer.TOOK, _Peer.GONE):
            return
        self._peer = _Peer.GONE
        if self._step is _Step.RECEIVING:
            # What is being read for a receiver that closes becomes free by itself.
            self._close()
        elif self._step is _Step.ENDED and self.done.done():
            self._release(self.done.result())

    def _opened(self, answer: Answer) -> None:
        if not isinstance(answer, ReceiverOpened):
            self._end(error_of(answer))
            return
        self._receiver_id = answer.receiver_id
        if self._peer is not _Peer.WAITS:
            self._close()
            self._end(MessagesReceived(b"", b""))
            return
        self._step = _Step.RECEIVING
        # One message comes whole, however large it is.
        command = ReceiveMessages(self.place.log_id, self._receiver_id, 1, 1, self.waits)
        self.place.broker.submit(command, self._received)

    def _received(self, answer: Answer) -> None:
        if self._peer is not _Peer.GONE:
            self._close()
        if isinstance(answer, MessagesReceived):
            self._end(answer)
        elif isinstance(answer, Refusal) and not answer.known:
            text = f"The outcome of this receive from '{self.place.entity}' is not known: {answer.text}"
            self._end(ServiceError(TIMED_OUT, text))
        else:
            self._end(error_of(answer))

    def _end(self, result: MessagesReceived | ServiceError) -> None:
        self._step = _Step.ENDED
        if self._peer is _Peer.GONE:
            self._release(result)
        if not self.done.done():
            self.done.set_result(result)

    def _close(self) -> None:
        self.place.broker.submit(CloseReceiver(self.place.log_id, self._receiver_id), nobody_waits)

    def _release(self, result: MessagesReceived | ServiceError) -> None:
        if isinstance(result, MessagesReceived) and result.rows and self._mode is ReceiveMode.PEEK_LOCK:
            token = token_of(array("q", result.rows))
            self.place.broker.submit(SettleMessages(self.place.log_id, token, SettleOutcome.RELEASE), nobody_waits)


def token_of(row: array[int]) -> bytes:
    """The lock token of a message row: the 16 bytes of a uuid."""
    return struct.pack(">qq", row[Q_LOCK], row[Q_LOCK_CHECK])
