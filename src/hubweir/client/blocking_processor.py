"""An event processor whose handlers are plain functions, each call on a thread of a pool."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from hubweir.client.checkpoint_store import BlockingCheckpointStore, CheckpointStore
from hubweir.client.event_hub_client import EventHubClient
from hubweir.client.event_processor import EventProcessor
from hubweir.client.event_run import Event, EventRun
from hubweir.client.loop_thread import LoopThread
from hubweir.client.partition_context import PartitionContext
from hubweir.client.partition_pump import CloseReason

T = TypeVar("T")

# As many partitions are handled side by side; the others wait for a thread.
DEFAULT_HANDLER_THREADS = 32


class BlockingPartitionContext:
    """One partition, for a handler on a thread."""

    def __init__(self, thread: LoopThread, context: PartitionContext) -> None:
        self._thread = thread
        self._context = context

    @property
    def partition_id(self) -> str:
        return self._context.partition_id

    @property
    def is_owned(self) -> bool:
        """False once another processor has the partition."""
        return self._context.is_owned

    def checkpoint(self, event: Event | None = None) -> None:
        """Mark everything up to event, or up to the end of the run given last, as handled; wait until it is stored."""
        self._thread.run(self._context.checkpoint(event))


BlockingOnEvents = Callable[[BlockingPartitionContext, EventRun], None]
BlockingOnError = Callable[[BlockingPartitionContext | None, Exception], None]
BlockingOnClaimed = Callable[[BlockingPartitionContext], None]
BlockingOnClosed = Callable[[BlockingPartitionContext, CloseReason], None]


class BlockingEventProcessor:
    """An EventProcessor whose calls wait. A context manager: runs inside the `with`.

    A handler that outlives its grace time cannot be ended: it runs on, and its partition's next owner begins.
    """

    def __init__(
        self,
        thread: LoopThread,
        client: EventHubClient,
        store: CheckpointStore | BlockingCheckpointStore,
        on_events: BlockingOnEvents,
        *,
        on_error: BlockingOnError | None = None,
        on_claimed: BlockingOnClaimed | None = None,
        on_closed: BlockingOnClosed | None = None,
        handler_threads: int = DEFAULT_HANDLER_THREADS,
        **options: Any,
    ) -> None:
        """options: the others of EventProcessor."""
        self._thread = thread
        self._pool = ThreadPoolExecutor(handler_threads, thread_name_prefix="handler")
        given = {"on_error": on_error, "on_claimed": on_claimed, "on_closed": on_closed}
        handlers: dict[str, Any] = {
            name: self._on_pool(handler) for name, handler in given.items() if handler is not None
        }
        self._processor = EventProcessor(client, store, self._on_pool(on_events), **handlers, **options)

    @property
    def owner_id(self) -> str:
        return self._processor.owner_id

    @property
    def partition_ids(self) -> tuple[str, ...]:
        """The partitions that are read here now."""
        return self._processor.partition_ids

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread.run(self._processor.start())

    def stop(self) -> None:
        """Let handlers finish, mark what they did, give up the leases. It cannot be started again."""
        self._thread.run(self._processor.stop())
        self._pool.shutdown(wait=False)

    def __enter__(self) -> BlockingEventProcessor:
        self.start()
        return self

    def __exit__(self, *reason: object) -> None:
        self.stop()

    def _on_pool(self, handler: Callable[..., None]) -> Callable[..., Any]:
        """The handler as a coroutine function: its context made blocking, its body on a thread."""

        async def step(context: PartitionContext | None, *rest: object) -> None:
            seen = None if context is None else BlockingPartitionContext(self._thread, context)
            await asyncio.get_running_loop().run_in_executor(self._pool, partial(handler, seen, *rest))

        return step
