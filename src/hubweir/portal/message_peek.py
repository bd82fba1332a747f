"""Peeks at messages of a queue or a subscription: nothing is locked or counted, and what comes at once is bounded."""

from __future__ import annotations

from array import array
from dataclasses import dataclass

from hubweir.broker.commands.fragment import MessagesReceived, PeekMessages
from hubweir.gateway.fragments import Fragments
from hubweir.kernels import encode_message
from hubweir.kernels.contract import (
    MESSAGE_WIDTH,
    Q_DELIVERY_COUNT,
    Q_ENQUEUED_MS,
    Q_LOCKED_UNTIL_MS,
    Q_SEQUENCE_NUMBER,
    Q_STATE,
)
from hubweir.portal.message_receive import ask
from hubweir.portal.visit import Visit
from hubweir.queue.sub_queue import SubQueue

PEEK_BYTES = 1024 * 1024
STATES = ("Active", "Deferred", "Scheduled")


@dataclass(frozen=True, slots=True)
class PeekedMessage:
    """One message. state: Active, Locked, Deferred or Scheduled. data: the message, as a receiver gets it."""

    sequence_number: int
    enqueued_ms: int
    delivery_count: int
    state: str
    data: bytes


async def peek_messages(
    visit: Visit, fragments: Fragments, sub_queue: SubQueue, from_number: int, count: int
) -> list[PeekedMessage]:
    """At most `count` messages, one fragment behind the other, as clients peek; no more behind PEEK_BYTES."""
    found: list[PeekedMessage] = []
    size = 0
    for place in fragments.from_number(from_number):
        if len(found) == count or size >= PEEK_BYTES:
            break
        command = PeekMessages(place.log_id, sub_queue, from_number, count - len(found), PEEK_BYTES - size)
        answer = await ask(visit, place, command, MessagesReceived)
        rows = array("q", answer.rows)
        for at in range(len(rows) // MESSAGE_WIDTH):
            row = rows[at * MESSAGE_WIDTH : (at + 1) * MESSAGE_WIDTH]
            state = "Locked" if row[Q_LOCKED_UNTIL_MS] > 0 else STATES[max(0, row[Q_STATE])]
            data = encode_message(answer.run, rows, at, place.id_prefix)
            found.append(
                PeekedMessage(row[Q_SEQUENCE_NUMBER], row[Q_ENQUEUED_MS], row[Q_DELIVERY_COUNT], state, bytes(data))
            )
            size += len(data)
    return found
