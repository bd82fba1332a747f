"""One receiver link to a queue, a sub-queue or a session: messages in, outcomes out, each answered by the service.

Under peek-lock a message stays locked until its outcome is told here, by its delivery id; several are told in one
disposition where their ids follow each other. What is told is done when the service has answered. Under
receive-and-delete messages come settled, and are gone from the queue.

Without prefetch no message is under way that nobody waits for: a receive grants credit for what it wants, and takes
back (drain) what was not used before it returns.

What is settled in a transaction is settled for both ends of the link. Where the transaction is rolled back, the lock
goes on and the delivery does not: the lock's token settles the message then.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hubweir.amqp.messaging.outcome import DeliveryState, Outcome, Rejected, Released, TransactionalState
from hubweir.amqp.messaging.terminus import Source, Target
from hubweir.amqp.transport.delivery import IdRange, UnsettledRanges
from hubweir.amqp.transport.events import Answered, DeliveriesReceived
from hubweir.amqp.transport.receiver_link import ReceiverLink
from hubweir.amqp.types.values import Symbol
from hubweir.client.link_user import LinkUser, service_error
from hubweir.client.message_run import MessageRun
from hubweir.client.receiver import kept_bytes
from hubweir.errors import DETACH_FORCED, INTERNAL_ERROR, MESSAGE_LOCK_LOST, ServiceError

if TYPE_CHECKING:
    from hubweir.client.connection import Connection

SND_UNSETTLED, SND_SETTLED, RCV_FIRST, RCV_SECOND = 0, 1, 0, 1
# Of messages that may be unsettled on a link: both the service and our engine take no more.
UNSETTLED_LIMIT = 5_000
_RELEASED = Released()


class NotSettled(ServiceError):
    """Some of the messages that were to be settled are not; the others are. delivery_ids: of those that are not."""

    def __init__(self, cause: ServiceError, delivery_ids: list[int], asked: int) -> None:
        told = f"{len(delivery_ids)} of {asked} messages are not settled: {cause.text}" if asked > 1 else cause.text
        super().__init__(cause.condition, told)
        self.delivery_ids = delivery_ids


class SettlementUnknown(ServiceError):
    """The link ended between an outcome and the answer to it: the messages are settled, or not."""

    def __init__(self, cause: ServiceError) -> None:
        super().__init__(cause.condition, f"{cause.text}; whether the messages were settled is not known")


@dataclass(slots=True)
class _Settling:
    """Deliveries whose answers one caller waits for. refused: ids that were answered otherwise, and why first."""

    outcome: Outcome
    txn_id: bytes | None
    done: asyncio.Future[None]
    left: int = 0
    refused: list[int] = field(default_factory=list)
    reason: ServiceError | None = None


class MessageLink(LinkUser):
    """See the module's text. For one caller of `receive` at a time; settlements may overlap."""

    def __init__(
        self,
        connection: Connection,
        address: str,
        *,
        deletes: bool = False,
        prefetch: int = 0,
        filters: dict[Symbol, object] | None = None,
        properties: dict[Symbol, object] | None = None,
    ) -> None:
        """deletes: receive-and-delete. prefetch: how many messages may wait here; 0: none but those asked for."""
        super().__init__(address)
        self.deletes = deletes
        self._connection = connection
        self._prefetch = prefetch
        self._runs: deque[MessageRun] = deque()
        self._untaken = 0  # messages in _runs
        self._changed = asyncio.Event()
        self._is_draining = False
        self._held: UnsettledRanges[MessageLink] = UnsettledRanges()  # not settled, nor about to be
        self._settling: UnsettledRanges[_Settling] = UnsettledRanges()
        self.given_up: dict[int, None] = {}  # the oldest first, whose locks have ended before those of others
        self.name = connection.name_link("messages")
        self._link: ReceiverLink = connection.session.attach_receiver(
            self.name,
            source=Source(address=address, filter=filters),
            target=Target(address=self.name),
            snd_settle_mode=SND_SETTLED if deletes else SND_UNSETTLED,
            rcv_settle_mode=RCV_FIRST if deletes else RCV_SECOND,
            properties=properties,
        )
        connection.register(self._link, self)

    @property
    def attach(self) -> tuple[Source, dict[Symbol, object]]:
        """Source and properties as the service answered the attach."""
        answer = self._link.attach
        return self._link.source or Source(), (answer.properties if answer else None) or {}

    @property
    def has_messages(self) -> bool:
        """Whether messages came that nobody has taken."""
        return bool(self._runs)

    async def wait_opened(self, timeout_s: float) -> None:
        """Wait for the answer to the attach; when there is none, or a refusal, the link is given up."""
        try:
            await self.wait_attached(timeout_s)
        except BaseException:  # also when the caller gave up: a link that nobody reads would lock messages
            self._connection.detach(self._link)
            raise
        self._top_up()

    async def receive(self, most: int, *, max_wait_s: float) -> MessageRun:
        """Up to `most` messages as soon as there is one; an empty run when none came in time.

        ServiceError when the link is over and everything that came before was taken.
        """
        if not self._runs and self.error is None:
            await self._drain_ended()  # of a receive that was cancelled
            self._ask(most)
            try:
                async with asyncio.timeout(max_wait_s):
                    while not self._runs and self.error is None:
                        await self._next_change()
            except TimeoutError:
                pass
            except asyncio.CancelledError:
                self._take_credit_back()
                raise
            self._take_credit_back()
            await self._drain_ended()
        if not self._runs and self.error is not None:
            raise self.error
        return self._taken(most)

    async def settle(self, spans: Iterable[IdRange[None]], outcome: Outcome, *, txn_id: bytes | None = None) -> None:
        """Tell the outcome of deliveries (spans of their ids) and wait until the service has answered for all of them.

        txn_id: of the transaction of which that is a part.

        NotSettled: some are not settled (lock lost, settled before); SettlementUnknown: the link ended meanwhile;
        another ServiceError: it had ended before, and nothing was told.
        """
        if self.error is not None:
            raise self.error
        settling = _Settling(outcome, txn_id, asyncio.get_running_loop().create_future())
        asked = 0
        for span in spans:
            asked += span.count
            settling.left += span.count
            for held in self._held.take_ranges(span.first, span.last):
                settling.left -= held.count
                self._tell(held, settling)
        missing = settling.left
        settling.left = asked - missing
        self._connection.wake()
        if settling.left:
            await settling.done
        if missing and settling.reason is None:
            settling.reason = ServiceError(MESSAGE_LOCK_LOST, "a message was settled before, or came on another link")
        if settling.reason is not None:
            raise NotSettled(settling.reason, settling.refused, asked)

    def gave_up(self, spans: Iterable[IdRange[None]]) -> None:
        for span in spans:
            self.given_up.update(dict.fromkeys(_ids_of(span)))
        while len(self.given_up) > UNSETTLED_LIMIT:
            del self.given_up[next(iter(self.given_up))]

    async def close(self) -> None:
        """Give back what came and was not taken, and detach. What was taken stays locked until its lock ends."""
        if not self.deletes:
            self._drain()
            await self._drain_ended()
            for span in (span for run in self._runs for span in run.spans()):
                self._link.settle(span.first, span.last, _RELEASED)
        self._runs.clear()
        self._connection.detach(self._link)
        self.fail(ServiceError(DETACH_FORCED, f"the link to {self.what} was closed here"))

    def on_deliveries(self, event: DeliveriesReceived) -> None:
        run = MessageRun(kept_bytes(event), event.rows, self)
        self._runs.append(run)
        self._untaken += event.count
        if not self.deletes:
            for span in run.spans():
                self._held.add(span.first, span.count, self)
        self._changed.set()

    def on_answered(self, event: Answered) -> None:
        for span in self._settling.take_ranges(event.first_id, event.last_id):
            settling = span.owner
            settling.left -= span.count
            refusal = _refusal(settling.outcome, event.outcome, self.what)
            if refusal is not None:
                settling.reason = settling.reason or refusal
                settling.refused += _ids_of(span)
            if not settling.left and not settling.done.done():
                settling.done.set_result(None)

    def on_drained(self) -> None:
        self._is_draining = False
        self._changed.set()

    def fail(self, error: ServiceError) -> None:
        super().fail(error)
        unknown, self._settling = self._settling, UnsettledRanges()
        for span in unknown:
            if not span.owner.done.done():
                span.owner.done.set_exception(SettlementUnknown(error))
        self._changed.set()

    def _tell(self, held: IdRange[MessageLink], settling: _Settling) -> None:
        self._settling.add(held.first, held.count, settling)
        outcome, txn_id = settling.outcome, settling.txn_id
        state = outcome if txn_id is None else TransactionalState(txn_id=txn_id, outcome=outcome)
        self._link.settle(held.first, held.last, state, settled=False)

    # Credit

    def _ask(self, most: int) -> None:
        """Grant credit for what a receive wants, no more than may be unsettled."""
        wanted = min(max(most, self._prefetch), self._room)
        if wanted > self._link.credit:
            self._grant(wanted)

    @property
    def _room(self) -> int:
        return UNSETTLED_LIMIT if self.deletes else UNSETTLED_LIMIT - self._link.unsettled_count

    def _top_up(self) -> None:
        """Of a link that prefetches: grant again when half of the credit is spent, less what waits here."""
        wanted = min(self._prefetch - self._untaken, self._room)
        if self._prefetch and self.error is None and wanted > 0 and self._link.credit * 2 <= wanted:
            self._grant(wanted)

    def _grant(self, credit: int) -> None:
        self._link.grant(credit)
        self._connection.wake()

    def _take_credit_back(self) -> None:
        """Leave no credit behind, unless the link prefetches: nothing is to be locked that nobody waits for."""
        if not self._prefetch:
            self._drain()

    def _drain(self) -> None:
        if self.error is None and self._link.credit:
            self._is_draining = True
            self._link.grant(self._link.credit, drain=True)
            self._connection.wake()

    async def _drain_ended(self) -> None:
        try:
            async with asyncio.timeout(self._connection.timeout_s):
                while self._is_draining and self.error is None:
                    await self._next_change()
        except TimeoutError:
            self._is_draining = False  # a service that answers no drain: what still comes is for the next receive

    async def _next_change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def _taken(self, most: int) -> MessageRun:
        taken: list[MessageRun] = []
        left = most
        while self._runs and left > 0:
            run = self._runs.popleft()
            if len(run) > left:
                self._runs.appendleft(run.part(left, len(run)))
                run = run.part(0, left)
            taken.append(run)
            left -= len(run)
            self._untaken -= len(run)
        self._top_up()
        return MessageRun.joined(taken)


def _ids_of(span: IdRange[Any]) -> list[int]:
    return [(span.first + place) & 0xFFFFFFFF for place in range(span.count)]


def _refusal(told: Outcome, answer: DeliveryState | None, what: str) -> ServiceError | None:
    """Why the answer to an outcome means that it was not done; None when it was."""
    if isinstance(answer, TransactionalState):
        answer = answer.outcome
    if isinstance(answer, Rejected) and answer.error is not None:
        error = service_error(answer.error, f"{what} refused to settle a message")
        return ServiceError(error.condition, answer.error.description or error.text)
    if answer is None or type(answer) is type(told):
        return None
    return ServiceError(INTERNAL_ERROR, f"{what} settled a message as {answer!r}, which was told {told!r}")
