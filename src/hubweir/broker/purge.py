"""A purge of one partition: all events that were there when it began go, and numbers go on behind them. What comes
meanwhile may go with them, or stay.

A log drops whole segments, and never the newest: so it starts a new one, and what was there goes in a later look. Where
it has idempotent producers, two new snapshots come before, without which it drops nothing.

Readers that have not read all of it are told: their links end, and who attaches again goes on with what comes next.
After a crash in the middle a part of the events is gone, the oldest first, or none.
"""

from __future__ import annotations

from collections.abc import Callable

from hubweir.broker.commands.command import Answer
from hubweir.broker.commands.partition import PartitionPurged
from hubweir.broker.deadlines import BrokerDeadlines
from hubweir.broker.producer_snapshots import ProducerSnapshots, whatever
from hubweir.broker.readers import Readers
from hubweir.broker.refusals import refusal_of
from hubweir.errors import DETACH_FORCED, SERVER_BUSY, ServiceError
from hubweir.event_hub.partition import Partition

LOOK_MS = 10
LOOKS = 500  # a new segment takes two syncs


class Purge:
    """See the module's text. It begins when it is made, and answers once."""

    def __init__(
        self,
        deadlines: BrokerDeadlines,
        partition: Partition,
        readers: Readers,
        snapshots: ProducerSnapshots,
        on_answer: Callable[[Answer], None],
    ) -> None:
        bounds = partition.log.bounds
        self._deadlines = deadlines
        self._partition = partition
        self._snapshots = snapshots
        self._on_answer = on_answer
        self._before = bounds.first_index
        self._until = bounds.next_index
        self._looks = 0
        text = (
            f"The events of partition {partition.partition_id} of event hub '{partition.hub}' before "
            f"{self._until} were purged. Attach again to go on behind them."
        )
        readers.purged(self._until, ServiceError(DETACH_FORCED, text))
        self.due(None, 0)

    def due(self, key: None, now_ms: int) -> None:
        """Let go what can go by now, and look again for what is left."""
        log, first = self._partition.log, self._first()
        if first >= self._until:
            self._on_answer(PartitionPurged(first - self._before, first))
            return
        self._looks += 1
        if self._looks > LOOKS:
            text = f"Partition {self._partition.partition_id} of event hub '{self._partition.hub}' keeps events yet"
            self._on_answer(refusal_of(ServiceError(SERVER_BUSY, f"{text} from {first} on: purge again.")))
            return
        if self._snapshots.saved_at is not None:
            self._snapshots.save(whatever)
        log.trim(log.bounds.next_index)
        self._deadlines.arm_in(LOOK_MS, self)

    def _first(self) -> int:
        return self._partition.log.bounds.first_index
