"""Several messaging stores in one process: entities spread over them, and one that is away leaves the others served.

Long because all that a store does, that is there, away or back, is asked of one service.
"""

import asyncio
import json
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hubweir.alarms import STORE_AWAY
from hubweir.broker.residents import Residents
from hubweir.client.connection import Connection
from hubweir.client.management import Management
from hubweir.client.receiver import Receiver, ReceiverOptions, address_of
from hubweir.client.sender import Sender
from hubweir.errors import ServiceError, StoreLocked
from hubweir.messaging_store.disk.files import SystemFiles
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.service import served_store
from hubweir.service.completions import done
from hubweir.service.served_store import StoreMissing
from hubweir.service.service import Service
from hubweir.service.tests.started_service import create_hub, settings, target
from hubweir.testing.event_loops import run_on
from hubweir.testing.replicated_store import ReplicatedStores


async def send(service: Service, hub: str, partition: int, body: bytes) -> None:
    connection = await Connection.open(target(service))
    try:
        await (await Sender.open(connection, f"{hub}/Partitions/{partition}")).send([body])
    finally:
        await connection.close()


async def is_taken(service: Service, hub: str, partition: int) -> bool:
    try:
        await send(service, hub, partition, b"event")
    except ServiceError:
        return False
    return True


async def read(service: Service, hub: str, partition: int, count: int) -> list[bytes]:
    connection = await Connection.open(target(service))
    receiver = await Receiver.open(connection, address_of(hub, "$Default", str(partition)))
    seen: list[bytes] = []
    while len(seen) < count:
        run = await receiver.receive(max_wait_s=10)
        assert run is not None
        seen += [bytes(body) for body in run.bodies()]
    await connection.close()
    return seen


def stores_of(service: Service, hub: str) -> list[int]:
    entity = service.gateway.namespace.get(hub, EventHubDescription)
    return [placement.store_index for placement in entity.placements]


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not holds():
            await asyncio.sleep(0.01)


def is_ready(service: Service) -> bool:
    port = service.addresses[0][1]
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=30) as answer:
            return bool(json.load(answer)["status"] == "healthy")
    except urllib.error.HTTPError:
        return False


@pytest.mark.parametrize("seam", ["call", "socket"])
def test_partitions_are_spread_and_served_from_all_stores_by_this_start_and_the_next(tmp_path: Path, seam: str) -> None:
    async def first() -> None:
        service = await Service.start(settings(tmp_path, stores=3, broker_seam=seam))
        await create_hub(service, "orders", 4)
        assert stores_of(service, "orders") == [0, 1, 2, 0]
        for partition in range(4):
            await send(service, "orders", partition, b"one")
        await service.stop()

    async def second() -> None:
        """What the folder has is served, whatever the settings say."""
        service = await Service.start(settings(tmp_path))
        for partition in range(4):
            await send(service, "orders", partition, b"two")
            assert await read(service, "orders", partition, 2) == [b"one", b"two"]
        assert len(service.stores) == 3 and service.alarms.current() == ()
        await service.stop()

    run_on("asyncio", first())
    assert all((tmp_path / "data" / f"store-{index}" / "logs").is_dir() for index in range(3))
    run_on("asyncio", second())


def test_a_new_store_gets_new_entities_and_old_ones_stay_where_they_are(tmp_path: Path) -> None:
    async def first() -> None:
        service = await Service.start(settings(tmp_path))
        await create_hub(service, "old", 4)
        await send(service, "old", 3, b"event")
        assert service.stores == () and service.broker is not None
        await service.stop()

    async def second() -> None:
        service = await Service.start(settings(tmp_path, stores=2))
        await create_hub(service, "new", 4)
        assert stores_of(service, "old") == [0, 0, 0, 0] and sorted(stores_of(service, "new")) == [0, 0, 1, 1]
        assert await read(service, "old", 3, 1) == [b"event"]
        assert service.counters["broker.partitions"] == 8, "of all brokers together"
        await service.stop()

    run_on("asyncio", first())
    run_on("asyncio", second())


def missing(data: Path) -> Any:
    """The disk is not mounted; returns what mounts it."""
    (data / "store-1").rename(data / "elsewhere")
    return lambda: (data / "elsewhere").rename(data / "store-1")


def unmounted(data: Path) -> Any:
    """The same, with the folder that it is mounted on."""
    mount = missing(data)
    (data / "store-1").mkdir()

    def undo() -> None:
        assert list((data / "store-1").iterdir()) == [], "nothing is made in a folder that ought to hold logs"
        (data / "store-1").rmdir()
        mount()

    return undo


def locked(data: Path) -> Any:
    """Somebody else has it."""
    return SystemFiles(data).lock_folder("store-1").release


def newer(data: Path) -> Any:
    """Another version wrote it."""
    path = data / "store-1" / "FORMAT"
    text = path.read_text()
    path.write_text("hubweir store 99\n")
    return lambda: path.write_text(text)


@pytest.mark.parametrize("fault", [missing, unmounted, locked, newer])
def test_a_store_that_is_away_leaves_the_others_served_and_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Callable[[Path], Any]
) -> None:
    monkeypatch.setattr(served_store, "FIRST_RETRY_MS", 50)
    monkeypatch.setattr(served_store, "LAST_RETRY_MS", 50)

    async def first() -> None:
        service = await Service.start(settings(tmp_path, stores=2))
        await create_hub(service, "orders", 4)
        for partition in range(4):
            await send(service, "orders", partition, b"one")
        await service.stop()

    async def second() -> None:
        undo = fault(tmp_path / "data")
        service = await Service.start(settings(tmp_path, stores=2))
        away = [at for at, store in enumerate(stores_of(service, "orders")) if store == 1]
        (alarm,) = [each for each in service.alarms.current() if each.kind is STORE_AWAY]
        assert alarm.about == "store store-1" and not await asyncio.to_thread(is_ready, service)
        for partition in {0, 1, 2, 3} - set(away):
            await send(service, "orders", partition, b"two")
            assert await read(service, "orders", partition, 2) == [b"one", b"two"]
        for partition in away:
            with pytest.raises(ServiceError):
                await send(service, "orders", partition, b"refused")
        await create_hub(service, "meanwhile", 2)
        assert stores_of(service, "meanwhile") == [0, 0], "what is made goes to stores that are there"
        undo()
        await until(lambda: service.stores[1].is_up)
        await until(lambda: service.counters["broker.partitions"] == 6)
        for partition in away:
            await send(service, "orders", partition, b"two")
            assert await read(service, "orders", partition, 2) == [b"one", b"two"]
        assert await asyncio.to_thread(is_ready, service)
        await service.stop()

    run_on("asyncio", first())
    run_on("asyncio", second())


def test_a_start_without_any_store_says_what_is_in_the_way_and_leaves_nothing_open(tmp_path: Path) -> None:
    async def made() -> None:
        service = await Service.start(settings(tmp_path, stores=2))
        await create_hub(service, "orders", 2)
        await service.stop()

    async def refused(error: type[Exception], needle: str) -> None:
        with pytest.raises(error, match=needle):
            await Service.start(settings(tmp_path, stores=2))

    run_on("asyncio", made())
    data = tmp_path / "data"
    locks = [SystemFiles(data).lock_folder(f"store-{index}") for index in range(2)]
    run_on("asyncio", refused(StoreLocked, "store-0/LOCK is held"))
    for lock in locks:
        lock.release()
    for index in range(2):
        (data / f"store-{index}").rename(tmp_path / f"{index}")
    run_on("asyncio", refused(StoreMissing, "the folder store-0 is not there"))
    for index in range(2):
        (tmp_path / f"{index}").rename(data / f"store-{index}")

    async def again() -> None:
        service = await Service.start(settings(tmp_path))
        assert stores_of(service, "orders") == [0, 1]
        await service.stop()

    run_on("asyncio", again())


def test_another_engine_serves_several_stores_too(tmp_path: Path) -> None:
    stores = ReplicatedStores()

    async def start(bodies: list[bytes]) -> None:
        service = await Service.start(settings(tmp_path, stores=2), open_store=stores.open)
        if len(bodies) == 1:
            await create_hub(service, "orders", 2)
        await send(service, "orders", 1, bodies[-1])
        assert await read(service, "orders", 1, len(bodies)) == bodies
        await service.stop()

    run_on("asyncio", start([b"one"]))
    run_on("asyncio", start([b"one", b"two"]))


def test_a_store_that_came_back_is_ready_when_its_logs_are_open_and_not_before(tmp_path: Path) -> None:
    async def scenario() -> None:
        service = await Service.start(settings(tmp_path, stores=2))
        await create_hub(service, "orders", 8)
        store = service.stores[1]
        await done(store.take_away)
        seen: list[tuple[bool, int]] = []  # at each change: whether it blocks, and how many logs of it are open

        def look(_: object = None) -> None:
            count = 0 if store.broker is None else len(store.broker._residents.by_log_id)
            seen.append((service.alarms.blocks, count))

        end, add = service.alarms.end, Residents.add
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(service.alarms, "end", lambda kind, about: (end(kind, about), look()))
            patch.setattr(Residents, "add", lambda self, resident: (add(self, resident), look()))
            store.on_change(look)
            store.bring_back()
            await until(lambda: not service.alarms.blocks)
        assert seen[0] == (True, 0) and seen[-1] == (False, 4)
        assert all(blocks or count == 4 for blocks, count in seen), seen
        await done(store.take_away)
        assert not await asyncio.to_thread(is_ready, service), "and when it goes again, it says so again"
        await service.stop()

    run_on("asyncio", scenario())


def test_a_store_that_goes_while_its_logs_are_being_opened_is_away(tmp_path: Path) -> None:
    async def scenario() -> None:
        service = await Service.start(settings(tmp_path, stores=2))
        await create_hub(service, "orders", 8)
        store = service.stores[1]
        await done(store.take_away)
        left: list[None] = []
        store.on_change(lambda store: store.take_away(lambda: left.append(None)) if store.is_up else None)
        store.bring_back()
        await until(lambda: bool(left))
        await asyncio.sleep(0.1)
        [alarm] = [each for each in service.alarms.current() if each.kind is STORE_AWAY]
        assert "was taken away" in alarm.text and not await asyncio.to_thread(is_ready, service)
        await service.stop()

    run_on("asyncio", scenario())


@pytest.mark.parametrize("seam", ["call", "socket"])
def test_an_idle_reader_hears_that_its_store_went_and_no_other_does(tmp_path: Path, seam: str) -> None:
    """Without credit it asks for nothing, and when the store is back its number may be another reader's."""
    idle = ReceiverOptions(credit=0)

    async def scenario() -> None:
        service = await Service.start(settings(tmp_path, stores=2, broker_seam=seam))
        await create_hub(service, "orders", 2)
        places = stores_of(service, "orders")
        connection = await Connection.open(target(service))
        readers = [
            await Receiver.open(connection, address_of("orders", "$Default", str(each)), idle) for each in (0, 1)
        ]
        lost, kept = readers[places.index(1)], readers[places.index(0)]
        await done(service.stores[1].take_away)
        service.stores[1].bring_back()
        await until(lambda: service.stores[1].is_up)
        await until(lambda: lost.error is not None)
        assert isinstance(lost.error, ServiceError) and lost.error.condition.retriable
        assert kept.error is None
        await connection.close()
        await service.stop()

    run_on("asyncio", scenario())


def test_the_end_of_an_opening_of_before_does_not_make_a_store_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that hangs may answer when its store went and came back."""

    async def scenario() -> None:
        service = await Service.start(settings(tmp_path, stores=2))
        store, late = service.stores[1], list[Callable[[list[ServiceError]], None]]()
        monkeypatch.setattr(service.gateway.keeper, "open_stores", lambda stores, on_done: late.append(on_done))
        for _ in range(2):
            await done(store.take_away)
            store.bring_back()
            await until(lambda: store.is_up)
        first, second = late
        first([])
        assert service.alarms.blocks
        second([])
        assert not service.alarms.blocks
        await service.stop()

    run_on("asyncio", scenario())


def test_a_store_that_comes_back_caps_partitions_as_the_others_do(tmp_path: Path) -> None:
    async def scenario() -> None:
        service = await Service.start(settings(tmp_path, stores=2, throughput_units=1))
        first, second = service.stores
        await done(second.take_away)
        second.bring_back()
        await until(lambda: second.is_up)
        name = service.gateway.namespace.description.name
        for store in (first, second):
            assert store.broker is not None
            assert store.broker._tools.capped.new_cap(name) is not None
        await service.stop()

    run_on("asyncio", scenario())


def test_each_store_looks_at_the_space_of_its_own_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, known = set[str](), os.statvfs

    def ask(path: str) -> os.statvfs_result:
        asked.add(Path(path).name)
        return known(path)

    async def scenario() -> None:
        service = await Service.start(settings(tmp_path, stores=3))
        await create_hub(service, "orders", 6)
        for partition in range(6):
            await send(service, "orders", partition, b"event")
        await service.stop()

    monkeypatch.setattr(os, "statvfs", ask)
    run_on("asyncio", scenario())
    assert asked >= {"store-0", "store-1", "store-2"}


def test_a_store_of_one_process_is_taken_away_and_brought_back_by_order(tmp_path: Path) -> None:
    async def scenario() -> None:
        service = await Service.start(settings(tmp_path, stores=3))
        await create_hub(service, "orders", 3)
        connection = await Connection.open(target(service))
        management = Management(connection)
        await management.mark_store(1, away=True)
        [told] = await management.brokers()
        assert (told["broker"], told["pid"], told["stores"], told["away"]) == (0, os.getpid(), [0, 1, 2], [1])
        assert (told["state"], told["connections"], told["starts"]) == ("serves", 1, 1)
        with pytest.raises(ServiceError) as refused:
            await send(service, "orders", 1, b"refused")
        assert refused.value.condition.retriable
        await management.mark_store(1, away=False)
        await until(lambda: service.stores[1].is_up)
        async with asyncio.timeout(30):
            while not await is_taken(service, "orders", 1):  # its logs are being opened
                await asyncio.sleep(0.01)
        assert (await management.brokers())[0]["away"] == []
        with pytest.raises(ServiceError, match="there is no messaging store 3"):
            await management.mark_store(3, away=True)
        with pytest.raises(ServiceError, match="one process, which no command ends"):
            await management.order_fault(0, "kill")
        await connection.close()
        await service.stop()

    run_on("asyncio", scenario())
