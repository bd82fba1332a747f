"""A NumberedSender for code without an event loop: opening waits, each submitted batch has a future of its own."""

from __future__ import annotations

from concurrent.futures import Future

from hubweir.client.event_batch import EventBatch
from hubweir.client.loop_thread import LoopThread
from hubweir.client.numbered_sender import NumberedSender
from hubweir.errors import ServiceError


class BlockingNumberedSender:
    """See NumberedSender, which says what the numbers mean. To be used by one thread at a time."""

    def __init__(self, thread: LoopThread, sender: NumberedSender) -> None:
        self._thread = thread
        self._sender = sender

    @property
    def epoch(self) -> int:
        return self._sender.epoch

    @property
    def last_number(self) -> int:
        """Of the last event that was stored when it was opened; 0 for none."""
        return self._sender.last_number

    @property
    def digest(self) -> int:
        """As it came with that event."""
        return self._sender.digest

    @property
    def error(self) -> ServiceError | None:
        """Why the link is over; None while it stands."""
        return self._sender.error

    @property
    def max_message_size(self) -> int:
        """Bytes of data sections that one batch may carry."""
        return self._sender.max_message_size

    def batch(self, *, partition_key: str | None = None) -> EventBatch:
        """An empty batch of the size that the link takes."""
        return self._sender.batch(partition_key=partition_key)

    def submit(self, batch: EventBatch, first_number: int, digest: int) -> Future[None]:
        """Put a batch on its way; result() of the future waits for the outcome, and raises what it ended with."""
        return self.submit_events(batch.events(), first_number, digest, partition_key=batch.partition_key)

    def submit_events(
        self, events: bytes, first_number: int, digest: int, *, partition_key: str | None = None
    ) -> Future[None]:
        """The same for data sections that are encoded already. Order of calls is order of storing."""

        async def sent() -> None:
            await self._sender.submit_events(events, first_number, digest, partition_key=partition_key)

        return self._thread.begin(sent())

    def close(self) -> None:
        """Detach. What is in flight ends unknown."""
        self._thread.run(self._sender.close())
