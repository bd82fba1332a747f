"""A place in the process's byte budget for what a page reads, held until the page is made.

Pages compete with publishers for it: a service that holds as many bytes as it may lets a page wait, and then says that
it is busy, in the place of more memory.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hubweir.gateway.http.exchange import Room
from hubweir.portal.visit import Visit


@asynccontextmanager
async def held_room(visit: Visit, size_bytes: int) -> AsyncIterator[None]:
    """Hold room for so many bytes. ServiceError SERVER_BUSY: there is none in time."""
    room = Room(visit.gateway.process.budget)
    await room.take(size_bytes)
    try:
        yield
    finally:
        room.give_back()
