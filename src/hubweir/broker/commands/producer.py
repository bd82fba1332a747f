"""Idempotent producers of a partition: opened for a link, appending numbered deliveries, closed with the link."""

from __future__ import annotations

from hubweir.broker.commands.command import Answer, Cost, LogCommand, OwnedCommand, answer, command
from hubweir.broker.commands.partition import EventsAppended
from hubweir.broker.commands.process import Done


@answer(71)
class ProducerOpened(Answer, frozen=True):
    """opening_id is the broker's; the others are what the attach is answered with. No crash takes them back.

    digest: as it came with the event of that number; 0 without a round, or when there is none.
    """

    opening_id: int
    producer_id: int
    epoch: int
    sequence_number: int
    digest: int = 0


@command(13, ProducerOpened)
class OpenProducer(OwnedCommand, frozen=True):
    """Hold an idempotent producer of a partition for one link; None where the service is to assign.

    sequence_number: of the last event that the producer sent. Whoever held the producer before may not send any more.
    round: of a sink that resumes, from 0; None for other producers (event_hub/producer_sequence.py).
    """

    producer_id: int | None
    epoch: int | None
    sequence_number: int | None
    round: int | None = None


@command(14, Done, cost=Cost.END)
class CloseProducer(LogCommand, frozen=True):
    """The link is gone. What it sent and was not answered goes on."""

    opening_id: int


@answer(72)
class AlreadyAppended(Answer, frozen=True):
    """All events of the delivery were stored before; nothing was stored now."""


@command(15, EventsAppended, AlreadyAppended)
class AppendNumbered(LogCommand, frozen=True):
    """Store one delivery of an idempotent producer: as AppendEvents, every batch with its producer block.

    Answered EventsAppended, or AlreadyAppended when the same events are stored and durable as the hub's mode says.
    """

    opening_id: int
    run: bytearray
    events: int = 0
    size_bytes: int = 0
