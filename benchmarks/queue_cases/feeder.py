"""Sends the same message again and again, each in a transfer of its own, many on their way."""

from __future__ import annotations

import asyncio
from struct import Struct

from hubweir.amqp.messaging.outcome import Accepted
from hubweir.amqp.messaging.terminus import Source, Target
from hubweir.amqp.transport.events import CreditGranted, Settled
from hubweir.client.connection import Connection
from hubweir.client.link_user import LinkUser
from hubweir.errors import ServiceError

# The head of a frame with a transfer of a whole message: handle, delivery id, tag, format 0, not settled.
_TRANSFER = Struct(">IBBH3s 3B 2B BI 2BI B B")
_FIELDS_BYTES = 1 + 2 + 5 + 6 + 1 + 1  # the number of fields, and what stands behind it


class Feeder(LinkUser):
    """A sender whose messages each wait for the broker's answer.

    It writes its frames itself, as Settler does: a future for each message, and an engine's steps, would be the
    generator's cost, not the server's.
    """

    def __init__(self, connection: Connection, address: str, message: bytes, *, in_flight: int) -> None:
        super().__init__(address)
        self._connection, self._message, self._in_flight = connection, message, in_flight
        name = connection.name_link("feeder")
        self._link = connection.session.attach_sender(name, source=Source(address=name), target=Target(address=address))
        connection.register(self._link, self)
        self._unsent = self._unanswered = 0
        self._done = asyncio.Event()

    async def send(self, count: int) -> None:
        """Send so many more, until all are accepted."""
        self._unsent += count
        self._unanswered += count
        self._done.clear()
        self._send_some()
        await self._done.wait()
        if self.error is not None:
            raise self.error

    def on_credit(self, event: CreditGranted) -> None:
        self._send_some()

    def on_turn_end(self) -> None:
        self._send_some()

    def on_settled(self, event: Settled) -> None:
        assert isinstance(event.outcome, Accepted), event.outcome
        self._unanswered -= event.last_id - event.first_id + 1
        if not self._unanswered:
            self._done.set()

    def fail(self, error: ServiceError) -> None:
        super().fail(error)
        self._done.set()

    def _send_some(self) -> None:
        link, on_their_way = self._link, self._unanswered - self._unsent
        some = min(self._unsent, self._in_flight - on_their_way, link.sendable, link.session.window.remote_window)
        if some <= 0:
            return
        out, first_id = link.session.connection.out, link.session.next_delivery_id
        start, size, fields = len(out), _TRANSFER.size + len(self._message), _FIELDS_BYTES
        channel, handle, message = link.session.channel, link.handle, self._message
        out += b"".join(
            [
                _TRANSFER.pack(
                    size, 2, 0, channel, b"\x00\x53\x14", 0xC0, fields, 5, 0x52, handle, 0x70, delivery_id,
                    0xA0, 4, delivery_id, 0x43, 0x42,
                )
                + message
                for delivery_id in range(first_id, first_id + some)
            ]
        )  # fmt: skip
        link._started(first_id, some, some, start, settled=False)
        self._unsent -= some
        self._connection.wake()
