"""One partition carries at most one unit, however many its namespace holds; `--no-partition-cap` lifts it.

The object stands where the partition is owned; a namespace's admission stands where connections end. So a run is
admitted by the namespace first, then here; refused here, it is given back there (`give_back(…, busy=True)`), and
auto-inflate has no part in it, since more units do not help one partition.
"""

from __future__ import annotations

from hubweir.errors import SERVER_BUSY, ServiceError
from hubweir.throughput_unit.admission import ERROR_CODE, Busy, retry_after_s
from hubweir.throughput_unit.rate_limit import RateLimit
from hubweir.throughput_unit.throughput_unit import UNIT


class PartitionCap:
    """The limit of one partition, in both directions; all of its readers together. Made while units are on."""

    __slots__ = ("_egress", "_ingress")

    def __init__(self, *, now_ms: int) -> None:
        self._ingress = RateLimit(UNIT.ingress, now_ms=now_ms)
        self._egress = RateLimit(UNIT.egress, now_ms=now_ms)

    def admit(self, size_bytes: int, events: int, now_ms: int) -> Busy | None:
        """Let all of it in and return None, or Busy and nothing is taken."""
        wait_ms = self._ingress.admit(size_bytes, events, now_ms)
        return Busy(wait_ms) if wait_ms else None

    def give_back(self, size_bytes: int, events: int, now_ms: int) -> None:
        """What was let in is not stored after all."""
        self._ingress.give_back(size_bytes, events, now_ms)

    def reserve_egress(self, size_bytes: int, events: int, now_ms: int) -> int:
        """Reserve the sending of these events; return how many ms to wait before, 0: none."""
        return self._egress.reserve(size_bytes, events, now_ms)

    def give_back_unsent(self, size_bytes: int, events: int, now_ms: int) -> None:
        """This part of what `reserve_egress` reserved was not sent."""
        self._egress.give_back(size_bytes, events, now_ms)


def partition_busy_error(hub: str, partition_id: str, busy: Busy) -> ServiceError:
    """The refusal as a sender sees it."""
    rate = UNIT.ingress
    text = (
        f"Partition '{partition_id}' of event hub '{hub}' carries at most one throughput unit "
        f"({rate.bytes_per_second} bytes or {rate.events_per_second} events a second in); nothing was stored. "
        f"Error code: {ERROR_CODE}. Please wait {retry_after_s(busy)} seconds and send again, or spread the events "
        "over more partitions."
    )
    return ServiceError(SERVER_BUSY, text)
