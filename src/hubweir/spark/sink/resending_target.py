"""One address, written without numbers: at least once. A batch whose outcome nobody knows is sent again."""

from __future__ import annotations

from array import array
from collections import deque
from concurrent.futures import Future
from contextlib import suppress

from hubweir.client.blocking import BlockingEventHubClient
from hubweir.errors import ServiceError
from hubweir.kernels.columns_contract import Variable
from hubweir.spark.sink.encoded_batches import EncodedBatch, encoded_batches
from hubweir.spark.sink.row_targets import EventRows
from hubweir.spark.sink.unsettled import Unsettled
from hubweir.spark.sink.write_options import WriteOptions
from hubweir.spark.sink.write_patience import WritePatience


class ResendingTarget:
    """A partition or a publisher's address of the hub."""

    def __init__(
        self,
        client: BlockingEventHubClient,
        options: WriteOptions,
        unsettled: Unsettled,
        *,
        partition_id: str | None = None,
        publisher: str | None = None,
    ) -> None:
        """Attaches. ServiceError as WritePatience says."""
        where = f"partition {partition_id}" if publisher is None else f"publisher '{publisher}'"
        self._has_keys = publisher is None  # a publisher's name is its events' key
        self._patience = WritePatience(f"{where} of event hub '{options.event_hub}'", options.operation_timeout_s)
        self._unsettled = unsettled
        self._sent: deque[tuple[EncodedBatch, Future[None]]] = deque()
        self._sender = client.sender(partition_id=partition_id, publisher=publisher)
        self._max_bytes = self._patience.tried(self._sender.max_message_size)  # attaches

    def put(self, rows: EventRows, order: array[int], first: int, last: int) -> None:
        """Send the rows order[first:last]. IllegalRow; else as settle_first."""
        keys: Variable | None = rows.keys if self._has_keys else None
        for batch in encoded_batches(rows, keys, order, first, last, self._max_bytes):
            self._sent.append((batch, self._sender.submit_payload(batch.payload)))
            self._unsettled.add(self, len(batch.payload))

    def settle_first(self) -> None:
        """See Target. ServiceError when no try helps."""
        batch, outcome = self._sent.popleft()
        while True:
            try:
                outcome.result()
            except ServiceError as error:
                self._patience.rest(error, rows=batch.name)
                outcome = self._sender.submit_payload(batch.payload)
            else:
                self._patience.succeeded()
                return

    def close(self) -> None:
        with suppress(ServiceError):  # it is over anyway
            self._sender.close()
