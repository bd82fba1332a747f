"""An event processor whose handlers are plain functions, each call on a thread of a pool.

with BlockingEventProcessor(client, BlockingSqliteCheckpointStore("group.db"), handle):
    stopped.wait()
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from hubweir.client.blocking import BlockingEventHubClient
from hubweir.client.checkpoint_store import BlockingCheckpointStore, CheckpointStore
from hubweir.client.event_processor import EventProcessor
from hubweir.client.event_run import EventRun
from hubweir.client.loop_calls import BlockingFace, waiting
from hubweir.client.partition_context import PartitionContext
from hubweir.client.processor_options import DEFAULT_OPTIONS, CloseReason, ProcessorOptions

# As many partitions are handled side by side; the others wait for a thread.
DEFAULT_HANDLER_THREADS = 32


class BlockingPartitionContext(BlockingFace[PartitionContext]):
    """One partition, for a handler on a thread."""

    checkpoint = waiting(PartitionContext.checkpoint)

    @property
    def partition_id(self) -> str:
        return self.inner.partition_id

    @property
    def is_owned(self) -> bool:
        """False once another processor has the partition."""
        return self.inner.is_owned


BlockingOnEvents = Callable[[BlockingPartitionContext, EventRun], None]
BlockingOnError = Callable[[BlockingPartitionContext | None, Exception], None]
BlockingOnClaimed = Callable[[BlockingPartitionContext], None]
BlockingOnClosed = Callable[[BlockingPartitionContext, CloseReason], None]


class BlockingEventProcessor(BlockingFace[EventProcessor]):
    """An EventProcessor whose calls wait. A context manager: runs inside the `with`.

    A handler that outlives its grace time cannot be ended: it runs on, and its partition's next owner begins.
    """

    start = waiting(EventProcessor.start)

    def __init__(
        self,
        client: BlockingEventHubClient,
        store: CheckpointStore | BlockingCheckpointStore,
        on_events: BlockingOnEvents,
        options: ProcessorOptions = DEFAULT_OPTIONS,
        *,
        on_error: BlockingOnError | None = None,
        on_claimed: BlockingOnClaimed | None = None,
        on_closed: BlockingOnClosed | None = None,
        handler_threads: int = DEFAULT_HANDLER_THREADS,
    ) -> None:
        """As EventProcessor. Stop it before the client is closed."""
        self._pool = ThreadPoolExecutor(handler_threads, thread_name_prefix="handler")
        given = {"on_error": on_error, "on_claimed": on_claimed, "on_closed": on_closed}
        handlers: dict[str, Any] = {
            name: _on_pool(self._pool, client, handler) for name, handler in given.items() if handler is not None
        }
        made = EventProcessor(client.inner, store, _on_pool(self._pool, client, on_events), options, **handlers)
        super().__init__(client.thread, made)

    @property
    def owner_id(self) -> str:
        return self.inner.owner_id

    @property
    def partition_ids(self) -> tuple[str, ...]:
        """The partitions that are read here now."""
        return self.inner.partition_ids

    def stop(self) -> None:
        """Let handlers finish, mark what they did, give up the leases. It cannot be started again."""
        self.thread.run(self.inner.stop())
        self._pool.shutdown(wait=False)

    def __enter__(self) -> BlockingEventProcessor:
        self.start()
        return self

    def __exit__(self, *reason: object) -> None:
        self.stop()


def _on_pool(
    pool: ThreadPoolExecutor, client: BlockingEventHubClient, handler: Callable[..., None]
) -> Callable[..., Any]:
    """The handler as a coroutine function: its context made blocking, its body on a thread."""

    async def step(context: PartitionContext | None, *rest: object) -> None:
        seen = None if context is None else BlockingPartitionContext(client.thread, context)
        await asyncio.get_running_loop().run_in_executor(pool, partial(handler, seen, *rest))

    return step
