"""A checkpoint store for the demo's official consumer: in memory, with the five operations of the official protocol.

It outlives the consumer that uses it, so a second consumer goes on where the first stopped.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterable
from typing import Any

from azure.eventhub import CheckpointStore

_Key = tuple[str, str, str, str]


class MemoryCheckpoints(CheckpointStore):
    """Ownerships and checkpoints by (namespace, hub, group, partition); safe between threads."""

    def __init__(self) -> None:
        self._ownerships: dict[_Key, dict[str, Any]] = {}
        self._checkpoints: dict[_Key, dict[str, Any]] = {}
        self._mutex = threading.Lock()

    def list_ownership(
        self, fully_qualified_namespace: str, eventhub_name: str, consumer_group: str, **_: Any
    ) -> Iterable[dict[str, Any]]:
        return self._of(self._ownerships, (fully_qualified_namespace, eventhub_name, consumer_group))

    def claim_ownership(self, ownership_list: Iterable[dict[str, Any]], **_: Any) -> Iterable[dict[str, Any]]:
        won = []
        with self._mutex:
            for wish in ownership_list:
                known = self._ownerships.get(_key(wish))
                if known is not None and known["etag"] != wish.get("etag"):
                    continue
                taken = {**wish, "etag": uuid.uuid4().hex, "last_modified_time": time.time()}
                self._ownerships[_key(wish)] = taken
                won.append(dict(taken))
        return won

    def list_checkpoints(
        self, fully_qualified_namespace: str, eventhub_name: str, consumer_group: str, **_: Any
    ) -> Iterable[dict[str, Any]]:
        return self._of(self._checkpoints, (fully_qualified_namespace, eventhub_name, consumer_group))

    def update_checkpoint(self, checkpoint: dict[str, Any], **_: Any) -> None:
        with self._mutex:
            self._checkpoints[_key(checkpoint)] = dict(checkpoint)

    def _of(self, table: dict[_Key, dict[str, Any]], scope: tuple[str, str, str]) -> list[dict[str, Any]]:
        with self._mutex:
            return [dict(row) for key, row in table.items() if key[:3] == scope]


def _key(row: dict[str, Any]) -> _Key:
    return row["fully_qualified_namespace"], row["eventhub_name"], row["consumer_group"], row["partition_id"]
