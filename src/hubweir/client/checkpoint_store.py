"""Interface of the stores in which processors keep partition ownership and checkpoints.

The operations, their names and the members of their records are those of the official clients' `CheckpointStore`, so
any store object made for them works here, and the stores of this package work there. All processors of a consumer
group share one store. Names are compared without case, as the official Blob store does.

Ownership record: fully_qualified_namespace, eventhub_name, consumer_group, partition_id, owner_id ("" when it was
given up), last_modified_time (seconds since 1970, a float), etag (changes with every claim).
Checkpoint record: the same first four, offset (str), sequence_number (int): of the last event that was handled.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar, cast

T = TypeVar("T")

Record = dict[str, Any]


class CheckpointStore(Protocol):
    """A store as coroutines: what EventProcessor and the official `aio` client use."""

    async def list_ownership(
        self, fully_qualified_namespace: str, eventhub_name: str, consumer_group: str, **kwargs: Any
    ) -> Iterable[Record]:
        """All ownership records of a group, given-up and outlived ones too."""
        ...

    async def claim_ownership(self, ownership_list: Iterable[Record], **kwargs: Any) -> Iterable[Record]:
        """Write each record whose etag is still the stored one (no etag: nothing stored yet). Returns those written,
        with their new etag and time; the others are left out.
        """
        ...

    async def update_checkpoint(self, checkpoint: Record, **kwargs: Any) -> None:
        """Write one checkpoint; the last write counts."""
        ...

    async def list_checkpoints(
        self, fully_qualified_namespace: str, eventhub_name: str, consumer_group: str, **kwargs: Any
    ) -> Iterable[Record]:
        """All checkpoints of a group."""
        ...


class BlockingCheckpointStore(Protocol):
    """The same operations as plain calls: what the official blocking client uses."""

    def list_ownership(
        self, fully_qualified_namespace: str, eventhub_name: str, consumer_group: str, **kwargs: Any
    ) -> Iterable[Record]: ...

    def claim_ownership(self, ownership_list: Iterable[Record], **kwargs: Any) -> Iterable[Record]: ...

    def update_checkpoint(self, checkpoint: Record, **kwargs: Any) -> None: ...

    def list_checkpoints(
        self, fully_qualified_namespace: str, eventhub_name: str, consumer_group: str, **kwargs: Any
    ) -> Iterable[Record]: ...


class ThreadedCheckpointStore:
    """A blocking store as a CheckpointStore: its calls run one after the other on a thread of this object."""

    def __init__(self, store: BlockingCheckpointStore) -> None:
        self._store = store
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="checkpoint-store")
        self._closed = False

    async def list_ownership(
        self, fully_qualified_namespace: str, eventhub_name: str, consumer_group: str, **kwargs: Any
    ) -> Iterable[Record]:
        return await self._run(
            lambda: self._store.list_ownership(fully_qualified_namespace, eventhub_name, consumer_group, **kwargs)
        )

    async def claim_ownership(self, ownership_list: Iterable[Record], **kwargs: Any) -> Iterable[Record]:
        return await self._run(lambda: self._store.claim_ownership(ownership_list, **kwargs))

    async def update_checkpoint(self, checkpoint: Record, **kwargs: Any) -> None:
        await self._run(lambda: self._store.update_checkpoint(checkpoint, **kwargs))

    async def list_checkpoints(
        self, fully_qualified_namespace: str, eventhub_name: str, consumer_group: str, **kwargs: Any
    ) -> Iterable[Record]:
        return await self._run(
            lambda: self._store.list_checkpoints(fully_qualified_namespace, eventhub_name, consumer_group, **kwargs)
        )

    async def close(self) -> None:
        """Close the store when it can be closed, and end the thread. Safe to call twice."""
        if self._closed:
            return
        self._closed = True
        try:
            closing = getattr(self._store, "close", None)
            if closing is not None:
                await self._run(closing)
        finally:
            self._thread.shutdown(wait=False)

    async def __aenter__(self) -> ThreadedCheckpointStore:
        return self

    async def __aexit__(self, *reason: object) -> None:
        await self.close()

    async def _run(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)


def as_checkpoint_store(store: CheckpointStore | BlockingCheckpointStore) -> CheckpointStore:
    """The store itself when its operations are coroutines, else the same on a thread."""
    if inspect.iscoroutinefunction(store.list_ownership):
        return cast(CheckpointStore, store)
    return ThreadedCheckpointStore(cast(BlockingCheckpointStore, store))
