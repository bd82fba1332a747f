"""The open runs of one process: what publisher links brought in this turn of the loop, by partition.

Every partition that got events has one open run and the claims of the links on it: which deliveries, of which link, it
holds. At the end of the loop turn each run goes to its broker in one AppendEvents; its claims are answered together
when the broker has answered. So append order is arrival order, and one write serves all links of a turn.
After a crash: a run that was not answered is stored or not; no link was told that it is.
"""

from __future__ import annotations

import logging
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from hubweir.broker.commands import Answer, AppendEvents, Refusal
from hubweir.errors import INTERNAL_ERROR
from hubweir.event_hub.open_run import Added, OpenRun
from hubweir.gateway.brokers import BrokerClient, OnAnswer
from hubweir.gateway.directory import Place

logger = logging.getLogger(__name__)


class Claimant(Protocol):
    """A publisher link that waits for the answer to deliveries of its own."""

    def answered(self, claim: Claim, answer: Answer) -> None:
        """The broker's word about the deliveries of a claim: EventsAppended or Refusal."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Deliveries first_id to last_id (both included, serial numbers) of one link, and the bytes they came in.

    ids: which of these, where others of the link went elsewhere; None: all. settled: the sender wants no outcome; the
    claim only gives the bytes back. deliveries: how many.
    """

    claimant: Claimant
    first_id: int
    last_id: int
    deliveries: int
    size_bytes: int
    settled: bool
    ids: array[int] | None = None


class PartitionQueue:
    """The open run of one partition, and who waits for it."""

    __slots__ = ("_claims", "_is_due", "_queue", "place", "run")

    def __init__(self, queue: AppendQueue, place: Place) -> None:
        self._queue = queue
        self._claims: list[Claim] = []
        self._is_due = False
        self.place = place
        self.run = OpenRun()

    def add(
        self, data: memoryview, rows: array[int], first_row: int, last_row: int, *, publisher: bytes | None
    ) -> Added:
        """Take deliveries into the open run; they are submitted at the end of the turn. See OpenRun.add.

        The caller claims what was added with one call of `claim`, before anything else is added.
        """
        return self.run.add(data, rows, first_row, last_row, publisher=publisher)

    def claim(self, *claims: Claim) -> None:
        """Remember who waits for all deliveries that were added, and see to it that the run is submitted."""
        self._claims += claims
        if self.run.size_bytes >= self._queue.run_limit_bytes:
            self.submit()
        elif not self._is_due:
            self._is_due = True
            self._queue.submit_later(self)

    def submit(self) -> None:
        """Hand the run over now; does nothing when it is empty."""
        self._is_due = False
        if not self._claims:
            return
        claims, self._claims = self._claims, []
        events = self.run.events
        run = self.run.take()
        place = self.place
        size_bytes = sum(claim.size_bytes for claim in claims)

        def answer_all(answer: Answer) -> None:
            waiting, claims[:] = list(claims), []
            for claim in waiting:
                try:
                    claim.claimant.answered(claim, answer)
                except Exception:
                    logger.exception("a fault of the service: a link could not be told how its sends ended")

        try:
            command = AppendEvents(place.log_id, place.placement_version, run, events, size_bytes)
            self._queue.append(place.broker, command, answer_all)
        except Exception:
            # The other partitions of this turn, and the next turn of this one, must not suffer from it.
            logger.exception("a fault of the service at partition %s of event hub %s", place.partition_id, place.hub)
            answer_all(Refusal(INTERNAL_ERROR.symbol, "The service has a fault; it is in its log.", known=False))


class AppendQueue:
    """The open runs of this process. call_soon: Env.call_soon, which runs after the code that runs now.

    append: takes each run to its broker, and may refuse it instead (NamespaceUnits.append).
    """

    def __init__(
        self,
        call_soon: Callable[[Callable[[], None]], None],
        append: Callable[[BrokerClient, AppendEvents, OnAnswer], None],
        *,
        run_limit_bytes: int,
    ) -> None:
        self._call_soon = call_soon
        self.append = append
        self._partitions: dict[str, PartitionQueue] = {}
        self._due: list[PartitionQueue] = []
        self.run_limit_bytes = run_limit_bytes

    def of(self, place: Place) -> PartitionQueue:
        """The queue of this partition; a newer place of the same log takes over."""
        queue = self._partitions.get(place.log_id)
        if queue is None:
            queue = self._partitions[place.log_id] = PartitionQueue(self, place)
        elif place.placement_version > queue.place.placement_version:
            queue.place = place
        return queue

    def forget(self, log_id: str) -> None:
        """The partition is gone: what is open is still submitted, and refused by its broker."""
        queue = self._partitions.pop(log_id, None)
        if queue is not None:
            queue.submit()

    def submit_later(self, queue: PartitionQueue) -> None:
        """Submit this queue when the turn ends."""
        if not self._due:
            self._call_soon(self.submit_all)
        self._due.append(queue)

    def submit_all(self) -> None:
        """Submit every open run, in the order in which they were opened."""
        due, self._due = self._due, []
        for queue in due:
            queue.submit()
