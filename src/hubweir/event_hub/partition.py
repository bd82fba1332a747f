"""One partition on its log: resolves positions and wakes readers that wait. Stamps are the log's.

Sequence numbers are the log's indexes and offsets its offsets: dense from 0, never used twice, never going back
(promises P3, P4). After a crash a partition is exactly its log; waiting readers are gone with their connections.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from msgspec import Struct

from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.event_hub.event_position import EventPosition, PositionKind
from hubweir.messaging_store.log import Bounds, Log, Pending, Refused


@dataclass(frozen=True, slots=True)
class PartitionProperties:
    """Bounds of a partition as clients see them. -1 and None: nothing was ever stored.

    When retention has removed everything: begin is last + 1, is_empty is true, and the last values are kept.
    """

    begin_sequence_number: int
    last_sequence_number: int
    last_offset: int
    last_enqueued_time_ms: int | None
    is_empty: bool
    size_bytes: int


class Waiting(Struct, frozen=True, eq=False):
    """A reader that waits for events; see Partition.wait. waiters: those of the partition, this one among them."""

    waiters: dict[Waiting, None]
    index: int
    callback: Callable[[], None]

    def cancel(self) -> None:
        """The callback will not be called. Twice, or too late, does nothing."""
        self.waiters.pop(self, None)


class Partition:
    """One partition on its log. Every call is made on the owner's loop; callbacks come as log.py says."""

    def __init__(self, log: Log, hub: str, partition_id: str) -> None:
        self.log = log
        self.hub = hub
        self.partition_id = partition_id
        self._waiters: dict[Waiting, None] = {}  # in the order they came
        log.on_visible(self._wake)

    def resolve(self, position: EventPosition, on_done: Callable[[int | Refused], None]) -> int | Pending:
        """The sequence number of the first event that a reader from position gets, at once or through on_done.

        Below what is kept: the oldest event kept. Nothing there yet: the next number. Raises ServiceError
        ARGUMENT_ERROR, with the value asked for and the last one there is, for a position beyond the end.
        """
        bounds = self.log.bounds
        match position.kind:
            case PositionKind.EARLIEST:
                return bounds.first_index
            case PositionKind.LATEST:
                return bounds.next_index
            case PositionKind.SEQUENCE_NUMBER:
                return self._resolve_sequence_number(position, bounds)
            case PositionKind.OFFSET:
                return self._resolve_offset(position, bounds, on_done)
            case PositionKind.ENQUEUED_TIME:
                return self._resolve_time(position, bounds, on_done)

    def info(self) -> PartitionProperties:
        """Bounds and last values. Reading them changes nothing: two calls without a send between are equal."""
        bounds = self.log.bounds
        nothing_ever = bounds.last_index < 0
        return PartitionProperties(
            begin_sequence_number=-1 if nothing_ever else bounds.first_index,
            last_sequence_number=bounds.last_index,
            last_offset=bounds.last_offset,
            last_enqueued_time_ms=bounds.last_time_ms,
            is_empty=bounds.last_index < bounds.first_index,
            size_bytes=bounds.next_offset - bounds.first_offset,
        )

    def wait(self, index: int, callback: Callable[[], None]) -> Waiting:
        """Call back once, when the event with this index is visible; never inside this call.

        The caller reads first and waits when there was nothing: both happen in one turn of the loop, so no event
        comes between.
        """
        waiting = Waiting(self._waiters, index, callback)
        self._waiters[waiting] = None
        return waiting

    def _wake(self) -> None:
        """Wake every reader that has something; a fault of one is raised when all were woken."""
        if not self._waiters:
            return
        next_index = self.log.bounds.next_index
        fault: Exception | None = None
        for waiting in list(self._waiters):
            # Taken out one by one: an earlier callback may have cancelled a later one.
            if waiting.index < next_index and self._waiters.pop(waiting, self) is None:
                try:
                    waiting.callback()
                except Exception as error:
                    fault = fault or error
        if fault is not None:
            raise fault

    def _resolve_sequence_number(self, position: EventPosition, bounds: Bounds) -> int:
        first = position.value if position.inclusive else position.value + 1
        if first > bounds.next_index:
            raise self._beyond_end("sequence number", position.value, bounds.last_index)
        return max(first, bounds.first_index)

    def _resolve_offset(
        self, position: EventPosition, bounds: Bounds, on_done: Callable[[int | Refused], None]
    ) -> int | Pending:
        # The next event will have next_offset: to start there is legal, as it is for sequence numbers.
        if position.value > (bounds.next_offset if position.inclusive else bounds.last_offset):
            raise self._beyond_end("offset", position.value, bounds.last_offset)
        first = position.value if position.inclusive else position.value + 1
        if first <= bounds.first_offset:
            return bounds.first_index
        if first > bounds.last_offset:
            return bounds.next_index
        return self.log.find_offset(first, on_done)

    def _resolve_time(
        self, position: EventPosition, bounds: Bounds, on_done: Callable[[int | Refused], None]
    ) -> int | Pending:
        first_ms = position.value if position.inclusive else position.value + 1
        # A time to come means: what comes from now on, whatever its time.
        if bounds.last_time_ms is None or first_ms > bounds.last_time_ms:
            return bounds.next_index
        if first_ms <= 0:
            return bounds.first_index
        return self.log.find_time(first_ms, on_done)

    def _beyond_end(self, what: str, supplied: int, last: int) -> ServiceError:
        return ServiceError(
            ARGUMENT_ERROR,
            f"The supplied {what} '{supplied}' is invalid. The last {what} in the system is '{last}'. It lies beyond "
            f"the end of partition {self.partition_id} of event hub '{self.hub}': start at the last one, or @latest.",
        )
