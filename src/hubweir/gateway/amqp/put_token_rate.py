"""Limits how fast one connection may put tokens: a burst, then so many a second. Late ones wait, none is refused.

One client puts one token for each partition that it reads, so the burst is generous; checking a signature costs CPU,
so the rest is slow.
"""

from __future__ import annotations

from hubweir.throughput_unit.token_bucket import TokenBucket


class PutTokenRate:
    """Times are milliseconds of the monotonic clock."""

    def __init__(self, burst: int, per_second: int, now_ms: int) -> None:
        burst_ms = -(-burst * 1_000 // per_second)
        self._bucket = TokenBucket(per_second, now_ms=now_ms, burst_ms=burst_ms)

    def delay_ms(self, now_ms: int) -> int:
        """Count a token and return 0, or count none and return how long to wait before asking again."""
        wait_ms = self._bucket.wait_ms(1, now_ms)
        if wait_ms == 0:
            self._bucket.take(1)
        return wait_ms
