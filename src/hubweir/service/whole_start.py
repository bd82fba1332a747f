"""A start is whole, or nothing stays open: one that fails, or is given up (stop_signal.py), stops what it had started,
in the time that any stop has.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hubweir.service.bounded_stop import StopLimit
from hubweir.service.data_folder import unusable
from hubweir.service.parts import Parts


@asynccontextmanager
async def whole_start(parts: Parts, limit: StopLimit | None) -> AsyncIterator[None]:
    """Around the start of these parts. What fails in it is raised when they have stopped.

    limit: of the process, which ends at it, with the reason in its log, where they do not stop; None: it waits for
    them. DataFolderUnusable for what the disk refuses.
    """
    if limit is not None:
        limit.starts(parts)
    try:
        yield
    except BaseException as error:
        reason = unusable(parts.settings.data, error) if isinstance(error, OSError) else error
        if limit is not None:
            limit.begin(parts, failed=None if isinstance(error, asyncio.CancelledError) else reason)
        await parts.stop()
        if reason is error:
            raise
        raise reason from error
