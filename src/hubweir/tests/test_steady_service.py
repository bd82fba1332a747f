"""A service under steady traffic: nothing keeps its loop, and nothing is left for garbage collections.

The service is a process of its own (testing/watched_service.py); clients publish and read from here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hubweir.client.connection import Connection
from hubweir.client.receiver import Receiver, address_of
from hubweir.client.sender import Sender
from hubweir.testing.watched_service import LONG_COLLECTION_MS, WatchedService

LIMIT_S = 150
# A machine that others use shows a stall now and then that the process did not make: one of these windows shows none.
WINDOWS, WINDOW_S = 6, 2.0
BALLAST = 300_000


def run(scenario: Any) -> None:
    asyncio.run(asyncio.wait_for(scenario, LIMIT_S))


@asynccontextmanager
async def traffic(service: WatchedService, hub: str, partitions: int = 1) -> AsyncIterator[list[int]]:
    """A client that sends events to each partition in turn and reads the first; how many it sent and read."""
    assert service.target is not None
    publisher, reader = await Connection.open(service.target), await Connection.open(service.target)
    senders = [await Sender.open(publisher, f"{hub}/Partitions/{number}") for number in range(partitions)]
    receiver = await Receiver.open(reader, address_of(hub, "$Default", "0"))
    moved = [0, 0]

    async def send() -> None:
        while True:
            for sender in senders:
                await sender.send([bytes(100)])
                moved[0] += 1

    async def read() -> None:
        while True:
            run = await receiver.receive(max_wait_s=5)
            moved[1] += 0 if run is None else run.count

    tasks = [asyncio.create_task(send()), asyncio.create_task(read())]
    try:
        yield moved
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await publisher.close()
        await reader.close()


async def until(moved: list[int], count: int) -> None:
    """Until so many events more were sent and read."""
    wanted = [each + count for each in moved]
    while any(now < then for now, then in zip(moved, wanted, strict=True)):
        await asyncio.sleep(0.01)


def ours(found: dict[str, int]) -> dict[str, int]:
    return {name: count for name, count in found.items() if name.startswith("hubweir.")}


def test_publishing_and_reading_leave_nothing_to_collections(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with WatchedService(tmp_path) as service:
            await service.ask("create", "hub", 1)
            async with traffic(service, "hub") as moved:
                await until(moved, 20)
                await service.ask("stop_collecting")
                await until(moved, 300)
                found = (await service.ask("find"))["result"]
            assert sum(found.values()) <= 10 and not ours(found), found

    run(scenario())


def test_connections_that_end_leave_nothing_to_collections(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with WatchedService(tmp_path) as service:
            await service.ask("create", "hub", 2)
            for count in (1, 4):  # what is made once is made by the first
                for _ in range(count):
                    async with traffic(service, "hub", 2) as moved:
                        await until(moved, 4)
                await asyncio.sleep(0.2)
                found = (await service.ask("find"))["result"]
                await service.ask("stop_collecting")
            assert sum(found.values()) <= 10 and not ours(found), found

    run(scenario())


def test_a_deleted_hub_gives_its_memory_back_without_a_collection(tmp_path: Path) -> None:
    """With links that stand on it until then, and events of 32 partitions in memory."""

    async def scenario() -> None:
        async with WatchedService(tmp_path) as service:
            await service.ask("create", "hub", 32)
            await service.ask("stop_collecting")
            async with traffic(service, "hub", 32) as moved:
                await until(moved, 5)
                await service.ask("delete", "hub")
            await asyncio.sleep(0.5)
            found = (await service.ask("find"))["result"]
            assert sum(found.values()) <= 10 and not ours(found), found

    run(scenario())


def test_no_collection_is_long_while_much_comes_that_stays(tmp_path: Path) -> None:
    """As when a large hub is opened, or thousands connect. The control arm: the interpreter's own collections are."""

    async def scenario() -> None:
        async with WatchedService(tmp_path) as service:
            await service.ask("ballast", 1000)
            # What a busy machine adds to processor time it does not add every time.
            seen = [await service.ask("ballast", BALLAST) for _ in range(3)]
            assert min(each["longest_collection_ms"] for each in seen) < LONG_COLLECTION_MS
            assert min(each["older_collections"] for each in seen) > 10
            await service.ask("leave_the_collector")
            seen = [await service.ask("ballast", BALLAST) for _ in range(3)]
            assert max(each["longest_collection_ms"] for each in seen) > 5 * LONG_COLLECTION_MS

    run(scenario())


async def stalls(service: WatchedService) -> list[int]:
    """Stalls in each window, until one has none."""
    await service.ask("take")
    seen = []
    for _ in range(WINDOWS):
        await asyncio.sleep(WINDOW_S)
        seen.append((await service.ask("take"))["stalls"])
        if not seen[-1]:
            break
    return seen


def test_nothing_keeps_the_loop_under_steady_traffic(tmp_path: Path) -> None:
    """The control arm: a callback that keeps it for 50 ms is found, here and by the service's own counter."""

    async def scenario() -> None:
        async with WatchedService(tmp_path) as service:
            await service.ask("create", "hub", 8)
            async with traffic(service, "hub", 8) as moved:
                await until(moved, 20)
                seen = await stalls(service)
                assert seen[-1] == 0, seen
                counted = (await service.ask("counters"))["result"].get("loop.stalls", 0)
                await service.ask("block", 50)
                assert 0 not in await stalls(service)
                after = (await service.ask("counters"))["result"]
                assert after["loop.stalls"] >= counted + WINDOWS and after["loop.longest_stall_ms"] >= 25

    run(scenario())


@pytest.mark.parametrize("name", ["loop.longest_stall_ms", "collector.long_collections", "collector.longest_ms"])
def test_the_service_counts_what_keeps_it(tmp_path: Path, name: str) -> None:
    async def scenario() -> None:
        async with WatchedService(tmp_path) as service:
            await asyncio.sleep(0.2)
            assert name in (await service.ask("counters"))["result"]

    run(scenario())
