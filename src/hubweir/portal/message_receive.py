"""Receives a bounded number of messages under a lock, for what a page does with them; what it does not settle is free.

A receiver of its own in each fragment, closed at once; it waits for no message. An answer that comes when nobody waits
any more closes its receiver, and releases what it brings.
"""

from __future__ import annotations

from array import array
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from hubweir.broker.commands.command import Answer, Command, Owner, nobody_waits
from hubweir.broker.commands.fragment import (
    CloseReceiver,
    MessagesReceived,
    MessagesSettled,
    OpenReceiver,
    ReceiveMessages,
    ReceiverOpened,
    SettleMessages,
)
from hubweir.errors import ServiceError
from hubweir.gateway.brokers import error_of
from hubweir.gateway.fragments import FragmentPlace
from hubweir.gateway.http.head_receive import NO_CONNECTION, token_of
from hubweir.kernels import encode_message
from hubweir.kernels.contract import MESSAGE_WIDTH
from hubweir.portal.visit import Visit
from hubweir.queue.settle_outcome import SettleDetails, SettleOutcome, lost_error
from hubweir.queue.sub_queue import ReceiveMode, SubQueue

A = TypeVar("A", bound=Answer)

RECEIVE_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class LockedMessage:
    """data: the message as it is received. token: of its lock."""

    data: bytes
    token: bytes


@asynccontextmanager
async def locked_messages(
    visit: Visit, place: FragmentPlace, sub_queue: SubQueue, count: int
) -> AsyncIterator[list[LockedMessage]]:
    """At most `count` messages of a fragment, the oldest first. Those that are still locked behind it are released."""
    receiver = _OpenReceiver(visit, place, sub_queue)
    messages: list[LockedMessage] = []
    try:
        await visit.ask(receiver.open)
        messages = _opened(place, await visit.ask(partial(receiver.receive, count)))
        yield messages
    finally:
        receiver.close()
        # What was settled is lost to this one, and says so; nobody asks.
        _release(place, [message.token for message in messages])


class _OpenReceiver:
    """A receiver that is closed whatever happens, also when it opens or receives later than anybody waits."""

    def __init__(self, visit: Visit, place: FragmentPlace, sub_queue: SubQueue) -> None:
        owner = Owner(visit.gateway.process.process_id, NO_CONNECTION)
        self._opening = OpenReceiver(place.log_id, owner, sub_queue, ReceiveMode.PEEK_LOCK)
        self._place = place
        self._receiver_id: int | None = None
        self._is_over = False

    def open(self, on_done: Callable[[ReceiverOpened | ServiceError], None]) -> None:
        def answered(answer: Answer) -> None:
            if isinstance(answer, ReceiverOpened):
                self._receiver_id = answer.receiver_id
                if self._is_over:
                    self.close()
            on_done(answer if isinstance(answer, ReceiverOpened) else error_of(answer))

        self._place.broker.submit(self._opening, answered)

    def receive(self, count: int, on_done: Callable[[MessagesReceived | ServiceError], None]) -> None:
        """What there is now, `count` messages at most."""
        assert self._receiver_id is not None, "it is open"

        def answered(answer: Answer) -> None:
            if isinstance(answer, MessagesReceived) and self._is_over:
                _release(self._place, [token_of(row) for row in _message_rows(answer)])
            on_done(answer if isinstance(answer, MessagesReceived) else error_of(answer))

        command = ReceiveMessages(self._place.log_id, self._receiver_id, count, RECEIVE_BYTES, False)
        self._place.broker.submit(command, answered)

    def close(self) -> None:
        self._is_over = True
        if self._receiver_id is not None:
            self._place.broker.submit(CloseReceiver(self._place.log_id, self._receiver_id), nobody_waits)


def _release(place: FragmentPlace, tokens: list[bytes]) -> None:
    if tokens:
        place.broker.submit(SettleMessages(place.log_id, b"".join(tokens), SettleOutcome.RELEASE), nobody_waits)


async def settle(
    visit: Visit,
    place: FragmentPlace,
    messages: list[LockedMessage],
    outcome: SettleOutcome,
    details: SettleDetails | None = None,
) -> None:
    """Settle messages. ServiceError where a lock was lost meanwhile."""
    tokens = b"".join(message.token for message in messages)
    settled = await ask(visit, place, SettleMessages(place.log_id, tokens, outcome, details), MessagesSettled)
    lost = [code for code in settled.codes if code]
    if lost:
        raise lost_error(lost[0])


async def ask(visit: Visit, place: FragmentPlace, command: Command, kind: type[A]) -> A:
    """The answer of a command, of that kind. Raises ServiceError."""

    def start(on_done: Callable[[A | ServiceError], None]) -> None:
        place.broker.submit(command, lambda answer: on_done(answer if isinstance(answer, kind) else error_of(answer)))

    return await visit.ask(start)


def _opened(place: FragmentPlace, received: MessagesReceived) -> list[LockedMessage]:
    rows = array("q", received.rows)
    return [
        LockedMessage(encode_message(received.run, rows, number, place.id_prefix), token_of(row))
        for number, row in enumerate(_message_rows(received))
    ]


def _message_rows(received: MessagesReceived) -> list[array[int]]:
    rows = array("q", received.rows)
    return [rows[at : at + MESSAGE_WIDTH] for at in range(0, len(rows), MESSAGE_WIDTH)]
