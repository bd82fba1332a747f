"""Publishing with numbers: for sinks that repeat their work after a failure, and want every row stored once.

    sender = await client.numbered_sender("0", producer_id=4711, round=12)
    rows = rows[sender.last_number:]                # what is stored already is not sent again
    outcome = sender.submit(batch, sender.last_number + 1, digest)
    await outcome

A producer numbers its events from 1 in every *round* of its work, and gives with each batch a *digest* of its own
making: of all its events of the round up to the end of that batch. Whoever opens the same round again is told the last
number and its digest, durably stored, and goes on behind; the link before it may not send any more. A higher round
begins at number 1. When the digest is not that of the same rows made anew, the work was not repeated as it was.

Nothing is resent here. After a refusal (server-busy: wait) what was submitted behind it is refused as out of order:
go back to the first batch that was refused. After an unknown outcome open the round again. The names for rounds are
hubweir's own: at another service `open` raises ServiceError NOT_IMPLEMENTED.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hubweir.amqp.messaging.annotations import (
    IDEMPOTENT_PRODUCER,
    PRODUCER_DIGEST,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    PRODUCER_ROUND,
    PRODUCER_SEQUENCE_NUMBER,
    RESUMING_PRODUCER,
)
from hubweir.amqp.types.values import Int, Long, Short, Symbol
from hubweir.client.event_batch import EventBatch, envelope_head
from hubweir.client.sender import Sender
from hubweir.errors import ARGUMENT_OUT_OF_RANGE, NOT_IMPLEMENTED, ServiceError
from hubweir.event_hub.producer_state import DIGEST_LIMIT, EPOCH_LIMIT, ID_LIMIT, NUMBER_LIMIT, ROUND_LIMIT, check_range

if TYPE_CHECKING:
    from hubweir.client.connection import Connection

# What the numbers take in the head of a batch: the four names, their widest values, the map around them.
NUMBERS_ROOM_BYTES = 256


class NumberedSender:
    """One link of one producer to one partition. last_number, digest: as stored when it was opened; 0 for nothing."""

    def __init__(self, sender: Sender, properties: dict[Symbol, object]) -> None:
        self._sender = sender
        self.producer_id = _integer(properties, PRODUCER_ID)
        self.round = _integer(properties, PRODUCER_ROUND)
        self.epoch = _integer(properties, PRODUCER_EPOCH)
        self.last_number = _integer(properties, PRODUCER_SEQUENCE_NUMBER)
        self.digest = _integer(properties, PRODUCER_DIGEST)

    @classmethod
    async def open(
        cls,
        connection: Connection,
        hub: str,
        partition_id: str,
        *,
        producer_id: int,
        round: int,
        epoch: int | None = None,
    ) -> NumberedSender:
        """Prove the right and attach. epoch None: the service gives one above all before.

        ServiceError: ARGUMENT_OUT_OF_RANGE, NOT_IMPLEMENTED (a service without rounds), PRODUCER_EPOCH_STOLEN (a higher
        round or epoch was there), or what refused the attach.
        """
        check_range("id", producer_id, ID_LIMIT)
        check_range("round", round, ROUND_LIMIT - 1)
        check_range("epoch", epoch, EPOCH_LIMIT)
        address = f"{hub}/Partitions/{partition_id}"
        await connection.authorization.authorize(address)
        asked: dict[Symbol, object] = {
            PRODUCER_ID: Long(producer_id),
            PRODUCER_EPOCH: None if epoch is None else Short(epoch),
            PRODUCER_SEQUENCE_NUMBER: None,
            PRODUCER_ROUND: Long(round),
        }
        sender = Sender(
            connection, address, properties=asked, desired_capabilities=(IDEMPOTENT_PRODUCER, RESUMING_PRODUCER)
        )
        try:
            await sender.wait_attached(connection.timeout_s)
            return cls(sender, _offered(sender))
        except BaseException:  # also when the caller gave up
            await sender.close()
            raise

    @property
    def max_message_size(self) -> int:
        """Bytes of data sections that one batch may carry: what the link takes, less the room for the numbers."""
        return self._sender.max_message_size - NUMBERS_ROOM_BYTES

    @property
    def error(self) -> ServiceError | None:
        """Why the link is over; None while it stands."""
        return self._sender.error

    def batch(self, *, partition_key: str | None = None) -> EventBatch:
        """An empty batch of the size that this link takes."""
        return EventBatch(self.max_message_size, partition_key=partition_key)

    def submit(self, batch: EventBatch, first_number: int, digest: int) -> asyncio.Future[None]:
        """Put a batch on its way: events first_number .. first_number + batch.count - 1, and the digest behind them.

        The future ends when they are stored as the hub's mode says, now or before, or raises: ServiceError as the
        service said, OutcomeUnknown when the link ended first. Order of calls is order of storing.
        """
        return self.submit_events(batch.events(), first_number, digest, partition_key=batch.partition_key)

    def submit_events(
        self, events: bytes, first_number: int, digest: int, *, partition_key: str | None = None
    ) -> asyncio.Future[None]:
        """The same for data sections that are encoded already, each with one whole encoded message."""
        check_range("sequence number", first_number, NUMBER_LIMIT)
        check_range("digest", digest, DIGEST_LIMIT)
        numbers: dict[Symbol | str, object] = {
            PRODUCER_ID: Long(self.producer_id),
            PRODUCER_EPOCH: Short(self.epoch),
            PRODUCER_SEQUENCE_NUMBER: Int(first_number),
            PRODUCER_DIGEST: Long(digest),
        }
        return self._sender.submit_payload(envelope_head(partition_key, numbers) + events)

    async def close(self) -> None:
        """Detach. What is in flight ends unknown."""
        await self._sender.close()


def _offered(sender: Sender) -> dict[Symbol, object]:
    """What the service answered the attach with; NOT_IMPLEMENTED when it knows nothing of rounds."""
    answer = sender.answer
    if answer is None or RESUMING_PRODUCER not in (answer.offered_capabilities or ()):
        text = f"{sender.what} takes no rounds of numbered events: the service does not offer {RESUMING_PRODUCER}"
        raise ServiceError(NOT_IMPLEMENTED, text)
    return answer.properties or {}


def _integer(properties: dict[Symbol, object], name: Symbol) -> int:
    value = properties.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ServiceError(ARGUMENT_OUT_OF_RANGE, f"the service answered the attach with {value!r} for {name}")
    return int(value)
