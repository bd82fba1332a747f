"""Receivers that settle each message by a disposition of its own, and wait for the service's answer to each."""

from __future__ import annotations

import asyncio
import sys
from array import array
from collections.abc import Callable
from struct import Struct

from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.amqp.messaging.outcome import Accepted, Modified, Outcome, Rejected
from hubweir.amqp.messaging.terminus import Source, Target
from hubweir.amqp.transport.events import Answered, DeliveriesReceived, LinkAttached
from hubweir.amqp.transport.receiver_link import ReceiverLink
from hubweir.amqp.types.composite import encode_composite
from hubweir.amqp.types.values import Symbol, UInt
from hubweir.client.connection import Connection
from hubweir.client.link_user import LinkUser
from hubweir.errors import ServiceError
from hubweir.kernels.contract import D_DELIVERY_ID, DELIVERY_WIDTH

CREDIT = 4_000
UNSETTLED_MOST = 5_000  # of a link, at both ends
SESSION_FILTER = Symbol("com.microsoft:session-filter")
SESSION_WAIT_MS = 10_000

# The head of a frame with a disposition of one delivery: role receiver, first, last, not settled; the state follows.
_DISPOSITION = Struct(">IBBH3s 3B B BI BI B")
_FIRST_AT, _LAST_AT = 16, 21
_INFO: dict[Symbol, object] = {
    Symbol("DeadLetterReason"): "bench",
    Symbol("DeadLetterErrorDescription"): "settled by a benchmark",
}
_DEAD_LETTER = AmqpError(condition=Symbol("com.microsoft:dead-letter"), description="bench", info=_INFO)
OUTCOMES: dict[str, Outcome] = {
    "complete": Accepted(),
    "abandon": Modified(delivery_failed=True),
    "defer": Modified(delivery_failed=True, undeliverable_here=True),
    "dead-letter": Rejected(error=_DEAD_LETTER),
}
COMPLETE = OUTCOMES["complete"]


def dispositions(channel: int, delivery_ids: array[int], state: bytes) -> bytearray:
    """A frame for each delivery. The ids are written into all frames at once, a byte of each at a time."""
    size = _DISPOSITION.size + len(state)
    fields = size - 8 - 5  # behind the header, the descriptor, the constructor of the list and its size
    one = _DISPOSITION.pack(size, 2, 0, channel, b"\x00\x53\x15", 0xC0, fields, 5, 0x41, 0x70, 0, 0x70, 0, 0x42) + state
    frames = bytearray(one * len(delivery_ids))
    numbers = array("I", delivery_ids)
    if sys.byteorder == "little":
        numbers.byteswap()
    for place in range(numbers.itemsize):
        bytes_there = numbers.tobytes()[place :: numbers.itemsize]
        frames[_FIRST_AT + place :: size] = frames[_LAST_AT + place :: size] = bytes_there
    return frames


class Answers:
    """How many more messages are to be answered as settled, of one receiver or of several that share this."""

    def __init__(self) -> None:
        self._wanted = 0
        self._none_left = asyncio.Event()
        self._error: ServiceError | None = None

    async def wait(self, count: int) -> None:
        """Wait until so many more messages were received, settled, and answered. Raises ServiceError: a link ended."""
        self._wanted += count
        self._none_left.clear()
        if self._wanted > 0 and self._error is None:
            await self._none_left.wait()
        if self._error is not None:
            raise self._error

    def end(self, error: ServiceError) -> None:
        """A receiver is over: no more answers come."""
        self._error = error
        self._none_left.set()

    def came(self, count: int) -> None:
        self._wanted -= count
        if self._wanted <= 0:
            self._none_left.set()


class Settler(LinkUser):
    """A receiver that settles each message in the turn in which it comes.

    It writes these frames itself: an engine's bookkeeping for each would be the generator's cost, not the server's.
    """

    def __init__(
        self,
        connection: Connection,
        queue: str,
        came: Callable[[DeliveriesReceived], None] | None = None,
        *,
        outcome: Outcome = COMPLETE,
        session: str | None = None,
        credit: int = CREDIT,
        answers: Answers | None = None,
        settles_second: bool = True,
    ) -> None:
        """came: is told what came, before it is settled. session: the id of one that is held.

        settles_second: False for a broker that knows the other mode alone; it answers each disposition all the same.
        """
        super().__init__(queue)
        self._answer, self._state = type(outcome), encode_composite(outcome)
        self._connection = connection
        self._came = came
        self._credit = credit
        self._answers = answers or Answers()
        name = connection.name_link("settler")
        self._link: ReceiverLink = connection.session.attach_receiver(
            name,
            source=Source(address=queue, filter=None if session is None else {SESSION_FILTER: session}),
            target=Target(address=name),
            snd_settle_mode=0,
            rcv_settle_mode=int(settles_second),
            properties={Symbol("com.microsoft:timeout"): UInt(SESSION_WAIT_MS)},
        )
        connection.register(self._link, self)

    def on_attached(self, event: LinkAttached) -> None:
        super().on_attached(event)
        self._link.grant(self._credit)

    async def settle(self, count: int) -> None:
        """Wait until so many more messages were received, settled, and answered as settled."""
        await self._answers.wait(count)

    def fail(self, error: ServiceError) -> None:
        super().fail(error)
        self._answers.end(error)

    def close(self) -> None:
        self._connection.detach(self._link)

    def on_deliveries(self, event: DeliveriesReceived) -> None:
        if self._came is not None:
            self._came(event)
        delivery_ids = event.rows[D_DELIVERY_ID : event.count * DELIVERY_WIDTH : DELIVERY_WIDTH]
        self._link.session.connection.out += dispositions(self._link.session.channel, delivery_ids, self._state)
        self._top_up()

    def on_answered(self, event: Answered) -> None:
        assert type(event.outcome) is self._answer, event.outcome
        self._answers.came(event.last_id - event.first_id + 1)
        self._top_up()

    def _top_up(self) -> None:
        room = min(self._credit, UNSETTLED_MOST - self._link.unsettled_count)
        if self._link.credit * 2 <= room:
            self._link.grant(room)
        self._connection.wake()
