"""Hands the events of one owned partition to the handler, and writes checkpoints, until it is lost or stopped.

At no time are more than `checkpoint_every` events handled, or being handled, and not marked: the reader's credit is no
larger than that, and a run that would go over it waits for a checkpoint. That is what comes again after a failure. A
handler that raises gets the same run again, after a wait that grows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from random import Random

from hubweir.client.event_hub_client import EventHubClient
from hubweir.client.event_run import Event, EventRun
from hubweir.client.partition_context import PartitionContext
from hubweir.client.processor_options import CloseReason, Handlers, ProcessorOptions
from hubweir.client.receiver import ReceiverOptions
from hubweir.client.resuming_receiver import ResumingReceiver
from hubweir.drivers.tasks import Tasks
from hubweir.errors import LINK_STOLEN, ServiceError
from hubweir.event_hub.event_position import EventPosition, PositionKind

# A partition that has been quiet for this long gets its checkpoint; nothing is waited for longer.
QUIET_S = 1.0
# Of the readers: equal ones displace one another, as those of the official processors do.
OWNER_LEVEL = 0


class PartitionPump:
    """Runs from `start` until `stop`, or until another reader took the partition (`is_over`)."""

    def __init__(
        self, client: EventHubClient, context: PartitionContext, handlers: Handlers, options: ProcessorOptions
    ) -> None:
        self.context = context
        self.is_over = False
        self._client = client
        self._handlers = handlers
        self._options = options
        self._handled: Event | None = None  # the last that the handler was done with
        self._random = Random()
        self._failed = 0  # tries in a row
        self._stopping = False
        self._handling = False
        self._rested = asyncio.Event()
        self._tasks = Tasks(f"partition {context.partition_id} of {context.name.hub}")

    def start(self) -> None:
        """Begin, behind the stored checkpoint."""
        self._tasks.start(self._run(), name="pump")

    async def stop(self, reason: CloseReason) -> None:
        """Let the handler finish within grace_s, mark what it did if the partition is still ours, and end."""
        self._stopping = True
        if reason is CloseReason.OWNERSHIP_LOST:
            self.context.is_owned = False
        if self._handling:
            try:
                async with asyncio.timeout(self._options.grace_s):
                    await self._rested.wait()
            except TimeoutError:
                await self._handlers.on_error(
                    self.context,
                    TimeoutError(f"the handler was cancelled: it did not end within {self._options.grace_s} s"),
                )
        finished = not self._handling
        await self._tasks.stop()
        if not self.is_over:
            await self._close(reason, mark=finished)

    async def _run(self) -> None:
        await self._told(self._handlers.on_claimed(self.context))
        while not self._stopping:
            try:
                await self._pump()
            except ServiceError as error:
                if error.condition is LINK_STOLEN:
                    self.context.is_owned = False
                    await self._in_peace(self._close(CloseReason.OWNERSHIP_LOST, mark=False))
                    return
                await self._failure(error)
            except Exception as error:  # whatever a handler or a foreign store raises: told, and tried again
                await self._failure(error)

    async def _failure(self, error: Exception) -> None:
        self._failed += 1
        await self._handlers.on_error(self.context, error)
        if not self._stopping:
            await asyncio.sleep(self._client.retry.wait_s(self._failed, self._random))

    async def _pump(self) -> None:
        """Read and handle until something fails or the pump is stopped."""
        receiver = await self._open()
        try:
            while not self._stopping:
                run = await receiver.receive(max_wait_s=QUIET_S)
                if receiver.is_stolen:
                    # Events that wait here are the new owner's now.
                    raise ServiceError(LINK_STOLEN, f"partition {self.context.partition_id} was taken over")
                await self._in_peace(self._quiet() if run is None else self._handle(run))
                self._failed = 0
        finally:
            await receiver.close()

    async def _open(self) -> ResumingReceiver:
        """Attach behind the checkpoint as it is once the former owner was displaced: it can have moved until then."""
        position = await self.context.stored_position() if self._handled is None else _behind(self._handled)
        if position is None and self._options.position.kind is PositionKind.LATEST:
            await self._mark_latest()
            position = await self.context.stored_position()
        receiver = self._receiver(position or self._options.position)
        await receiver.open()
        if self._handled is None:
            moved = await self.context.stored_position()
            if moved is not None and moved != position:
                await receiver.close()
                receiver = self._receiver(moved)
                await receiver.open()
        return receiver

    def _receiver(self, position: EventPosition) -> ResumingReceiver:
        credit = min(self._options.credit, self._options.checkpoint_every or self._options.credit)
        options = ReceiverOptions(position=position, epoch=OWNER_LEVEL, credit=credit)
        return self._client.receiver(self.context.partition_id, options, group=self.context.name.group)

    async def _mark_latest(self) -> None:
        """Store where "from now on" begins: who takes over before the first checkpoint must not begin later."""
        state = await self._client.partition(self.context.partition_id)
        await self.context.mark(state.last_sequence_number, state.last_offset)

    async def _handle(self, run: EventRun) -> None:
        context, every = self.context, self._options.checkpoint_every
        first, last = run[0], run[run.count - 1]
        if every is not None and context.unmarked_count + run.count > every:
            await self._mark()
        context.give(first, last)
        await self._handlers.on_events(context, run)
        self._handled = last
        if every is not None and context.unmarked_count >= every:
            await self._mark()

    async def _mark(self) -> None:
        """Store how far the handler is, if that is ours to say and not stored yet."""
        if self._handled is not None and self.context.is_owned and self.context.unmarked(self._handled):
            await self.context.checkpoint(self._handled)

    async def _quiet(self) -> None:
        if self._options.checkpoint_every is not None:
            await self._mark()

    async def _in_peace(self, step: Awaitable[None]) -> None:
        """Do a step that `stop` waits for."""
        self._handling = True
        self._rested.clear()
        try:
            await step
        finally:
            self._handling = False
            self._rested.set()

    async def _close(self, reason: CloseReason, *, mark: bool) -> None:
        self.is_over = True
        if mark and reason is CloseReason.SHUTDOWN:
            await self._told(self._quiet())
        self.context.is_owned = False
        await self._told(self._handlers.on_closed(self.context, reason))

    async def _told(self, step: Awaitable[None]) -> None:
        """Do a step whose failure changes nothing here but is told."""
        try:
            await step
        except Exception as error:  # a handler's or a foreign store's
            await self._handlers.on_error(self.context, error)


def _behind(event: Event) -> EventPosition:
    return EventPosition(PositionKind.SEQUENCE_NUMBER, event.sequence_number)
