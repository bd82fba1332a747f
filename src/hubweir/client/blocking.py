"""The client for code without an event loop: the same objects, each call waits for its result.

    with BlockingEventHubClient.from_connection_string(text, "orders") as client:
        client.sender().send([b"one", b"two"])
        for event in client.receiver("0").receive(max_wait_s=5) or ():
            print(event.sequence_number, event.body)

One client has one loop on one thread. Its objects may be used from any number of threads; a receiver by one at a time.
What the calls mean, and what they raise, is told where the coroutines are: event_hub_client.py and what it names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from hubweir.client.blocking_numbered_sender import BlockingNumberedSender
from hubweir.client.blocking_processor import BlockingEventProcessor, BlockingOnEvents
from hubweir.client.checkpoint_store import BlockingCheckpointStore, CheckpointStore
from hubweir.client.connection import DEFAULT_TIMEOUT_S
from hubweir.client.entity_info import HubInfo, PartitionState
from hubweir.client.event_batch import EventBatch
from hubweir.client.event_hub_client import DEFAULT_GROUP, EventHubClient
from hubweir.client.event_run import EventRun
from hubweir.client.loop_thread import LoopThread, wait
from hubweir.client.receiver import DEFAULT_CREDIT
from hubweir.client.resending_sender import ResendingSender
from hubweir.client.resuming_receiver import ResumingReceiver
from hubweir.client.retry import RetryPolicy
from hubweir.event_hub.event_position import EARLIEST, EventPosition


class BlockingSender:
    """A ResendingSender whose calls wait."""

    def __init__(self, thread: LoopThread, sender: ResendingSender) -> None:
        self._thread = thread
        self._sender = sender

    def batch(self, *, partition_key: str | None = None) -> EventBatch:
        """An empty batch of the size that the service takes."""
        return self._thread.run(self._sender.batch(partition_key=partition_key))

    def send(self, bodies: Iterable[bytes], *, partition_key: str | None = None) -> int:
        """Publish bodies in order and wait until all are accepted; how many batches."""
        return self._thread.run(self._sender.send(bodies, partition_key=partition_key))

    def send_batch(self, batch: EventBatch) -> None:
        """Publish one batch, as one whole."""
        self._thread.run(self._sender.send_batch(batch))

    def max_message_size(self) -> int:
        """Bytes that one transfer may carry."""
        return self._thread.run(self._sender.max_message_size())

    def submit_payload(self, payload: bytes) -> Future[None]:
        """Put a transfer that is encoded already on its way; result() of the future waits, and raises what it ended
        with. With several on their way one that had to be sent again may be stored behind later ones.
        """
        return self._thread.begin(self._sender.send_payload(payload))

    def close(self) -> None:
        """Detach."""
        self._thread.run(self._sender.close())


class BlockingReceiver:
    """A ResumingReceiver whose calls wait."""

    def __init__(self, thread: LoopThread, receiver: ResumingReceiver) -> None:
        self._thread = thread
        self._receiver = receiver

    @property
    def position(self) -> EventPosition:
        """Behind the last event that was given."""
        return self._receiver.position

    def open(self) -> None:
        """Attach now, not with the first receive."""
        self._thread.run(self._receiver.open())

    def receive(self, *, max_wait_s: float) -> EventRun | None:
        """The next events, or None when none came in time."""
        return self._thread.run(self._receiver.receive(max_wait_s=max_wait_s))

    def receive_runs(self, wanted: int, *, max_wait_s: float) -> list[EventRun]:
        """The next events, in as many runs as they came in; see ResumingReceiver.receive_runs."""
        return wait(self.begin_runs(wanted, max_wait_s=max_wait_s))

    def begin_runs(self, wanted: int, *, max_wait_s: float) -> Future[list[EventRun]]:
        """As receive_runs, and result() of the future waits: so several receivers attach and get events together. One
        call at a time for each receiver.
        """
        return self._thread.begin(self._receiver.receive_runs(wanted, max_wait_s=max_wait_s))

    def close(self) -> None:
        """Detach."""
        wait(self.begin_close())

    def begin_close(self) -> Future[None]:
        """Detach before whatever this client begins next; nobody has to wait for it."""
        return self._thread.begin(self._receiver.close())


class BlockingEventHubClient:
    """An EventHubClient whose calls wait."""

    def __init__(self, client: EventHubClient) -> None:
        """client: not used anywhere else, from now on."""
        self._client = client
        self._thread = LoopThread(f"client of {client.hub}")
        self._is_closed = False

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
        made = self._client.sender(partition_id=partition_id, publisher=publisher, resend_unknown=resend_unknown)
        return BlockingSender(self._thread, made)

    def numbered_sender(self, partition_id: str, *, producer_id: int, round: int) -> BlockingNumberedSender:
        """A link of a sink that resumes: every event stored once, also when its work is repeated."""
        made = self._thread.run(self._client.numbered_sender(partition_id, producer_id=producer_id, round=round))
        return BlockingNumberedSender(self._thread, made)

    def receiver(
        self,
        partition_id: str,
        *,
        group: str = DEFAULT_GROUP,
        position: EventPosition = EARLIEST,
        epoch: int | None = None,
        credit: int = DEFAULT_CREDIT,
        limit: int | None = None,
        stored_batches: bool = False,
    ) -> BlockingReceiver:
        """Reads one partition from position on; see EventHubClient.receiver."""
        made = self._client.receiver(
            partition_id,
            group=group,
            position=position,
            epoch=epoch,
            credit=credit,
            limit=limit,
            stored_batches=stored_batches,
        )
        return BlockingReceiver(self._thread, made)

    def describe(self) -> HubInfo:
        """The hub: partitions, and what else the service tells."""
        return self._thread.run(self._client.describe())

    def partition(self, partition_id: str) -> PartitionState:
        """What a partition holds now."""
        return self._thread.run(self._client.partition(partition_id))

    def partitions(self, partition_ids: Sequence[str]) -> list[PartitionState]:
        """What several partitions hold now, in about the time that one takes."""
        return self._thread.run(self._client.partitions(partition_ids))

    def processor(
        self, store: CheckpointStore | BlockingCheckpointStore, on_events: BlockingOnEvents, **options: Any
    ) -> BlockingEventProcessor:
        """One processor of a consumer group; options as those of BlockingEventProcessor."""
        return BlockingEventProcessor(self._thread, self._client, store, on_events, **options)

    def close(self) -> None:
        """Close the connection and end the thread. Stop processors before. Safe to call twice."""
        if not self._is_closed:
            self._is_closed = True
            try:
                self._thread.run(self._client.close())
            finally:
                self._thread.close()

    def __enter__(self) -> BlockingEventHubClient:
        return self

    def __exit__(self, *reason: object) -> None:
        self.close()
