"""The event loops that a test can run on: the standard library's and, where it is installed, uvloop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.new_event_loop}
try:
    import uvloop
except ImportError:
    pass
else:
    LOOPS["uvloop"] = uvloop.new_event_loop


def run_on(name: str, coroutine: Coroutine[Any, Any, T], *, seconds: float = 60) -> T:
    """Run a coroutine on a fresh loop of LOOPS, for so long at most.

    Raises RuntimeError when a callback raised meanwhile: the loop would only have logged it.
    """
    unhandled: list[dict[str, Any]] = []

    async def limited() -> T:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(context))
        return await asyncio.wait_for(coroutine, timeout=seconds)

    runner = asyncio.Runner(loop_factory=LOOPS[name])
    try:
        result = runner.run(limited())
    except BaseException:
        # A failed test leaves transports open, and a uvloop that has a TLS one with bytes to write never closes:
        # the run would hang instead of telling what failed.
        if name != "uvloop":
            runner.close()
        raise
    runner.close()
    if unhandled:
        raise RuntimeError(f"a callback failed: {unhandled[0]}")
    return result
