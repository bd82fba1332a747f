"""Reading: one link to a partition of a consumer group, events in runs, credit kept topped up by what was taken.

The receiver remembers the last sequence number that it gave, so a caller whose connection ended opens the next one
from `position`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hubweir.amqp.messaging.annotations import EPOCH, EVENT_LIMIT, SELECTOR_FILTER, STORED_BATCHES
from hubweir.amqp.messaging.terminus import Source, Target
from hubweir.amqp.transport.events import DeliveriesReceived, LinkAttached
from hubweir.amqp.transport.receiver_link import ReceiverLink
from hubweir.amqp.types.values import Described, Long, Symbol
from hubweir.client.event_run import EventRun
from hubweir.client.link_user import LinkUser
from hubweir.client.stored_run import StoredRun
from hubweir.errors import DETACH_FORCED, ServiceError
from hubweir.event_hub.event_position import EARLIEST, EventPosition, PositionKind, selector_of
from hubweir.kernels.contract import D_LENGTH, D_START, DELIVERY_WIDTH

if TYPE_CHECKING:
    from hubweir.client.connection import Connection

# Deliveries that the server may have under way to us. At 200 bytes an event this is about 2 MB.
DEFAULT_CREDIT = 10_000
# A delivery of stored batches is a frame of at most 64 KiB: it is given the place of this many events.
EVENTS_A_DELIVERY = 250
_SETTLED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverOptions:
    """Where a reader begins, and how it reads.

    epoch: owner level of an exclusive reader, or None. credit: about how many events may be under way. limit: how many
    events are wanted in all, None for no end; no more than these are ever under way. stored_batches: have events come
    as they are stored (StoredRun), for who makes Arrow columns of them; where the service has no such thing, or credit
    is for less than one delivery of them, events come as ever.
    """

    position: EventPosition = EARLIEST
    epoch: int | None = None
    credit: int = DEFAULT_CREDIT
    limit: int | None = None
    stored_batches: bool = False


# From the earliest event on, without an end.
ALL_EVENTS = ReceiverOptions()


class Receiver(LinkUser):
    """One receiver link; events come settled, nothing is answered a delivery."""

    def __init__(self, connection: Connection, address: str, options: ReceiverOptions = ALL_EVENTS) -> None:
        """address: `hub/ConsumerGroups/group/Partitions/id`, see address_of."""
        super().__init__(address)
        self.position = options.position
        self._connection = connection
        self._credit = options.credit
        self._ungranted = options.limit  # of the limit: deliveries for which no credit was granted yet
        self._untaken = 0  # deliveries that came and that nobody has taken yet
        self._runs: deque[EventRun] = deque()
        self._came = asyncio.Event()
        self._is_batched = False
        self._desires_batches = options.stored_batches and options.credit >= EVENTS_A_DELIVERY
        properties: dict[Symbol, object] = {} if options.epoch is None else {EPOCH: Long(options.epoch)}
        if self._desires_batches and options.limit is not None:
            properties[EVENT_LIMIT] = Long(options.limit)
        name = connection.name_link("receiver")
        selector = Described(SELECTOR_FILTER, selector_of(options.position))
        self._link: ReceiverLink = connection.session.attach_receiver(
            name,
            source=Source(address=address, filter={SELECTOR_FILTER: selector}),
            target=Target(address=name),
            snd_settle_mode=_SETTLED,
            properties=properties or None,
            desired_capabilities=(STORED_BATCHES,) if self._desires_batches else None,
        )
        connection.register(self._link, self)

    @classmethod
    async def open(cls, connection: Connection, address: str, options: ReceiverOptions = ALL_EVENTS) -> Receiver:
        """Prove the right and attach; ServiceError when either is refused."""
        await connection.authorization.authorize(address)
        self = cls(connection, address, options)
        try:
            await self.wait_attached(connection.timeout_s)
        except BaseException:  # also when the caller gave up: a link that nobody reads would keep its place
            await self.close()
            raise
        return self

    @property
    def has_events(self) -> bool:
        """Whether receive would return at once with events."""
        return bool(self._runs)

    async def receive(self, *, max_wait_s: float) -> EventRun | None:
        """The next events, as many as one read brought; None when none came in time. ServiceError when the link is
        over and everything that came before was taken.
        """
        if not self._runs and self.error is None:
            self._came.clear()
            try:
                async with asyncio.timeout(max_wait_s):  # wait_for of 3.11 forgets some cancellations
                    await self._came.wait()
            except TimeoutError:
                return None
        if not self._runs:
            if self.error is not None:
                raise self.error
            return None
        run = self._runs.popleft()
        self._untaken -= run.credit_count
        self._top_up()
        self.position = EventPosition(PositionKind.SEQUENCE_NUMBER, run.last_sequence_number, False)
        return run

    async def close(self) -> None:
        """Detach. Events that came and were not taken are dropped; `position` says where to go on."""
        self._connection.detach(self._link)
        self.fail(ServiceError(DETACH_FORCED, f"the link to {self.what} was closed here"))

    def on_attached(self, event: LinkAttached) -> None:
        super().on_attached(event)
        offered = None if self._link.attach is None else self._link.attach.offered_capabilities
        if self._desires_batches and STORED_BATCHES in (offered or ()):
            self._is_batched = True
            # The service knows the limit, and a delivery is not an event.
            self._credit, self._ungranted = max(1, self._credit // EVENTS_A_DELIVERY), None
        self._top_up()

    def on_deliveries(self, event: DeliveriesReceived) -> None:
        data = kept_bytes(event)
        if not self._is_batched:
            self._runs.append(EventRun(data, event.rows, event.count))
        elif self.error is None:
            try:
                self._runs.append(StoredRun(data, event.rows, event.count))
            except ServiceError as error:
                self._connection.detach(self._link)
                self.fail(error)
                return
        self._untaken += event.count
        self._top_up()
        self._came.set()

    def fail(self, error: ServiceError) -> None:
        super().fail(error)
        self._came.set()

    def _top_up(self) -> None:
        """Grant again when half of the credit is spent, less what waits here: so memory stays bounded."""
        wanted = self._credit - self._untaken
        if self._ungranted is not None:
            wanted = min(wanted, self._link.credit + self._ungranted)
        if self.error is None and self._link.credit * 2 <= wanted and self._link.credit < wanted:
            if self._ungranted is not None:
                # By what is added: the engine has counted deliveries that we have not been told of yet.
                self._ungranted -= wanted - self._link.credit
            self._link.grant(wanted)
            self._connection.wake()


def kept_bytes(event: DeliveriesReceived) -> bytes:
    """The bytes that the event's rows point into: themselves where they are nobody else's, else one copy for all."""
    owner = event.data.obj
    if isinstance(owner, bytes) and len(owner) == len(event.data):
        return owner
    # They are the driver's until we return. What stands behind the last delivery is not ours.
    last = (event.count - 1) * DELIVERY_WIDTH
    return bytes(event.data[: event.rows[last + D_START] + event.rows[last + D_LENGTH]])


def address_of(hub: str, group: str, partition_id: str) -> str:
    """The address that a receiver of this partition attaches to."""
    return f"{hub}/ConsumerGroups/{group}/Partitions/{partition_id}"
