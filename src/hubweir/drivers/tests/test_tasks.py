"""Tasks have an owner: failures are logged and reported, stopping ends them all."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from hubweir.drivers.tasks import Tasks

Run = Callable[[Coroutine[Any, Any, Any]], Any]


def test_an_escaped_exception_is_logged_and_its_owner_is_told(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        told: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        tasks = Tasks("keeper", on_failure=told.set_result)

        async def fails() -> None:
            raise ValueError("planted")

        tasks.start(fails(), name="sweep")
        assert str(await told) == "planted"
        assert len(tasks) == 0

    run(scenario())
    assert "keeper: sweep failed" in caplog.text
    assert "planted" in caplog.text


def test_stopping_cancels_what_runs_and_waits_for_its_end(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        tasks = Tasks("keeper")
        order: list[str] = []

        async def waits(name: str) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                order.append(name)

        for name in ("first", "second"):
            tasks.start(waits(name), name=name)
        await asyncio.sleep(0)
        await tasks.stop()
        assert order == ["first", "second"]
        assert len(tasks) == 0

    run(scenario())
    assert "failed" not in caplog.text
