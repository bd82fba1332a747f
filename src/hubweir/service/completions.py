"""Waits, on a running loop, for calls that answer through a callback."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def answer(start: Callable[[Callable[[T], None]], object]) -> T:
    """What a completion says."""
    said: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def say(value: T) -> None:
        if not said.done():  # else whoever waited was cancelled
            said.set_result(value)

    start(say)
    return await said


async def done(start: Callable[[Callable[[], None]], None]) -> None:
    """Wait for a completion that says nothing but that it is over."""
    ended = asyncio.Event()
    start(ended.set)
    await ended.wait()
