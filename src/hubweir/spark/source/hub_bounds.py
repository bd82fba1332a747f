"""Asks an event hub for the bounds of all partitions, and turns positions into numbers, for the side that plans."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from hubweir.client.blocking import BlockingEventHubClient, BlockingReceiver
from hubweir.client.entity_info import PartitionState
from hubweir.client.event_run import EventRun
from hubweir.client.receiver import ReceiverOptions
from hubweir.errors import EVENTS_LOST, LINK_STOLEN, RESOURCE_LIMIT, TIMED_OUT, ServiceError
from hubweir.event_hub.event_position import EARLIEST, EventPosition, PositionKind
from hubweir.spark.errors import IllegalOption
from hubweir.spark.hub_connection import client_of
from hubweir.spark.source.offsets import EventRange, PartitionBounds
from hubweir.spark.source.positions import Positions
from hubweir.spark.source.range_reader import report_loss
from hubweir.spark.source.read_options import ReadOptions

logger = logging.getLogger(__name__)

# New partitions are found after so long; asking takes a round trip of its own.
_PARTITIONS_KEPT_S = 5.0
_FIRST_EVENT_S = 10.0
# Who plans small batches in a row need not ask for each: tasks look again at what retention may have taken meanwhile.
_RECENT_S = 1.0


class HubBounds:
    """Asks one hub. Lives beside the driver as long as a query; opens its connection when first asked."""

    def __init__(self, options: ReadOptions) -> None:
        self.options = options
        self._ids: tuple[str, ...] = ()
        self._ids_at_s = float("-inf")
        self._bounds: dict[str, PartitionBounds] = {}
        self._bounds_at_s = float("-inf")

    @property
    def client(self) -> BlockingEventHubClient:
        """The process's client of this hub."""
        return client_of(self.options)

    def partition_ids(self) -> tuple[str, ...]:
        """All partitions, in the order of their numbers; those added meanwhile are seen within seconds."""
        now_s = time.monotonic()
        if now_s - self._ids_at_s > _PARTITIONS_KEPT_S:
            self._ids = tuple(sorted(self.client.describe().partition_ids, key=int))
            self._ids_at_s = now_s
        return self._ids

    def states(self) -> dict[str, PartitionState]:
        """Every partition's state, asked in one go."""
        ids = self.partition_ids()
        return dict(zip(ids, self.client.partitions(ids), strict=True))

    def bounds(self) -> dict[str, PartitionBounds]:
        """Every partition's bounds, as they are now."""
        self._bounds = {key: bounds_of(state) for key, state in self.states().items()}
        self._bounds_at_s = time.monotonic()
        return self._bounds

    def bounds_behind(self, numbers: Mapping[str, int], events: int) -> dict[str, PartitionBounds]:
        """Every partition's bounds: of the last second, if they have so many events behind numbers; else of now."""
        kept = self._bounds if time.monotonic() - self._bounds_at_s < _RECENT_S else {}
        is_inside = all(key in kept and number <= kept[key].high for key, number in numbers.items())
        behind = sum(each.high - numbers.get(key, 0) for key, each in kept.items())
        return kept if kept and is_inside and behind >= events else self.bounds()

    def resolve(self, positions: Positions, *, option: str) -> dict[str, int]:
        """The sequence number that each position means now; option: for errors.

        IllegalOption for a partition that the hub does not have, or a number behind its end.
        """
        states = self.states()
        positions.check(tuple(states), self.options.event_hub)
        return {key: self._number(positions.of(key), state, option) for key, state in states.items()}

    def kept(self, wanted: EventRange, bounds: PartitionBounds) -> EventRange | None:
        """What of a range is still there; None: nothing. DataLoss when some is not and that matters."""
        if wanted.end > bounds.high:
            report_loss(
                self.options,
                wanted.partition_id,
                wanted.start,
                wanted.end,
                f"the next one is {bounds.high}: it was made anew",
            )
            return EventRange(wanted.partition_id, bounds.low, bounds.high) if bounds.low < bounds.high else None
        if wanted.start >= bounds.low:
            return wanted
        lost_to = min(bounds.low, wanted.end)
        why = f"retention removed them, the oldest one now is {bounds.low}"
        report_loss(self.options, wanted.partition_id, wanted.start, lost_to, why)
        return EventRange(wanted.partition_id, lost_to, wanted.end) if lost_to < wanted.end else None

    def first_from(self, partition_id: str, number: int) -> int:
        """The first sequence number from this one on that an event has; the partition has one. ServiceError TIMED_OUT
        when it does not come.
        """
        return self._first_event(EventPosition(PositionKind.SEQUENCE_NUMBER, number, True), partition_id)

    def check_group(self) -> None:
        """ServiceError, as a task would raise it, where there is no such consumer group, or no right to read it.

        A hub of which nothing is read yet has no task that would tell. Readers that take all the places are no matter.
        The management node could tell of the group, but not of the right to read; so it is a link, without credit.
        """
        options = self.options
        first = self.partition_ids()[0]
        receiver = self.client.receiver(
            first, ReceiverOptions(position=EARLIEST, limit=0), group=options.consumer_group
        )
        try:
            receiver.open()
        except ServiceError as error:
            if error.condition not in (RESOURCE_LIMIT, LINK_STOLEN):
                raise ServiceError(
                    error.condition,
                    f"consumerGroup '{options.consumer_group}' of event hub '{options.event_hub}' cannot be read: "
                    f"{error.text}",
                ) from error
        finally:
            receiver.close()

    def _number(self, position: EventPosition, state: PartitionState, option: str) -> int:
        bounds = bounds_of(state)
        match position.kind:
            case PositionKind.EARLIEST:
                return bounds.low
            case PositionKind.LATEST:
                return bounds.high
            case PositionKind.SEQUENCE_NUMBER:
                number = position.value + (0 if position.inclusive else 1)
                if number > bounds.high:
                    raise IllegalOption(
                        f"{option} is sequence number {number} of partition {state.partition_id} of event hub "
                        f"'{self.options.event_hub}', where the next one is {bounds.high}: say latest"
                    )
                return number
            case PositionKind.ENQUEUED_TIME:
                last = state.last_enqueued_time_ms
                is_behind = last < position.value or (last == position.value and not position.inclusive)
            case PositionKind.OFFSET:
                last_offset = int(state.last_offset)
                is_behind = last_offset < position.value or (last_offset == position.value and not position.inclusive)
        if state.is_empty or is_behind:
            return bounds.high
        return self._first_event(position, state.partition_id)

    def _first_event(self, position: EventPosition, partition_id: str) -> int:
        """The sequence number of the first event at a position that is known to have one."""
        receiver = self.client.receiver(
            partition_id, ReceiverOptions(position=position, limit=1), group=self.options.consumer_group
        )
        try:
            run = self._sound_events(receiver)
        finally:
            receiver.close()
        if run is None:
            raise ServiceError(
                TIMED_OUT,
                f"partition {partition_id} of event hub '{self.options.event_hub}' did not give its first event at the "
                "position asked for: try again",
            )
        return run.sequence_numbers()[0]

    def _sound_events(self, receiver: BlockingReceiver) -> EventRun | None:
        """The first events that come, behind what is lost; None when none came in time."""
        while True:
            try:
                return receiver.receive(max_wait_s=min(_FIRST_EVENT_S, self.options.receiver_timeout_s))
            except ServiceError as error:
                if error.condition is not EVENTS_LOST:
                    raise
                logger.warning("%s", error.text)  # once for each range that is lost


def bounds_of(state: PartitionState) -> PartitionBounds:
    """A partition that never held anything is empty at 0; one whose events are all gone, behind the last of them."""
    high = state.last_sequence_number + 1
    return PartitionBounds(high if state.is_empty else max(0, state.begin_sequence_number), high)
