"""Every driver test runs on the loop of the standard library and, where it exists, on uvloop."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.new_event_loop}
try:
    import uvloop
except ImportError:
    pass
else:
    LOOPS["uvloop"] = uvloop.new_event_loop

Run = Callable[[Coroutine[Any, Any, Any]], Any]


@pytest.fixture(params=sorted(LOOPS))
def run(request: pytest.FixtureRequest) -> Run:
    """Run a coroutine on a fresh loop of the parametrized kind, 20 s at most; unhandled errors of callbacks fail it."""

    def run_on_loop(coroutine: Coroutine[Any, Any, Any]) -> Any:
        unhandled: list[dict[str, Any]] = []

        async def limited() -> Any:
            asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(context))
            return await asyncio.wait_for(coroutine, timeout=20)

        with asyncio.Runner(loop_factory=LOOPS[request.param]) as runner:
            result = runner.run(limited())
        assert not unhandled
        return result

    return run_on_loop
