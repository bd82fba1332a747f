"""What the loads of kill tests wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable


async def first(holds: Callable[[], bool], seconds: float) -> None:
    """Wait until this is so, and no longer than seconds: a test that counts says what did not come."""
    limit = asyncio.get_running_loop().time() + seconds
    while not holds() and asyncio.get_running_loop().time() < limit:
        await asyncio.sleep(0.001)


def failed(tasks: Iterable[asyncio.Future[None]]) -> bool:
    """Whether one of them ended with an error: then what it was to do need not be waited for."""
    return any(task.done() and not task.cancelled() and task.exception() is not None for task in tasks)
