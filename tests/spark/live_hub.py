"""A hub of a live namespace, and waiting for what a running query does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from hubweir.client.blocking import BlockingEventHubClient
from hubweir.testing.running_namespace import RunningNamespace

# The first batch of a session takes seconds, and a minute on a machine that is busy otherwise.
WAIT_S = 120.0


class Hub:
    """A hub with a client that publishes, and what a reader of it is given."""

    def __init__(self, namespace: RunningNamespace, name: str, client: BlockingEventHubClient) -> None:
        self.namespace = namespace
        self.name = name
        self.client = client
        self._senders: dict[str, Any] = {}

    def options(self, **more: str) -> dict[str, str]:
        return {"connectionString": self.namespace.connection_string(), "eventHub": self.name, **more}

    def send(self, partition_id: str, count: int, *, start: int = 0) -> None:
        """count events to a partition, with the bodies "<partition>-<number>"."""
        if partition_id not in self._senders:
            self._senders[partition_id] = self.client.sender(partition_id=partition_id)
        bodies = [b"%s-%d" % (partition_id.encode(), number) for number in range(start, start + count)]
        self._senders[partition_id].send(bodies)

    def high(self, partition_id: str) -> int:
        return self.client.partition(partition_id).last_sequence_number + 1


def until(reached: Callable[[], bool], what: str, *, seconds: float = WAIT_S) -> None:
    """Wait for something of a running query, with a limit."""
    limit_s = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < limit_s, f"{what} did not come within {seconds:.0f} s"
        time.sleep(0.05)
