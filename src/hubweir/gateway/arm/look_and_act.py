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
