"""The real Env on a real loop."""

import asyncio
import re
import threading
from collections.abc import Callable, Coroutine
from typing import Any, cast

from hubweir.drivers.offload_pool import THREADS
from hubweir.drivers.system_env import SystemEnv
from hubweir.env import Env, Files, Lane, Result

Run = Callable[[Coroutine[Any, Any, Any]], Any]
NO_FILES = cast(Files, None)


def test_it_is_an_env_with_time_and_ids(run: Run) -> None:
    async def scenario() -> None:
        env: Env = SystemEnv(NO_FILES)
        assert env.now_ms() > 1_700_000_000_000
        assert env.monotonic_ms() <= env.monotonic_ms()
        assert re.fullmatch("[0-9a-f]{32}", env.new_id())
        assert env.new_id() != env.new_id()
        assert len(env.random_bytes(8)) == 8
        env.fault("nothing.planted")

    run(scenario())


def test_callbacks_run_later_in_order_and_a_cancelled_timer_does_not(run: Run) -> None:
    async def scenario() -> None:
        env = SystemEnv(NO_FILES)
        seen: list[str] = []
        ended = asyncio.Event()
        env.call_later(30, ended.set)
        env.call_later(10, lambda: seen.append("timer"))
        cancelled = env.call_later(5, lambda: seen.append("cancelled"))
        cancelled.cancel()
        env.call_soon(lambda: seen.append("soon"))
        assert seen == []
        await ended.wait()
        assert seen == ["soon", "timer"]

    run(scenario())


def test_an_offloaded_call_answers_on_the_loop(run: Run) -> None:
    async def scenario() -> None:
        env = SystemEnv(NO_FILES, threads=1)
        ended: asyncio.Future[Result[bytes]] = asyncio.get_running_loop().create_future()
        env.offload(Lane.READS, lambda: b"read", ended.set_result)
        assert (await ended).value() == b"read"
        env.close()

    run(scenario())


def test_calls_of_another_lane_are_not_waited_for(run: Run) -> None:
    """A hundred calls hang in every lane but one; a call of that one runs all the same."""

    async def scenario(lane: Lane) -> None:
        env = SystemEnv(NO_FILES)
        over = threading.Event()
        ended: asyncio.Future[Result[str]] = asyncio.get_running_loop().create_future()
        for other in Lane:
            for _ in range(0 if other is lane else 100):
                env.offload(other, lambda: over.wait(30), lambda _: None)
        env.offload(lane, lambda: threading.current_thread().name, ended.set_result)
        name = (await asyncio.wait_for(ended, 20)).value()
        assert lane.value in name
        over.set()
        env.close()

    for lane in Lane:
        run(scenario(lane))


def test_reads_have_as_many_threads_as_writes_and_other_lanes_have_few(run: Run) -> None:
    async def scenario() -> None:
        env = SystemEnv(NO_FILES)
        # By its name: a service that other tests of this process use starts threads meanwhile.
        counted = env.beside(NO_FILES, threads=THREADS, name="counted")
        for lane in Lane:
            for _ in range(100):
                counted.offload(lane, lambda: None, lambda _: None)
        started = [thread.name for thread in threading.enumerate()]
        count = {lane: sum(f"-counted-{lane.value}-" in name for name in started) for lane in Lane}
        assert count[Lane.WRITES] == count[Lane.READS] == THREADS
        assert count[Lane.PORTAL] == 1, "it is loaded once"
        assert all(2 <= count[lane] <= 8 for lane in Lane if lane not in (Lane.WRITES, Lane.READS, Lane.PORTAL))
        counted.close()
        env.close()

    run(scenario())


def test_a_planted_fault_is_raised_at_its_point(run: Run) -> None:
    async def scenario() -> None:
        points: list[str] = []
        env = SystemEnv(NO_FILES, on_fault_point=points.append)
        env.fault("log.before_sync")
        assert points == ["log.before_sync"]

    run(scenario())


def test_an_env_beside_another_has_threads_of_its_own_and_the_same_turn(run: Run) -> None:
    """All threads of the first hang; a call of the other runs all the same."""

    async def scenario() -> None:
        first = SystemEnv(NO_FILES, threads=1)
        files = cast(Files, object())
        other = first.beside(files, threads=1, name="store-1")
        assert other.files is files and first.files is NO_FILES and other.loop_turn is first.loop_turn
        gate = threading.Event()
        hung: asyncio.Future[Result[bool]] = asyncio.get_running_loop().create_future()
        first.offload(Lane.WRITES, gate.wait, hung.set_result)
        ended: asyncio.Future[Result[str]] = asyncio.get_running_loop().create_future()
        other.offload(Lane.WRITES, lambda: threading.current_thread().name, ended.set_result)
        assert (await ended).value() == "hubweir-offload-store-1-writes-0"
        gate.set()
        await hung
        other.close()
        first.offload(Lane.WRITES, gate.is_set, lambda _: None)  # its own threads serve on
        first.close()

    run(scenario())
