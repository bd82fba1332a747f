"""Scenarios of queues: each has a client of its own at the folder's live namespace."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from hubweir.client.message_run import MessageRun
from hubweir.client.queue_client import QueueClient
from hubweir.client.queue_receiver import QueueReceiver

NewQueue = Callable[..., str]
Scenario = Callable[[QueueClient], Coroutine[Any, Any, None]]
Play = Callable[[Scenario], None]
WAIT_S = 30.0
SOON_S = 0.3


async def until(holds: Callable[[], bool]) -> None:
    """Wait, for WAIT_S at most, until this is so."""
    async with asyncio.timeout(WAIT_S):
        while not holds():
            await asyncio.sleep(0.005)


async def take(receiver: QueueReceiver, count: int) -> MessageRun:
    """`count` messages that may come in several receives."""
    runs: list[MessageRun] = []
    while (have := sum(map(len, runs))) < count:
        run = await receiver.receive(count - have, max_wait_s=WAIT_S)
        assert run, f"{have} of {count} messages came"
        runs.append(run)
    return MessageRun.joined(runs)
