"""A PUT and a DELETE do what they should where somebody else makes, changes or deletes the same at the same time.

A handler looks, and then asks for what follows from that. In between the catalog may change, and its one writer, which
may be in another process, alone says what holds; so its refusal sends the handler back to look again. It sees more
then: a refusal comes when every process has what it was judged against (namespace/catalog_log.py), and that of a
creation when the other one has ended (gateway/catalog_keeper.py).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from hubweir.errors import ENTITY_EXISTS, NOT_FOUND, ServiceError
from hubweir.gateway.arm.documents import answer
from hubweir.gateway.http.exchange import Response

T = TypeVar("T")

# Each further look has somebody else's step behind it. Who meets one every time meets a program that makes and deletes
# the same thing over and over, and hears of it.
LOOKS = 3


async def look_and_act(attempt: Callable[[], Awaitable[T]]) -> T:
    """What attempt comes to: it looks what is there, and makes, changes or deletes it.

    Raises its ServiceError: ENTITY_EXISTS and NOT_FOUND only when it was refused so LOOKS times.
    """
    for _ in range(LOOKS - 1):
        try:
            return await attempt()
        except ServiceError as refusal:
            if refusal.condition not in (ENTITY_EXISTS, NOT_FOUND):
                raise
    return await attempt()


async def look_and_delete(find: Callable[[], Awaitable[object] | None]) -> Response:
    """The answer to a DELETE: 200, or 204 where there is nothing to delete. Raises as look_and_act.

    find: looks, and returns what deletes the thing when it is waited for; None: there is none.
    """

    async def attempt() -> Response:
        deletion = find()
        if deletion is None:
            return answer(None, 204)
        await deletion
        return answer(None)

    return await look_and_act(attempt)
