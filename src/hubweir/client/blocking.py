"""The client for code without an event loop: the same objects, each call waits for its result.

    with BlockingEventHubClient.from_connection_string(text, "orders") as client:
        client.sender().send([b"one", b"two"])
        for event in client.receiver("0").receive(max_wait_s=5) or ():
            print(event.sequence_number, event.body)

One client has one loop on one thread. Its objects may be used from any number of threads; a receiver and a numbered
sender by one at a time. What the calls take, mean and raise is told where the coroutines are: event_hub_client.py and
what it names. How a call is made from a coroutine is loop_calls.py.
"""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path

from hubweir.client.connection import DEFAULT_TIMEOUT_S
from hubweir.client.event_batch import EventBatch
from hubweir.client.event_hub_client import EventHubClient
from hubweir.client.loop_calls import BlockingClient, BlockingFace, beginning, waiting
from hubweir.client.numbered_sender import NumberedSender
from hubweir.client.receiver import ALL_EVENTS, ReceiverOptions
from hubweir.client.resending_sender import ResendingSender
from hubweir.client.resuming_receiver import ResumingReceiver
from hubweir.client.retry import RetryPolicy
from hubweir.errors import ServiceError
from hubweir.event_hub.event_position import EventPosition
from hubweir.namespace.names import DEFAULT_GROUP


class BlockingSender(BlockingFace[ResendingSender]):
    """A ResendingSender whose calls wait. submit_payload: with several on their way one that had to be sent again may
    be stored behind later ones.
    """

    batch = waiting(ResendingSender.batch)
    send = waiting(ResendingSender.send)
    send_batch = waiting(ResendingSender.send_batch)
    max_message_size = waiting(ResendingSender.max_message_size)
    submit_payload = beginning(ResendingSender.send_payload)
    close = waiting(ResendingSender.close)


class BlockingReceiver(BlockingFace[ResumingReceiver]):
    """A ResumingReceiver whose calls wait. begin_runs: so several receivers attach and get events together, one call
    at a time for each. begin_close: detaches before whatever this client begins next; nobody has to wait for it.
    """

    open = waiting(ResumingReceiver.open)
    receive = waiting(ResumingReceiver.receive)
    receive_runs = waiting(ResumingReceiver.receive_runs)
    begin_runs = beginning(ResumingReceiver.receive_runs)
    close = waiting(ResumingReceiver.close)
    begin_close = beginning(ResumingReceiver.close)

    @property
    def position(self) -> EventPosition:
        """Behind the last event that was given."""
        return self.inner.position


class BlockingNumberedSender(BlockingFace[NumberedSender]):
    """A NumberedSender, which says what the numbers mean. Each submitted batch has a future of its own."""

    close = waiting(NumberedSender.close)

    @property
    def epoch(self) -> int:
        return self.inner.epoch

    @property
    def last_number(self) -> int:
        """Of the last event that was stored when it was opened; 0 for none."""
        return self.inner.last_number

    @property
    def digest(self) -> int:
        """As it came with that event."""
        return self.inner.digest

    @property
    def error(self) -> ServiceError | None:
        """Why the link is over; None while it stands."""
        return self.inner.error

    @property
    def max_message_size(self) -> int:
        """Bytes of data sections that one batch may carry."""
        return self.inner.max_message_size

    def batch(self, *, partition_key: str | None = None) -> EventBatch:
        """An empty batch of the size that the link takes."""
        return self.inner.batch(partition_key=partition_key)

    def submit(self, batch: EventBatch, first_number: int, digest: int) -> Future[None]:
        """Put a batch on its way; result() of the future waits for the outcome, and raises what it ended with."""
        return self.submit_events(batch.events(), first_number, digest, partition_key=batch.partition_key)

    def submit_events(
        self, events: bytes, first_number: int, digest: int, *, partition_key: str | None = None
    ) -> Future[None]:
        """The same for data sections that are encoded already. Order of calls is order of storing."""

        async def sent() -> None:
            await self.inner.submit_events(events, first_number, digest, partition_key=partition_key)

        return self.thread.begin(sent())


class BlockingEventHubClient(BlockingClient[EventHubClient]):
    """An EventHubClient whose calls wait."""

    describe = waiting(EventHubClient.describe)
    partition = waiting(EventHubClient.partition)
    partitions = waiting(EventHubClient.partitions)

    def __init__(self, client: EventHubClient) -> None:
        """client: not used anywhere else, from now on."""
        super().__init__(client, client.hub)

    @classmethod
    def from_connection_string(
        cls,
        text: str,
        hub: str | None = None,
        *,
        ca_file: Path | str | None = None,
        retry: RetryPolicy | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
    ) -> BlockingEventHubClient:
        """See EventHubClient.from_connection_string."""
        return cls(EventHubClient.from_connection_string(text, hub, ca_file=ca_file, retry=retry, timeout_s=timeout_s))

    def sender(
        self, *, partition_id: str | None = None, publisher: str | None = None, resend_unknown: bool = True
    ) -> BlockingSender:
        """Publishes to the hub, to one partition, or as one publisher."""
        made = self.inner.sender(partition_id=partition_id, publisher=publisher, resend_unknown=resend_unknown)
        return BlockingSender(self.thread, made)

    def numbered_sender(self, partition_id: str, *, producer_id: int, round: int) -> BlockingNumberedSender:
        """A link of a sink that resumes: every event stored once, also when its work is repeated."""
        made = self.thread.run(self.inner.numbered_sender(partition_id, producer_id=producer_id, round=round))
        return BlockingNumberedSender(self.thread, made)

    def receiver(
        self, partition_id: str, options: ReceiverOptions = ALL_EVENTS, *, group: str = DEFAULT_GROUP
    ) -> BlockingReceiver:
        """Reads one partition."""
        return BlockingReceiver(self.thread, self.inner.receiver(partition_id, options, group=group))
