"""What all clients of the whole world share. They are hubweir's own, each with one thing to do.

A client tries once, never again by itself: what it sends or settles has one outcome, which a history is told. It goes
on until the world is healed and its own work is done.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import Protocol

from hubweir.client.retry import RetryPolicy
from tests.simulation.many_processes import SimulatedProcess

CONNECTION_STRING = (
    "Endpoint=sb://localhost;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;"
    "UseDevelopmentEmulator=true"
)
HUB, ORDERS, TURNS = "hub", "orders", "turns"
FEED = "feed"  # a topic, with a subscription that takes all, and one that takes some
KINDS = ("odd", "even")  # of messages
LATEST_SCHEDULE_MS = 8_000
ONE, TWO, NEWS = "one", "two", "news"  # between which tokens are moved
FEED_ALL, FEED_ODD = f"{FEED}/Subscriptions/all", f"{FEED}/Subscriptions/odd"
PARTITIONS = FRAGMENTS = 3
LOCK_MS = 45_000
WINDOW_MS = 60_000
# How late a client may see what happened: a moment, or behind two partitions and stalls of those that the world makes.
PROMPT_MS, LATE_MS = 4_000, 40_000
ONCE = RetryPolicy(attempts=1)
TIMEOUT_S = 10.0


class World(Protocol):
    """What clients know of the world. is_healed: nothing goes wrong any more. is_scheduling: no clock is ever wrong."""

    random: Random
    is_scheduling: bool

    @property
    def now_ms(self) -> int: ...

    @property
    def is_healed(self) -> bool: ...

    def note(self, text: str) -> None:
        """Something that was seen, for the trace."""

    def gateway_of(self, client: str) -> SimulatedProcess | None:
        """The process that a client is connected to."""


async def pause(world: World, least_s: float, most_s: float) -> None:
    await asyncio.sleep(world.random.uniform(least_s, most_s))
