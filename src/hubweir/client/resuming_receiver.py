"""A receiver that survives its connection: attaches again behind the last event that it gave."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from hubweir.client.connection import Connection
from hubweir.client.event_run import EventRun
from hubweir.client.lasting_connection import LastingConnection
from hubweir.client.receiver import Receiver, ReceiverOptions, address_of
from hubweir.errors import LINK_STOLEN, ServiceError
from hubweir.event_hub.event_position import EventPosition, PositionKind


class ResumingReceiver:
    """Reads one partition, each event once and in order, for one caller at a time."""

    def __init__(
        self,
        connection: LastingConnection,
        hub: str,
        partition_id: str,
        *,
        group: str,
        options: ReceiverOptions,
    ) -> None:
        self.partition_id = partition_id
        self.position = options.position  # from here on, and so many events, are left to be read
        self._limit = options.limit
        self._options = options
        self._connection = connection
        self._hub = hub
        self._address = address_of(hub, group, partition_id)
        self._receiver: Receiver | None = None
        self._told: Receiver | None = None  # whose end was raised: the next call attaches

    async def open(self) -> None:
        """Attach now, not with the first receive: from here on the latest position is fixed, and an epoch is held."""
        await self._connection.retried(self._attached)

    async def receive(self, *, max_wait_s: float) -> EventRun | None:
        """The next events, or None when none came in time; waits between tries are not counted.

        ServiceError: LINK_STOLEN another reader took the partition; EVENTS_LOST stored events are damaged, once: the
        next call gives what is behind them; ARGUMENT_ERROR the partition ends before the position; or what the last
        try ended with.
        """

        async def step(connection: Connection) -> EventRun | None:
            receiver = await self._attached(connection)
            try:
                run = await receiver.receive(max_wait_s=max_wait_s)
            except ServiceError:
                self._told = receiver
                raise
            self.position = receiver.position
            if run is not None and self._limit is not None:
                self._limit = max(0, self._limit - run.delivery_count)
            return run

        return await self._connection.retried(step)

    async def receive_runs(self, wanted: int, *, max_wait_s: float) -> list[EventRun]:
        """Runs with `wanted` events or more in all, or fewer when no further one came in time; empty when none did.

        For who works on many events at once: one wait for all of them, not one for what each read brought. Errors as
        of `receive`, but never when there are events to give: then the next call raises. Cancelled, it has given none:
        the next call begins with the same event.
        """
        runs: list[EventRun] = []
        events = 0
        while events < wanted:
            try:
                run = await self.receive(max_wait_s=max_wait_s)
            except ServiceError:
                if not runs:
                    raise
                break
            except asyncio.CancelledError:
                await self._go_back_to(runs)
                raise
            if run is None:
                break
            runs.append(run)
            events += run.delivery_count
        return runs

    async def _go_back_to(self, runs: list[EventRun]) -> None:
        """Nobody gets these runs: attach again in front of them."""
        if runs:
            await self.close()
            self.position = EventPosition(PositionKind.SEQUENCE_NUMBER, runs[0].sequence_numbers()[0], True)
            if self._limit is not None:
                self._limit += sum(run.delivery_count for run in runs)

    @property
    def is_stolen(self) -> bool:
        """Another reader took the partition. What came before is still given, and that reader may get it, too."""
        error = None if self._receiver is None else self._receiver.error
        return error is not None and error.condition is LINK_STOLEN

    async def close(self) -> None:
        """Detach; `position` says where to go on. A receive that follows attaches again there."""
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            await receiver.close()

    async def _attached(self, connection: Connection) -> Receiver:
        """The link of now, attached if it is not. One that is over still gives what came before its end."""
        known = self._receiver
        if known is not None and (known.error is None or known.has_events):
            return known
        end = None if known is None else known.error
        if end is not None and not end.condition.retriable and self._told is not known:  # it came between two calls
            self._told = known
            raise end
        if self.position.kind is PositionKind.LATEST:
            await self._fix_latest(connection)
        rest = replace(self._options, position=self.position, limit=self._limit)
        self._receiver = await Receiver.open(connection, self._address, rest)
        return self._receiver

    async def _fix_latest(self, connection: Connection) -> None:
        """Turn "what comes from now on" into a number: a second attach must not skip what came in between."""
        state = await self._connection.management(connection).partition(self._hub, self.partition_id)
        self.position = EventPosition(PositionKind.SEQUENCE_NUMBER, state.last_sequence_number)
