"""Calls run on threads, completions on the loop, many completions a wake-up."""

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from hubweir.drivers.loop_turn import LoopTurn
from hubweir.drivers.offload_pool import DONE_AT_ONCE, CallResult, Completions, OffloadPool

Run = Callable[[Coroutine[Any, Any, Any]], Any]


def completions_of(loop: asyncio.AbstractEventLoop) -> Completions:
    return Completions(LoopTurn(loop))


def offload_threads() -> set[int | None]:
    """Threads of all pools of this process; other tests' services may still be ending."""
    return {thread.ident for thread in threading.enumerate() if thread.name.startswith("hubweir-offload")}


def test_a_call_runs_on_a_thread_and_its_completion_on_the_loop(run: Run) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        pool = OffloadPool(completions_of(loop), threads=2)
        ended: asyncio.Future[tuple[int, int]] = loop.create_future()
        here = threading.get_ident()

        def on_done(result: CallResult[int]) -> None:
            ended.set_result((result.value(), threading.get_ident()))

        pool.submit(threading.get_ident, on_done)
        there, completed_in = await ended
        assert there != here
        assert completed_in == here
        pool.close()

    run(scenario())


def test_what_a_call_raised_is_raised_by_its_result(run: Run) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        pool = OffloadPool(completions_of(loop), threads=1)
        ended: asyncio.Future[CallResult[None]] = loop.create_future()

        def fails() -> None:
            raise OSError(5, "planted")

        pool.submit(fails, ended.set_result)
        with pytest.raises(OSError, match="planted"):
            (await ended).value()
        pool.close()

    run(scenario())


def test_an_error_and_who_met_it_are_freed_without_a_collection(run: Run) -> None:
    """Whoever asks for the value is in the error's traceback, and has the result."""

    class Held:
        pass

    async def scenario() -> None:
        pool = OffloadPool(completions_of(asyncio.get_running_loop()), threads=1)
        gone: list[weakref.ref[Held]] = []
        ended = asyncio.Event()

        def fails() -> None:
            raise OSError(5, "planted")

        def on_done(result: CallResult[None]) -> None:
            held = Held()
            gone.append(weakref.ref(held))
            try:
                result.value()
            except OSError:
                ended.set()

        gc.disable()
        try:
            pool.submit(fails, on_done)
            await ended.wait()
            async with asyncio.timeout(20):
                while gone[0]() is not None:
                    await asyncio.sleep(0.01)
        finally:
            gc.enable()
        pool.close()

    run(scenario())


def test_more_calls_than_threads_all_run_and_none_twice(run: Run) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        before = offload_threads()
        pool = OffloadPool(completions_of(loop), threads=3)
        seen: list[int] = []
        all_done = asyncio.Event()

        def call(number: int) -> Callable[[], int]:
            return lambda: number

        def on_done(result: CallResult[int]) -> None:
            seen.append(result.value())
            if len(seen) == 500:
                all_done.set()

        for number in range(500):
            pool.submit(call(number), on_done)
        await all_done.wait()
        assert sorted(seen) == list(range(500))
        assert len(offload_threads() - before) <= 3
        pool.close()

    run(scenario())


def test_completions_of_one_busy_turn_come_with_one_wake_up() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        pool = OffloadPool(completions_of(loop), threads=4)
        wake_ups = 0
        plain = loop.call_soon_threadsafe

        def counted(*arguments: Any, **named: Any) -> asyncio.Handle:
            nonlocal wake_ups
            wake_ups += 1
            return plain(*arguments, **named)

        loop.call_soon_threadsafe = counted  # type: ignore[method-assign]
        done: list[int] = []
        last = threading.Event()
        finished = threading.Barrier(5)

        def call() -> int:
            finished.wait(10)
            return 1

        for _ in range(4):
            pool.submit(call, lambda result: done.append(result.value()))
        finished.wait(10)
        # The loop stays busy until every thread has reported: closing joins the threads.
        pool.close()
        last.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert done == [1, 1, 1, 1]
        assert wake_ups == 1

    asyncio.run(scenario())


def test_of_many_completions_some_come_in_each_turn_in_order(run: Run) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        pool = OffloadPool(completions_of(loop), threads=1)
        count, done, turns = 2 * DONE_AT_ONCE + 3, [], []
        for number in range(count):
            pool.submit(lambda number=number: number, lambda result: done.append(result.value()))
        pool.close()  # the loop is busy until all calls have ended
        while len(done) < count:
            before = len(done)
            await asyncio.sleep(0)
            turns.append(len(done) - before)
        assert [each for each in turns if each] == [DONE_AT_ONCE, DONE_AT_ONCE, 3] and done == list(range(count))

    run(scenario())


def test_a_completion_that_fails_does_not_take_the_others_with_it(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        pool = OffloadPool(completions_of(loop), threads=1)
        ended: asyncio.Future[CallResult[int]] = loop.create_future()

        def fails(result: CallResult[int]) -> None:
            raise ValueError("planted")

        pool.submit(lambda: 1, fails)
        pool.submit(lambda: 2, ended.set_result)
        assert (await ended).value() == 2
        pool.close()

    run(scenario())
    assert "a completion failed" in caplog.text


def test_an_idle_thread_holds_nothing_of_its_last_call(run: Run) -> None:
    class Held:
        pass

    async def scenario() -> None:
        pool = OffloadPool(completions_of(asyncio.get_running_loop()), threads=1)
        for raises in (False, True):
            ended = asyncio.Event()
            given, returned = Held(), Held()
            gone = [weakref.ref(given), weakref.ref(returned)]

            def call(given: Held = given, returned: Held = returned, raises: bool = raises) -> Held:
                if raises:
                    raise OSError(5, "planted", str(given))
                return returned

            def on_done(result: CallResult[Held], ended: asyncio.Event = ended) -> None:
                ended.set()

            pool.submit(call, on_done)
            del given, returned, call, on_done
            await ended.wait()
            async with asyncio.timeout(20):
                while any(held() is not None for held in gone):  # the thread reports before it forgets
                    await asyncio.sleep(0.01)
        pool.close()

    run(scenario())


def test_a_closed_pool_takes_no_more_calls(run: Run) -> None:
    async def scenario() -> None:
        pool = OffloadPool(completions_of(asyncio.get_running_loop()), threads=1)
        pool.close()
        with pytest.raises(RuntimeError, match="closed"):
            pool.submit(lambda: None, lambda result: None)

    run(scenario())


def test_what_waits_for_the_end_of_a_turn_is_done_behind_all_calls_that_ended_together(run: Run) -> None:
    """One callback of the loop, and one turn of each connection, for however many appends."""

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        turn = LoopTurn(loop)
        pool = OffloadPool(Completions(turn), threads=4)
        seen: list[str] = []
        over: asyncio.Future[None] = loop.create_future()
        planned: list[object] = []
        call_soon = loop.call_soon

        def end_of_turn() -> None:
            seen.append("turn")
            if seen.count("turn") == 3:
                over.set_result(None)

        def done(result: CallResult[None]) -> None:
            seen.append("call")
            turn.at_end(end_of_turn)

        together = threading.Barrier(4)
        for _ in range(3):
            pool.submit(lambda: together.wait() and None, done)
        together.wait()
        while threading.active_count() and len(pool._completions._done) < 3:  # the loop is kept until all have ended
            pass
        loop.call_soon = lambda *given, **more: planned.append(given) or call_soon(*given, **more)  # type: ignore
        try:
            await over
        finally:
            del loop.call_soon
        assert seen == ["call"] * 3 + ["turn"] * 3
        assert turn.end not in [given[0] for given in planned]  # type: ignore[index]
        pool.close()

    run(scenario())


def test_a_completion_that_raises_what_is_no_exception_holds_up_neither_the_turn_nor_the_others(run: Run) -> None:
    """A call may end as a cancelled task does, and its result raises that on the loop."""

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        turn = LoopTurn(loop)
        completions, pool_ended, told = Completions(turn), list[int](), list[object]()
        loop.set_exception_handler(lambda _, context: told.append(context.get("exception")))
        pool = OffloadPool(completions, threads=1)

        def cancelled() -> None:
            raise asyncio.CancelledError

        pool.submit(cancelled, lambda result: result.value())
        for number in range(3):
            pool.submit(lambda: None, lambda result, number=number: pool_ended.append(number))  # type: ignore[misc]
        pool.close()  # all calls are over, and their ends wait for the loop
        turn_ended: asyncio.Future[None] = loop.create_future()
        turn.at_end(lambda: turn_ended.set_result(None))
        await asyncio.wait_for(turn_ended, 10)
        later: asyncio.Future[None] = loop.create_future()
        turn.at_end(lambda: later.set_result(None))
        await asyncio.wait_for(later, 10)
        assert [type(error) for error in told] == [asyncio.CancelledError] and pool_ended == [0, 1, 2]
        loop.set_exception_handler(None)

    run(scenario())
