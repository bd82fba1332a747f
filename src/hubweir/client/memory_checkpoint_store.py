"""A checkpoint store of one process, gone with it: for tests, and for a processor that starts afresh each time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from itertools import count
from threading import Lock
from typing import Any

from hubweir.client.checkpoint_store import Record, ThreadedCheckpointStore

Key = tuple[str, str, str]

_GROUP = ("fully_qualified_namespace", "eventhub_name", "consumer_group")


class BlockingMemoryCheckpointStore:
    """The store as plain calls, from any thread. Records that go in and come out are copies."""

    def __init__(self, now_s: Callable[[], float] = time.time) -> None:
        """now_s: seconds since 1970, for last_modified_time."""
        self._now_s = now_s
        self._etags = count(1)
        self._mutex = Lock()
        self._ownership: dict[Key, dict[str, Record]] = {}
        self._checkpoints: dict[Key, dict[str, Record]] = {}

    def list_ownership(
        self, fully_qualified_namespace: str, eventhub_name: str, consumer_group: str, **kwargs: Any
    ) -> list[Record]:
        """The ownership records of a group."""
        return self._list(self._ownership, fully_qualified_namespace, eventhub_name, consumer_group)

    def claim_ownership(self, ownership_list: Iterable[Record], **kwargs: Any) -> list[Record]:
        """Write those whose etag is the stored one; return them."""
        with self._mutex:
            return [written for record in ownership_list if (written := self._claim(record)) is not None]

    def update_checkpoint(self, checkpoint: Record, **kwargs: Any) -> None:
        """Write one checkpoint."""
        with self._mutex:
            self._checkpoints.setdefault(_key(checkpoint), {})[checkpoint["partition_id"]] = dict(checkpoint)

    def list_checkpoints(
        self, fully_qualified_namespace: str, eventhub_name: str, consumer_group: str, **kwargs: Any
    ) -> list[Record]:
        """The checkpoints of a group."""
        return self._list(self._checkpoints, fully_qualified_namespace, eventhub_name, consumer_group)

    def _claim(self, record: Record) -> Record | None:
        group = self._ownership.setdefault(_key(record), {})
        stored = group.get(record["partition_id"])
        if record.get("etag") != (stored["etag"] if stored is not None else None):
            return None
        written = {**record, "etag": str(next(self._etags)), "last_modified_time": self._now_s()}
        group[record["partition_id"]] = written
        return dict(written)

    def _list(self, records: dict[Key, dict[str, Record]], *group: str) -> list[Record]:
        asked = dict(zip(_GROUP, group, strict=True))
        with self._mutex:
            return [{**record, **asked} for record in records.get(_key(asked), {}).values()]


class MemoryCheckpointStore(ThreadedCheckpointStore):
    """The same as coroutines."""

    def __init__(self, now_s: Callable[[], float] = time.time) -> None:
        super().__init__(BlockingMemoryCheckpointStore(now_s))


def _key(record: Record) -> Key:
    namespace, hub, group = (record[name].lower() for name in _GROUP)
    return namespace, hub, group
