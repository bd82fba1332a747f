"""One question to a process of this service, over a connection that is made for it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hubweir.broker.commands.broker_process import ProcessCommand
from hubweir.broker.commands.command import Answer
from hubweir.broker.remote_broker import RemoteBroker
from hubweir.env import Env


async def ask_once(path: Path, command: ProcessCommand, env: Env, *, within_s: float) -> Answer | None:
    """What the process that listens on a path answers; None when it says nothing in time."""
    said: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

    def answered(answer: Answer) -> None:
        if not said.done():
            said.set_result(answer)

    way = RemoteBroker(path, env)
    way.on_change(lambda broker: broker.submit(command, answered) if broker.is_up else None)
    way.start()
    try:
        async with asyncio.timeout(within_s):
            return await said
    except TimeoutError:
        return None
    finally:
        await way.stop()
