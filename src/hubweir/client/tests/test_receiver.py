import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from hubweir.amqp.transport.events import DeliveriesReceived
from hubweir.client.connection import Connection
from hubweir.client.management import Management
from hubweir.client.receiver import Receiver, ReceiverOptions, address_of
from hubweir.client.sender import Sender
from hubweir.errors import (
    ARGUMENT_ERROR,
    CONNECTION_FORCED,
    DETACH_FORCED,
    LINK_STOLEN,
    NOT_FOUND,
    RESOURCE_LIMIT,
    ServiceError,
)
from hubweir.event_hub.event_position import LATEST, EventPosition, PositionKind
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.event_loops import run_on
from hubweir.testing.running_namespace import RunningNamespace
from hubweir.testing.server_process import ServerProcess

NewHub = Callable[..., str]
WAIT_S = 30.0


async def connect(namespace: RunningNamespace) -> Connection:
    return await Connection.open(ConnectionString.parse(namespace.connection_string()))


def partition(hub: str, partition_id: str = "0", group: str = "$Default") -> str:
    return address_of(hub, group, partition_id)


async def read(receiver: Receiver, count: int) -> list[int]:
    numbers: list[int] = []
    while len(numbers) < count:
        run = await receiver.receive(max_wait_s=WAIT_S)
        assert run is not None
        numbers += run.sequence_numbers()
    return numbers


def test_events_come_once_in_order_however_small_the_credit(namespace: RunningNamespace, new_hub: NewHub) -> None:
    hub = new_hub()

    async def scenario() -> None:
        connection = await connect(namespace)
        await (await Sender.open(connection, hub)).send([b"%d" % number for number in range(1_000)])
        for credit in (1, 7, 10_000):
            receiver = await Receiver.open(connection, partition(hub), ReceiverOptions(credit=credit))
            largest = 0
            numbers: list[int] = []
            while len(numbers) < 1_000:
                run = await receiver.receive(max_wait_s=WAIT_S)
                assert run is not None
                largest = max(largest, run.count)
                numbers += run.sequence_numbers()
            assert numbers == list(range(1_000))
            assert largest <= credit
            await receiver.close()
        await connection.close()

    run_on("asyncio", scenario())


def test_receiver_that_nobody_reads_takes_no_more_than_its_credit(namespace: RunningNamespace, new_hub: NewHub) -> None:
    hub = new_hub()

    async def scenario() -> None:
        connection = await connect(namespace)
        await (await Sender.open(connection, hub)).send([b"x"] * 500)
        receiver = await Receiver.open(connection, partition(hub), ReceiverOptions(credit=100))
        async with asyncio.timeout(WAIT_S):
            while not receiver._untaken:
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)  # in which more would come
        assert receiver._untaken <= 100
        assert await read(receiver, 500) == list(range(500))
        await connection.close()

    run_on("asyncio", scenario())


@pytest.mark.parametrize("credit", [7, 10_000])
def test_limited_receiver_never_takes_one_more(namespace: RunningNamespace, new_hub: NewHub, credit: int) -> None:
    hub = new_hub()

    async def scenario() -> None:
        connection = await connect(namespace)
        await (await Sender.open(connection, hub)).send([b"x"] * 500)
        receiver = await Receiver.open(connection, partition(hub), ReceiverOptions(credit=credit, limit=123))
        assert await read(receiver, 123) == list(range(123))
        assert await receiver.receive(max_wait_s=0.1) is None
        assert receiver._link.credit == 0
        await connection.close()

    run_on("asyncio", scenario())


class CountingLink:
    """A link whose engine has counted deliveries before it tells of them; it remembers what it was granted in all."""

    def __init__(self) -> None:
        self.credit = 0
        self.granted = 0

    def grant(self, credit: int) -> None:
        self.granted += credit - self.credit
        self.credit = credit


def test_limit_holds_when_one_read_brings_several_runs(namespace: RunningNamespace, new_hub: NewHub) -> None:
    """The engine counts all deliveries of a read first: the credit of the first run's turn is that after the last."""
    hub = new_hub()

    async def scenario() -> None:
        connection = await connect(namespace)
        await (await Sender.open(connection, hub)).send([b"x"] * 40)
        source = await Receiver.open(connection, partition(hub))
        run = await source.receive(max_wait_s=WAIT_S)
        assert run is not None
        link = CountingLink()
        receiver = await Receiver.open(connection, partition(hub), ReceiverOptions(limit=100, credit=100))
        receiver._ungranted, receiver._untaken, receiver._link = 100, 0, link  # type: ignore[assignment]
        receiver._top_up()
        assert (link.credit, link.granted) == (100, 100)
        link.credit -= 80
        for _ in range(2):
            receiver.on_deliveries(DeliveriesReceived(receiver._link, memoryview(run.data), run.deliveries, 40))
        assert link.granted == 100
        await connection.close()

    run_on("asyncio", scenario())


def test_next_receiver_goes_on_from_the_position(namespace: RunningNamespace, new_hub: NewHub) -> None:
    hub = new_hub()

    async def scenario() -> None:
        connection = await connect(namespace)
        await (await Sender.open(connection, hub)).send([b"x"] * 30)
        first = await Receiver.open(connection, partition(hub), ReceiverOptions(credit=10))
        taken = await read(first, 10)
        await first.close()
        second = await Receiver.open(connection, partition(hub), ReceiverOptions(position=first.position))
        assert taken + await read(second, 30 - len(taken)) == list(range(30))
        await connection.close()

    run_on("asyncio", scenario())


def test_no_event_in_time_is_none_and_one_later_is_given(namespace: RunningNamespace, new_hub: NewHub) -> None:
    hub = new_hub()

    async def scenario() -> None:
        connection = await connect(namespace)
        sender = await Sender.open(connection, hub)
        await sender.send([b"old"])
        receiver = await Receiver.open(connection, partition(hub), ReceiverOptions(position=LATEST))
        assert await receiver.receive(max_wait_s=0.05) is None
        await sender.send([b"new"])
        run = await receiver.receive(max_wait_s=WAIT_S)
        assert run is not None
        assert [bytes(body) for body in run.bodies()] == [b"new"]
        await connection.close()

    run_on("asyncio", scenario())


@pytest.mark.usefixtures("owner_levels")
def test_equal_epoch_displaces_and_what_came_before_is_still_given(
    namespace: RunningNamespace, new_hub: NewHub
) -> None:
    hub = new_hub()

    async def scenario() -> None:
        connection = await connect(namespace)
        await (await Sender.open(connection, hub)).send([b"x"] * 5)
        old = await Receiver.open(connection, partition(hub), ReceiverOptions(epoch=0))
        while not old.has_events:
            await asyncio.sleep(0.01)
        new = await Receiver.open(connection, partition(hub), ReceiverOptions(epoch=0))
        while old.error is None:
            await asyncio.sleep(0.01)
        assert await read(old, 5) == list(range(5))
        with pytest.raises(ServiceError) as stolen:
            await old.receive(max_wait_s=WAIT_S)
        assert stolen.value.condition is LINK_STOLEN
        assert await read(new, 5) == list(range(5))
        with pytest.raises(ServiceError) as refused:
            await Receiver.open(connection, partition(hub))  # without an epoch, beside one
        assert refused.value.condition is LINK_STOLEN
        await connection.close()

    run_on("asyncio", scenario())


def test_waiting_reader_hears_of_the_end_of_the_service_at_once(tmp_path: Path) -> None:
    async def scenario(server: ServerProcess) -> None:
        connection = await Connection.open(ConnectionString.parse(server.connection_string()))
        await Management(connection).create_hub(
            "orders", partition_count=1, retention_ms=3_600_000, durability="durable"
        )
        receiver = await Receiver.open(connection, partition("orders"))
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(_condition(receiver))
            await asyncio.sleep(0.02)
            await asyncio.to_thread(server.stop)
        assert waiting.result() is CONNECTION_FORCED
        await connection.close()

    with ServerProcess(tmp_path / "data") as server:
        run_on("asyncio", scenario(server), seconds=30)


async def _condition(receiver: Receiver) -> object:
    with pytest.raises(ServiceError) as over:
        await receiver.receive(max_wait_s=60)
    return over.value.condition


@pytest.mark.parametrize(
    ("address", "condition"),
    [
        ("{hub}/ConsumerGroups/nobody/Partitions/0", NOT_FOUND),
        ("no-such-hub/ConsumerGroups/$Default/Partitions/0", NOT_FOUND),
    ],
)
def test_address_of_nothing_is_refused(
    namespace: RunningNamespace, new_hub: NewHub, address: str, condition: object
) -> None:
    hub = new_hub()

    async def scenario() -> None:
        connection = await connect(namespace)
        with pytest.raises(ServiceError) as refused:
            await Receiver.open(connection, address.format(hub=hub))
        assert refused.value.condition is condition
        await connection.close()

    run_on("asyncio", scenario())


def test_position_behind_the_end_is_refused_and_not_waited_for(namespace: RunningNamespace, new_hub: NewHub) -> None:
    hub = new_hub()

    async def scenario() -> None:
        connection = await connect(namespace)
        await (await Sender.open(connection, hub)).send([b"x"])
        with pytest.raises(ServiceError) as refused:
            await Receiver.open(
                connection, partition(hub), ReceiverOptions(position=EventPosition(PositionKind.SEQUENCE_NUMBER, 1_000))
            )
        assert refused.value.condition is ARGUMENT_ERROR
        await connection.close()

    run_on("asyncio", scenario())


@pytest.mark.usefixtures("owner_levels")
def test_sixth_reader_without_an_epoch_is_refused_and_a_closed_one_makes_room(
    namespace: RunningNamespace, new_hub: NewHub
) -> None:
    hub = new_hub()

    async def scenario() -> None:
        connection = await connect(namespace)
        readers = [await Receiver.open(connection, partition(hub)) for _ in range(5)]
        with pytest.raises(ServiceError) as refused:
            await Receiver.open(connection, partition(hub))
        assert refused.value.condition is RESOURCE_LIMIT
        await readers[0].close()
        with pytest.raises(ServiceError) as over:
            await readers[0].receive(max_wait_s=WAIT_S)
        assert over.value.condition is DETACH_FORCED
        await Receiver.open(connection, partition(hub))
        await connection.close()

    run_on("asyncio", scenario())
