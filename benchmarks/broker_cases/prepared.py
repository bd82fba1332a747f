"""A load generator that costs little, so that a rate says what the service does and not what its clients do.

A sender writes the frames of its batch once; each send copies them and puts its delivery id in. A reader counts events
as they come and opens none. What the service gets and answers is the same as from any client: the engine of
hubweir.client keeps credit, windows and outcomes.
"""

from __future__ import annotations

from struct import Struct

from hubweir.amqp.messaging.annotations import SELECTOR_FILTER
from hubweir.amqp.messaging.batch import BATCH_FORMAT
from hubweir.amqp.messaging.outcome import Accepted
from hubweir.amqp.messaging.terminus import Source, Target
from hubweir.amqp.transport.events import CreditGranted, DeliveriesReceived, LinkAttached, Settled
from hubweir.amqp.transport.frame import split_transfer
from hubweir.amqp.transport.performatives import Transfer
from hubweir.amqp.transport.receiver_link import ReceiverLink
from hubweir.amqp.transport.sender_link import SenderLink
from hubweir.amqp.types.values import Described
from hubweir.client.connection import Connection
from hubweir.client.link_user import LinkUser
from hubweir.errors import ServiceError
from hubweir.event_hub.event_position import LATEST, selector_of
from queue_cases.settler import Answers

READER_CREDIT = 10_000
_SETTLED = 1
_ID = Struct(">I")
# Two ids of which no byte is the same: where frames with the one differ from frames with the other stands the id.
_ONE_ID, _OTHER_ID = 0x01010101, 0x02020202


class PreparedFrames:
    """The frames of one delivery. count: of frames. data: with an id in it that is none of the link's."""

    def __init__(self, link: SenderLink, payload: bytes) -> None:
        """link: is attached."""
        one, other = (self._frames(link, payload, number) for number in (_ONE_ID, _OTHER_ID))
        self.count = len(one)
        self.data = b"".join(one)
        differ = [at for at, (mine, its) in enumerate(zip(self.data, b"".join(other), strict=True)) if mine != its]
        self._ids_at = differ[:: _ID.size]

    @staticmethod
    def _frames(link: SenderLink, payload: bytes, delivery_id: int) -> list[bytearray]:
        transfer = Transfer(
            handle=link.handle,
            delivery_id=delivery_id,
            delivery_tag=_ID.pack(delivery_id),
            message_format=BATCH_FORMAT,
            settled=False,
        )
        connection = link.session.connection
        return split_transfer(transfer, memoryview(payload), link.session.channel, connection.outgoing_frame_limit)

    def write(self, out: bytearray, delivery_id: int) -> None:
        """Append the frames with this id."""
        start = len(out)
        out += self.data
        for at in self._ids_at:
            _ID.pack_into(out, start + at, delivery_id)


class PreparedSender(LinkUser):
    """Sends one batch again and again."""

    def __init__(self, connection: Connection, address: str, payload: bytes) -> None:
        super().__init__(address)
        self._connection = connection
        self._payload = payload
        self._frames: PreparedFrames | None = None
        self._unsent = self._under_way = self._most_under_way = 0
        self._answers = Answers()
        name = connection.name_link("sender")
        self._link: SenderLink = connection.session.attach_sender(
            name, source=Source(address=name), target=Target(address=address)
        )
        connection.register(self._link, self)

    @classmethod
    async def open(cls, connection: Connection, address: str, payload: bytes) -> PreparedSender:
        """Prove the right and attach."""
        await connection.authorization.authorize(address)
        self = cls(connection, address, payload)
        await self.wait_attached(connection.timeout_s)
        self._frames = PreparedFrames(self._link, payload)
        return self

    async def send(self, times: int, *, in_flight: int) -> None:
        """Send the batch so often, with so many on their way, until all are accepted."""
        self._unsent, self._most_under_way = times, in_flight
        self._send()
        await self._answers.wait(times)

    def on_credit(self, event: CreditGranted) -> None:
        self._send()

    def on_turn_end(self) -> None:
        self._send()

    def on_settled(self, event: Settled) -> None:
        assert isinstance(event.outcome, Accepted), event.outcome
        count = event.last_id - event.first_id + 1
        self._under_way -= count
        self._answers.came(count)

    def fail(self, error: ServiceError) -> None:
        super().fail(error)
        self._answers.end(error)

    def _send(self) -> None:
        frames, link = self._frames, self._link
        if not self._unsent or frames is None:
            return
        out, session = link.session.connection.out, link.session
        while self._unsent and self._under_way < self._most_under_way and link.sendable:
            start, delivery_id = len(out), session.next_delivery_id
            frames.write(out, delivery_id)
            # As SenderLink.send_run ends: frames beyond the window wait in the session.
            link._started(delivery_id, 1, frames.count, start, settled=False)
            self._unsent -= 1
            self._under_way += 1
        self._connection.wake()


class EventCounter(LinkUser):
    """Reads a partition from now on, and counts."""

    def __init__(self, connection: Connection, address: str, answers: Answers) -> None:
        """answers: is told how many events came; may be shared."""
        super().__init__(address)
        self._connection = connection
        self._answers = answers
        name = connection.name_link("receiver")
        self._link: ReceiverLink = connection.session.attach_receiver(
            name,
            source=Source(address=address, filter={SELECTOR_FILTER: Described(SELECTOR_FILTER, selector_of(LATEST))}),
            target=Target(address=name),
            snd_settle_mode=_SETTLED,
        )
        connection.register(self._link, self)

    @classmethod
    async def open(cls, connection: Connection, address: str, answers: Answers) -> EventCounter:
        """Prove the right and attach."""
        await connection.authorization.authorize(address)
        self = cls(connection, address, answers)
        await self.wait_attached(connection.timeout_s)
        return self

    def on_attached(self, event: LinkAttached) -> None:
        super().on_attached(event)
        self._link.grant(READER_CREDIT)

    def on_deliveries(self, event: DeliveriesReceived) -> None:
        self._answers.came(event.count)
        if self._link.credit * 2 <= READER_CREDIT:
            self._link.grant(READER_CREDIT)

    def fail(self, error: ServiceError) -> None:
        super().fail(error)
        self._answers.end(error)
