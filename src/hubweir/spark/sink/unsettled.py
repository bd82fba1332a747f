"""The batches that a task has on its way to all its targets: bounded in bytes, waited for in the order of sending."""

from __future__ import annotations

from collections import deque
from typing import Protocol

# Enough for several whole batches a task; beyond it more only waits in memory.
UNSETTLED_LIMIT_BYTES = 16 * 1024 * 1024


class BatchTarget(Protocol):
    """Where batches go: one partition, or one publisher's address."""

    def settle_first(self) -> None:
        """Wait until the first batch that is on its way there is stored, whatever it takes."""

    def close(self) -> None:
        """Detach."""


class Unsettled:
    """Batches on their way, first in, first out."""

    def __init__(self, most_bytes: int = UNSETTLED_LIMIT_BYTES) -> None:
        self._most_bytes = most_bytes
        self._sent: deque[tuple[BatchTarget, int]] = deque()
        self._bytes = 0

    def add(self, target: BatchTarget, size_bytes: int) -> None:
        """One more batch is on its way; wait for older ones until they all fit the limit."""
        self._sent.append((target, size_bytes))
        self._bytes += size_bytes
        while self._bytes > self._most_bytes:
            self._settle_first()

    def settle(self) -> None:
        """Wait until all are stored."""
        while self._sent:
            self._settle_first()

    def _settle_first(self) -> None:
        target, size_bytes = self._sent.popleft()
        target.settle_first()
        self._bytes -= size_bytes
