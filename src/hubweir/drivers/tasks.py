"""Every asyncio task has an owner: it is started here, awaited here, and an escaped exception is not lost.

The tests of the tree allow create_task in this module only. A task that raises is logged with its traceback and its
owner is told; what the owner stops is the owner's decision. Tasks that are cancelled by `stop` end quietly.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

logger = logging.getLogger(__name__)


class Tasks:
    """The tasks of one owner."""

    def __init__(self, owner: str, *, on_failure: Callable[[BaseException], None] | None = None) -> None:
        """owner: for the log. on_failure: called on the loop after the log line, once a failed task."""
        self._owner = owner
        self._on_failure = on_failure
        # A dict keeps the order of starting; a set of tasks would stop them in another order each run. (Rule R3)
        self._running: dict[asyncio.Task[Any], None] = {}

    def __len__(self) -> int:
        """How many tasks run."""
        return len(self._running)

    def start(self, coroutine: Coroutine[Any, Any, Any], *, name: str) -> Callable[[], object]:
        """Run a coroutine until it ends or the owner stops. Call what is returned to cancel it alone."""
        task = asyncio.get_running_loop().create_task(coroutine, name=f"{self._owner}: {name}")
        self._running[task] = None
        task.add_done_callback(self._ended)
        return task.cancel

    async def stop(self) -> None:
        """Cancel what runs and wait until it has ended. Failures on the way are logged as any other."""
        tasks = list(self._running)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.pop(task, None)
        if task.cancelled():
            return
        error = task.exception()
        if error is None:
            return
        logger.error("%s failed", task.get_name(), exc_info=error)
        if self._on_failure is not None:
            self._on_failure(error)
