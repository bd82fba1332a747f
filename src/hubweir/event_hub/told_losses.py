"""Remembers which consumer groups were told that events are lost, so that each loss is told once and then passed.

Damaged events are never served, and what is sound behind them is. A reader that comes to damage is told: its link ends
with an error that names the range. The clients then attach again, before the damage or in it, under another name and
often on another connection; nothing says that it is the same reader. So the *group* may pass once for each time that it
was told: the next reader of the group that comes to the range steps over it. Two readers of one group may change
places in this, but each error lets one of them go on, and none is kept waiting.

Bounded: a pass that nobody used is forgotten after PASS_MS, or when there are PASSES_LIMIT. Nothing is durable: after a
restart a group is told once more.
"""

from __future__ import annotations

from dataclasses import dataclass

from hubweir.errors import EVENTS_LOST, CorruptStore, HubweirError, ServiceError
from hubweir.event_hub.partition import Partition

# A client that begins with the oldest event again reads all of it before it is back: a day is enough for terabytes.
PASS_MS = 24 * 3_600_000
PASSES_LIMIT = 1_000


@dataclass(frozen=True, slots=True)
class LostEvents:
    """The events with sequence numbers first to end, exclusive."""

    first: int
    end: int

    @staticmethod
    def of(error: HubweirError) -> LostEvents | None:
        """What a log's refusal says is lost; None when it names no range."""
        if not isinstance(error, CorruptStore) or error.first_index is None or error.resume_index is None:
            return None
        return LostEvents(error.first_index, error.resume_index)

    def named(self, partition: Partition) -> str:
        """For people."""
        where = f"partition {partition.partition_id} of event hub '{partition.hub}'"
        return f"events {self.first} to {self.end - 1} of {where}"

    def error(self, partition: Partition) -> ServiceError:
        """What a reader is told."""
        text = (
            f"Lost: {self.named(partition)} (sequence numbers). What the disk holds of them is damaged. Attach again "
            f"to read on with {self.end}."
        )
        return ServiceError(EVENTS_LOST, text)

    def overlaps(self, other: LostEvents) -> bool:
        return self.first < other.end and other.first < self.end


@dataclass(frozen=True, slots=True)
class _Pass:
    group: str
    lost: LostEvents
    told_ms: int


class ToldLosses:
    """The passes of one partition. group: in lower case. Times are monotonic milliseconds."""

    def __init__(self) -> None:
        self._passes: list[_Pass] = []  # the oldest first

    def must_hear(self, group: str, lost: LostEvents, now_ms: int) -> bool:
        """True: whoever reads for the group is told now, and the next one may pass. False: this one passes."""
        self._passes = [each for each in self._passes if now_ms - each.told_ms < PASS_MS]
        for place, each in enumerate(self._passes):
            if each.group == group and each.lost.overlaps(lost):
                del self._passes[place]
                return False
        self._passes = [*self._passes[1 - PASSES_LIMIT :], _Pass(group, lost, now_ms)]
        return True
