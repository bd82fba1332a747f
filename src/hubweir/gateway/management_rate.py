"""Limits the requests for runtime information that a namespace answers in a second; others are refused, and retried.

Clients ask for runtime information to find their partitions; one that asks in a loop must not cost the others. All
connections of the namespace count together, as the tiers of the service have it (Event Hubs quotas and limits).
"""

from __future__ import annotations

from hubweir.errors import SERVER_BUSY, ServiceError
from hubweir.throughput_unit.token_bucket import TokenBucket


class ManagementRate:
    """Times are milliseconds of the monotonic clock. per_second: None, no limit."""

    def __init__(self, per_second: int | None, *, now_ms: int) -> None:
        self._per_second = per_second
        self._bucket = None if per_second is None else TokenBucket(per_second, now_ms=now_ms)

    def count_request(self, now_ms: int) -> None:
        """Count one request; ServiceError SERVER_BUSY, and it counts for nothing, when it is one too many."""
        if self._bucket is None:
            return
        wait_ms = self._bucket.wait_ms(1, now_ms)
        if wait_ms:
            raise ServiceError(
                SERVER_BUSY,
                f"The namespace answers {self._per_second} requests for runtime information a second. Wait "
                f"{wait_ms} ms, then ask again.",
            )
        self._bucket.take(1)
