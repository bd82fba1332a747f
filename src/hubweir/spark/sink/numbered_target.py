"""One partition, written with numbers: rows that an earlier attempt at the same work stored are not stored again.

The rows of a task for a partition are numbered from 1. The link tells how many of them are stored already, and their
digest. These are skipped; when they are other rows than then, the repeat is refused. The same numbers heal what happens
on the way: after a refusal all is sent again from the first batch refused on, after an unknown outcome the link is
opened again and says where to go on.
"""

from __future__ import annotations

from array import array
from collections import deque
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass

from hubweir.client.blocking import BlockingEventHubClient, BlockingNumberedSender
from hubweir.client.sender import OutcomeUnknown
from hubweir.errors import (
    DETACH_FORCED,
    INTERNAL_ERROR,
    NOT_IMPLEMENTED,
    OUT_OF_ORDER_SEQUENCE,
    PRODUCER_EPOCH_STOLEN,
    RESOURCE_LIMIT,
    ServiceError,
)
from hubweir.event_hub.producer_state import DIGEST_LIMIT
from hubweir.kernels import rows_digest
from hubweir.spark.errors import ChangedRepeat
from hubweir.spark.sink.encoded_batches import encoded_batches, malformed
from hubweir.spark.sink.producer_ids import Work, producer_id
from hubweir.spark.sink.row_targets import EventRows
from hubweir.spark.sink.unsettled import Unsettled
from hubweir.spark.sink.write_options import WriteOptions
from hubweir.spark.sink.write_patience import WritePatience


class NoNumbers(ServiceError):
    """The service, or this partition now, takes no numbered producer; nothing was sent."""


@dataclass(slots=True)
class _Sent:
    """A batch on its way: data sections of the rows first_number .. last_number, the digest behind them."""

    payload: bytes
    first_number: int
    last_number: int
    digest: int
    outcome: Future[None]
    rows: str


class NumberedTarget:
    """See the module's text. skipped: rows that were stored before."""

    def __init__(
        self, client: BlockingEventHubClient, options: WriteOptions, work: Work, partition_id: str, unsettled: Unsettled
    ) -> None:
        """Attaches. NoNumbers when that cannot be; ServiceError as WritePatience says."""
        self.skipped = 0
        self._client = client
        self._hub = options.event_hub
        self._work = work
        self._partition_id = partition_id
        self._unsettled = unsettled
        self._patience = WritePatience(
            f"partition {partition_id} of event hub '{self._hub}'", options.operation_timeout_s
        )
        self._sent: deque[_Sent] = deque()
        self._count = 0  # of rows seen: the number of the last one
        self._digest = 0
        self._sender = self._open()
        self._patience.succeeded()
        self.stored = self._sender.last_number
        self._stored_digest = self._sender.digest

    def put(self, rows: EventRows, order: array[int], first: int, last: int) -> None:
        """Send the rows order[first:last] that are not stored yet. ChangedRepeat, IllegalRow; else as settle_first."""
        if self._count < self.stored:
            upto = min(last, first + self.stored - self._count)
            self._digest = self._digested(rows, order, first, upto)
            self._count += upto - first
            self.skipped += upto - first
            first = upto
            if self._count == self.stored and self._digest & DIGEST_LIMIT != self._stored_digest:
                raise self._changed(f"made other rows: the first {self.stored} differ from those that were stored")
        for batch in encoded_batches(rows, rows.keys, order, first, last, self._sender.max_message_size):
            self._digest = self._digested(rows, order, batch.first, batch.end)
            number = self._count + 1
            self._count += batch.end - batch.first
            digest = self._digest & DIGEST_LIMIT
            outcome = self._sender.submit_events(batch.payload, number, digest)
            self._sent.append(_Sent(batch.payload, number, self._count, digest, outcome, batch.name))
            self._unsettled.add(self, len(batch.payload))

    def check_all_came(self) -> None:
        """After the last row. ChangedRepeat when there were fewer than an earlier attempt stored."""
        if self._count < self.stored:
            raise self._changed(f"made {self._count} rows, and {self.stored} were stored")

    def settle_first(self) -> None:
        """See Target. ServiceError when no try helps."""
        while self._sent:
            sent = self._sent[0]
            try:
                sent.outcome.result()
            except ServiceError as error:
                if self._mend(error, sent):
                    return
                continue
            self._patience.succeeded()
            self._sent.popleft()
            return

    def close(self) -> None:
        with suppress(ServiceError):  # it is over anyway
            self._sender.close()

    def _mend(self, error: ServiceError, first: _Sent) -> bool:
        """The first batch did not end well: send it again, and all behind it. True: it was stored, as it turns out."""
        if error.condition is PRODUCER_EPOCH_STOLEN:
            raise ServiceError(
                error.condition,
                f"another attempt at task {self._work.task} took over, or another run of the query on this "
                f"checkpoint: this one writes no more to partition {self._partition_id} of event hub '{self._hub}'. "
                f"{error.text}",
            ) from error
        if error.condition is OUT_OF_ORDER_SEQUENCE:  # what the link thinks is last is not so: ask
            error = OutcomeUnknown(ServiceError(DETACH_FORCED, error.text))
        self._patience.rest(error, rows=first.rows)
        for sent in self._sent:
            sent.outcome.exception()  # waits: what is sent again comes behind all that was sent before
        if isinstance(error, OutcomeUnknown) or self._sender.error is not None:
            self._open_again()
        for sent in self._sent:
            sent.outcome = self._sender.submit_events(sent.payload, sent.first_number, sent.digest)
        return not self._sent or self._sent[0] is not first

    def _open_again(self) -> None:
        """The same round on a new link, behind what is stored."""
        self.close()
        self._sender = self._open()
        last = self._sender.last_number
        while self._sent and self._sent[0].last_number <= last:
            stored = self._sent.popleft()
            if stored.last_number == last and stored.digest != self._sender.digest:
                raise self._changed("was written by another job at the same time")
        if last < (self._sent[0].first_number - 1 if self._sent else self._count):
            raise ServiceError(
                INTERNAL_ERROR,
                f"partition {self._partition_id} of event hub '{self._hub}' has {last} rows of this batch, and had "
                "accepted more: a relaxed hub lost the last ones, or it was made anew. A repeat of the batch sends "
                "them again",
            )

    def _open(self) -> BlockingNumberedSender:
        while True:
            try:
                found = self._client.numbered_sender(
                    self._partition_id, producer_id=producer_id(self._work, self._partition_id), round=self._work.round
                )
            except ServiceError as error:
                if error.condition in (NOT_IMPLEMENTED, RESOURCE_LIMIT):
                    raise NoNumbers(error.condition, error.text) from error
                if error.condition is PRODUCER_EPOCH_STOLEN:
                    raise ChangedRepeat(
                        f"partition {self._partition_id} of event hub '{self._hub}' has rows of a later batch than "
                        f"{self._work.round} of this query: its checkpoint was set back: begin another one. "
                        "Or another run of the query on this checkpoint has gone on meanwhile: end one of them. Or "
                        f"this task came too late, and another one has done its work. {error.text}"
                    ) from error
                self._patience.rest(error)
            else:
                return found

    def _digested(self, rows: EventRows, order: array[int], first: int, last: int) -> int:
        digest, place = rows_digest(self._digest, rows.body, rows.keys, rows.properties, order, first, last)
        if place != last:
            raise malformed(rows, order[place])
        return digest

    def _changed(self, what: str) -> ChangedRepeat:
        return ChangedRepeat(
            f"task {self._work.task} of batch {self._work.round} was repeated and {what}, in partition "
            f"{self._partition_id} of event hub '{self._hub}'. Nothing more is written. Exactly once needs the same "
            "rows in the same order and in as many tasks: no rand() or uuid(), sortBy after a shuffle, "
            "spark.sql.adaptive.enabled false. exactlyOnce off writes them, some of them for the second time"
        )
