import asyncio
import threading

import pytest

from hubweir.client import loop_thread
from hubweir.client.loop_thread import LoopThread, wait
from hubweir.errors import ILLEGAL_STATE, ServiceError


async def where() -> str:
    return threading.current_thread().name


def test_coroutines_run_on_the_thread_and_their_errors_come_back() -> None:
    async def fails() -> None:
        raise KeyError("x")

    thread = LoopThread("test")
    try:
        assert thread.run(where()) == "test"
        with pytest.raises(KeyError):
            thread.run(fails())
    finally:
        thread.close()


def test_closed_thread_and_own_thread_refuse() -> None:
    thread = LoopThread("test")

    async def blocks() -> None:
        thread.run(where())

    with pytest.raises(ServiceError, match="block the client's own loop"):
        thread.run(blocks())
    thread.close()
    thread.close()
    with pytest.raises(ServiceError, match="is closed") as refused:
        thread.run(where())
    assert refused.value.condition is ILLEGAL_STATE


def test_interrupted_wait_cancels_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    cancelled, began = threading.Event(), threading.Event()

    async def waits() -> None:
        try:
            began.set()
            await asyncio.sleep(60)
        finally:
            cancelled.set()

    def interrupted(future: object) -> None:
        assert began.wait(30)
        raise KeyboardInterrupt

    monkeypatch.setattr("concurrent.futures.Future.result", interrupted)
    thread = LoopThread("test")
    with pytest.raises(KeyboardInterrupt):
        thread.run(waits())
    assert cancelled.wait(30)
    monkeypatch.undo()
    thread.close()


def test_a_close_ends_what_waits_in_other_threads() -> None:
    thread, began = LoopThread("test"), threading.Event()

    async def waits() -> None:
        began.set()
        await asyncio.sleep(60)

    step = thread.begin(waits())
    assert began.wait(30)
    thread.close()
    assert step.done()
    with pytest.raises(ServiceError, match="closed while a call waited"):
        wait(step)


def test_no_step_begins_while_the_loop_ends() -> None:
    """Nobody would answer it: its caller would wait for ever."""
    thread, began, ends, may_end = LoopThread("test"), threading.Event(), threading.Event(), threading.Event()

    async def ends_slowly() -> None:
        try:
            began.set()
            await asyncio.sleep(60)
        finally:
            ends.set()
            await asyncio.to_thread(may_end.wait, 30)

    thread.begin(ends_slowly())
    assert began.wait(30)
    closing = threading.Thread(target=thread.close)
    closing.start()
    assert ends.wait(30)
    try:
        with pytest.raises(ServiceError, match="is closed"):
            thread.begin(where())
    finally:
        may_end.set()
        closing.join(30)
    thread.close()


def test_who_waits_for_a_step_that_does_not_end_is_told_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    thread, began = LoopThread("test"), threading.Event()

    async def stays() -> None:
        while True:
            try:
                began.set()
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                pass

    monkeypatch.setattr(loop_thread, "_END_S", 0.01)
    step = thread.begin(stays())
    assert began.wait(30)
    thread.close()
    assert step.done()
    with pytest.raises(ServiceError, match="closed while a call waited"):
        wait(step)
