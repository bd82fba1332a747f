"""Receives a bounded number of messages under a lock, for what a page does with them; what it does not settle is free.

A receiver of its own in each fragment, closed at once; it waits for no message.
"""

from __future__ import annotations

from array import array
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from hubweir.broker.commands.command import Answer, Command, Owner
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
    owner = Owner(visit.gateway.process.process_id, NO_CONNECTION)
    opening = OpenReceiver(place.log_id, owner, sub_queue, ReceiveMode.PEEK_LOCK)
    opened = await ask(visit, place, opening, ReceiverOpened)
    messages: list[LockedMessage] = []
    try:
        command = ReceiveMessages(place.log_id, opened.receiver_id, count, RECEIVE_BYTES, False)
        messages = _opened(place, await ask(visit, place, command, MessagesReceived))
        yield messages
    finally:
        place.broker.submit(CloseReceiver(place.log_id, opened.receiver_id), _nothing)
        tokens = b"".join(message.token for message in messages)
        if tokens:
            # What was settled is lost to this one, and says so; nobody asks.
            place.broker.submit(SettleMessages(place.log_id, tokens, SettleOutcome.RELEASE), _nothing)


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
        LockedMessage(
            encode_message(received.run, rows, number, place.id_prefix),
            token_of(rows[number * MESSAGE_WIDTH : (number + 1) * MESSAGE_WIDTH]),
        )
        for number in range(len(rows) // MESSAGE_WIDTH)
    ]


def _nothing(answer: Answer) -> None:
    """The answer of a command that nobody waits for."""
