import asyncio

import pytest

from hubweir.testing.event_loops import LOOPS, run_on


@pytest.mark.parametrize("name", sorted(LOOPS))
def test_a_coroutine_runs_on_the_loop_asked_for(name: str) -> None:
    async def which() -> str:
        return type(asyncio.get_running_loop()).__module__

    assert run_on(name, which()).startswith(name)


@pytest.mark.parametrize("name", sorted(LOOPS))
def test_a_callback_that_fails_fails_the_run(name: str) -> None:
    async def plants() -> None:
        asyncio.get_running_loop().call_soon(lambda: 1 / 0)
        await asyncio.sleep(0.01)

    with pytest.raises(RuntimeError, match="division by zero"):
        run_on(name, plants())


@pytest.mark.parametrize("name", sorted(LOOPS))
def test_what_does_not_end_is_ended(name: str) -> None:
    with pytest.raises(TimeoutError):
        run_on(name, asyncio.sleep(10), seconds=0.01)
