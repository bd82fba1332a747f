import asyncio
from collections.abc import Callable

import pytest

from hubweir.client.event_hub_client import EventHubClient
from hubweir.client.receiver import ReceiverOptions
from hubweir.client.retry import RetryPolicy
from hubweir.errors import LINK_STOLEN, ServiceError
from hubweir.event_hub.event_position import LATEST, EventPosition, PositionKind
from hubweir.testing.event_loops import run_on
from hubweir.testing.running_namespace import RunningNamespace

NewHub = Callable[..., str]


def client_of(namespace: RunningNamespace, hub: str) -> EventHubClient:
    retry = RetryPolicy(first_s=0.01, longest_s=0.01)
    return EventHubClient.from_connection_string(namespace.connection_string(), hub, retry=retry)


def test_lost_connection_is_not_seen_by_the_reader(namespace: RunningNamespace, new_hub: NewHub) -> None:
    hub = new_hub()

    async def scenario() -> None:
        async with client_of(namespace, hub) as client:
            await client.sender().send([b"x"] * 100)
            receiver = client.receiver("0", ReceiverOptions(credit=10))
            taken: list[int] = []
            while len(taken) < 100:
                run = await receiver.receive(max_wait_s=5)
                assert run is not None
                taken += run.sequence_numbers()
                (await client.connection())._abort()
            assert taken == list(range(100))

    run_on("asyncio", scenario())


def test_limit_holds_over_connections(namespace: RunningNamespace, new_hub: NewHub) -> None:
    hub = new_hub()

    async def scenario() -> None:
        async with client_of(namespace, hub) as client:
            await client.sender().send([b"x"] * 100)
            receiver = client.receiver("0", ReceiverOptions(credit=10, limit=55))
            taken: list[int] = []
            while (run := await receiver.receive(max_wait_s=0.3)) is not None:
                taken += run.sequence_numbers()
                (await client.connection())._abort()
            assert taken == list(range(55))

    run_on("asyncio", scenario())


def test_many_runs_come_in_one_wait(namespace: RunningNamespace, new_hub: NewHub) -> None:
    hub = new_hub()

    async def scenario() -> None:
        async with client_of(namespace, hub) as client:
            await client.sender().send([b"x"] * 100)
            receiver = client.receiver("0", ReceiverOptions(credit=10))
            runs = await receiver.receive_runs(60, max_wait_s=5)
            taken = [number for run in runs for number in run.sequence_numbers()]
            assert taken == list(range(len(taken))) and 60 <= len(taken) < 70
            rest = await receiver.receive_runs(1_000, max_wait_s=0.3)  # fewer, when no more come in time
            assert sum(map(len, rest)) == 100 - len(taken)
            assert await receiver.receive_runs(1, max_wait_s=0.01) == []

    run_on("asyncio", scenario())


def test_what_a_cancelled_wait_had_is_given_by_the_next(namespace: RunningNamespace, new_hub: NewHub) -> None:
    hub = new_hub()

    async def scenario() -> None:
        async with client_of(namespace, hub) as client:
            await client.sender().send([b"x"] * 20)
            receiver = client.receiver("0", ReceiverOptions(credit=5, limit=20))
            waits = asyncio.ensure_future(receiver.receive_runs(1_000, max_wait_s=5))
            while receiver.position != EventPosition(PositionKind.SEQUENCE_NUMBER, 19):
                assert not waits.done()
                await asyncio.sleep(0.001)
            waits.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waits
            runs = await receiver.receive_runs(20, max_wait_s=5)
            assert [number for run in runs for number in run.sequence_numbers()] == list(range(20))

    run_on("asyncio", scenario())


@pytest.mark.parametrize("turns", range(5))
def test_a_wait_that_is_cancelled_just_when_events_come_ends(
    namespace: RunningNamespace, new_hub: NewHub, turns: int
) -> None:
    """turns: of the loop, between the coming of the event and the cancellation."""
    hub = new_hub()

    async def scenario() -> None:
        loop = asyncio.get_running_loop()

        class Came(asyncio.Event):
            def set(self) -> None:
                super().set()
                cancel_after(turns)

        def cancel_after(left: int) -> None:
            if left:
                loop.call_soon(cancel_after, left - 1)
            else:
                waits.cancel()

        async with client_of(namespace, hub) as client:
            receiver = client.receiver("0", ReceiverOptions(limit=2))
            await receiver.open()
            assert receiver._receiver is not None
            receiver._receiver._came = Came()
            waits = asyncio.ensure_future(receiver.receive_runs(2, max_wait_s=60))
            await client.sender().send([b"x"])
            done, _ = await asyncio.wait([waits], timeout=30)
            assert done and waits.cancelled()
            await receiver.close()
            run = await receiver.receive(max_wait_s=5)
            assert run is not None and list(run.sequence_numbers()) == [0]

    run_on("asyncio", scenario())


def test_latest_is_fixed_when_it_opens_so_that_no_second_attach_skips(
    namespace: RunningNamespace, new_hub: NewHub
) -> None:
    hub = new_hub()

    async def scenario() -> None:
        async with client_of(namespace, hub) as client:
            sender = client.sender()
            await sender.send([b"old"] * 3)
            receiver = client.receiver("0", ReceiverOptions(position=LATEST))
            await receiver.open()
            assert receiver.position == EventPosition(PositionKind.SEQUENCE_NUMBER, 2)
            (await client.connection())._abort()
            await sender.send([b"new"])
            run = await receiver.receive(max_wait_s=5)
            assert run is not None
            assert list(run.sequence_numbers()) == [3]

    run_on("asyncio", scenario())


def test_latest_of_an_empty_partition_begins_with_its_first_event(namespace: RunningNamespace, new_hub: NewHub) -> None:
    hub = new_hub()

    async def scenario() -> None:
        async with client_of(namespace, hub) as client:
            receiver = client.receiver("0", ReceiverOptions(position=LATEST))
            assert await receiver.receive(max_wait_s=0.05) is None
            await client.sender().send([b"first"])
            run = await receiver.receive(max_wait_s=5)
            assert run is not None
            assert list(run.sequence_numbers()) == [0]

    run_on("asyncio", scenario())


def test_closed_receiver_goes_on_where_it_was(namespace: RunningNamespace, new_hub: NewHub) -> None:
    hub = new_hub()

    async def scenario() -> None:
        async with client_of(namespace, hub) as client:
            await client.sender().send([b"x"] * 20)
            receiver = client.receiver("0", ReceiverOptions(credit=5))
            taken: list[int] = []
            while len(taken) < 20:
                run = await receiver.receive(max_wait_s=5)
                assert run is not None
                taken += run.sequence_numbers()
                await receiver.close()
            assert taken == list(range(20))

    run_on("asyncio", scenario())


@pytest.mark.usefixtures("owner_levels")
def test_stolen_partition_is_not_fought_for(namespace: RunningNamespace, new_hub: NewHub) -> None:
    hub = new_hub()

    async def scenario() -> None:
        async with client_of(namespace, hub) as client:
            old, new = client.receiver("0", ReceiverOptions(epoch=0)), client.receiver("0", ReceiverOptions(epoch=1))
            await old.open()
            await new.open()
            with pytest.raises(ServiceError) as stolen:
                await old.receive(max_wait_s=5)
            assert stolen.value.condition is LINK_STOLEN
            assert old.is_stolen
            assert not new.is_stolen

    run_on("asyncio", scenario())
