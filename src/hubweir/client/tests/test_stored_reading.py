"""Receivers that ask for stored batches, against a service in this process, and against one that has no such thing."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Callable

import pytest

from hubweir.amqp.messaging.annotations import STORED_BATCHES
from hubweir.amqp.transport.events import DeliveriesReceived
from hubweir.client.connection import Connection
from hubweir.client.event_hub_client import EventHubClient
from hubweir.client.event_run import EventRun
from hubweir.client.receiver import EVENTS_A_DELIVERY, Receiver, ReceiverOptions, address_of
from hubweir.client.retry import RetryPolicy
from hubweir.client.sender import Sender
from hubweir.client.stored_run import StoredRun
from hubweir.errors import DECODE_ERROR, ServiceError
from hubweir.event_hub.event_position import EventPosition, PositionKind
from hubweir.gateway.amqp import outgoing_events
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.event_loops import run_on
from hubweir.testing.running_namespace import RunningNamespace

NewHub = Callable[..., str]
EVENTS = 3_000
SIZE = 300  # so that they take more than one delivery


def client_of(namespace: RunningNamespace, hub: str) -> EventHubClient:
    retry = RetryPolicy(first_s=0.01, longest_s=0.01)
    return EventHubClient.from_connection_string(namespace.connection_string(), hub, retry=retry)


async def fill(client: EventHubClient, count: int = EVENTS) -> None:
    await client.sender().send([b"%d" % number + bytes(SIZE) for number in range(count)])


def at(number: int) -> EventPosition:
    return EventPosition(PositionKind.SEQUENCE_NUMBER, number, True)


async def read(client: EventHubClient, *, position: int = 0, limit: int, **more: int) -> list[EventRun]:
    options = ReceiverOptions(position=at(position), limit=limit, stored_batches=True, **more)  # type: ignore[arg-type]
    receiver = client.receiver("0", options)
    runs = await receiver.receive_runs(limit, max_wait_s=5)
    assert await receiver.receive(max_wait_s=0.05) is None
    await receiver.close()
    return runs


def numbers(runs: list[EventRun]) -> list[int]:
    return [number for run in runs for number in run.sequence_numbers()]


def test_exactly_the_events_asked_for_come_as_stored_batches(namespace: RunningNamespace, new_hub: NewHub) -> None:
    hub = new_hub()

    async def scenario() -> None:
        async with client_of(namespace, hub) as client:
            await fill(client)
            for position, limit in ((0, EVENTS), (1_001, 777), (EVENTS - 1, 1)):
                runs = await read(client, position=position, limit=limit)
                assert all(isinstance(run, StoredRun) for run in runs)
                assert numbers(runs) == list(range(position, position + limit))
                assert sum(run.credit_count for run in runs) <= 1 + limit // 50
                assert runs[-1][-1 + len(runs[-1])].body == b"%d" % (position + limit - 1) + bytes(SIZE)

    run_on("asyncio", scenario())


def test_a_service_without_them_sends_single_events(
    namespace: RunningNamespace, new_hub: NewHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = new_hub()
    monkeypatch.setattr(outgoing_events, "takes_batches", lambda link: False)

    async def scenario() -> None:
        async with client_of(namespace, hub) as client:
            await fill(client)
            runs = await read(client, position=1_001, limit=777)
            assert not any(isinstance(run, StoredRun) for run in runs)
            assert numbers(runs) == list(range(1_001, 1_778))

    run_on("asyncio", scenario())


def test_an_offer_that_was_not_asked_for_changes_nothing(
    namespace: RunningNamespace, new_hub: NewHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A peer may list whatever it can; the events of a plain link stay single, and its limit holds."""
    hub, single = new_hub(), outgoing_events.SingleEvents

    def offering(*arguments: object) -> outgoing_events.SingleEvents:
        outgoing = single(*arguments)  # type: ignore[arg-type]
        outgoing.offered = (STORED_BATCHES,)
        return outgoing

    monkeypatch.setattr(outgoing_events, "SingleEvents", offering)

    async def scenario() -> None:
        async with client_of(namespace, hub) as client:
            await fill(client, 400)
            receiver = client.receiver("0", ReceiverOptions(limit=300, credit=EVENTS_A_DELIVERY))
            runs = await receiver.receive_runs(300, max_wait_s=5)
            assert numbers(runs) == list(range(300))
            assert not any(isinstance(run, StoredRun) for run in runs)
            await receiver.close()

    run_on("asyncio", scenario())


def test_who_takes_few_events_at_a_time_gets_them_one_by_one(namespace: RunningNamespace, new_hub: NewHub) -> None:
    hub = new_hub()

    async def scenario() -> None:
        async with client_of(namespace, hub) as client:
            await fill(client, 20)
            for credit, is_stored in ((EVENTS_A_DELIVERY - 1, False), (EVENTS_A_DELIVERY, True)):
                runs = await read(client, limit=20, credit=credit)
                assert [isinstance(run, StoredRun) for run in runs] == [is_stored] * len(runs)
                assert numbers(runs) == list(range(20))

    run_on("asyncio", scenario())


def test_a_lost_connection_loses_nothing_and_repeats_nothing(namespace: RunningNamespace, new_hub: NewHub) -> None:
    hub = new_hub()

    async def scenario() -> None:
        async with client_of(namespace, hub) as client:
            await fill(client)
            receiver = client.receiver(
                "0", ReceiverOptions(limit=EVENTS, credit=EVENTS_A_DELIVERY, stored_batches=True)
            )
            taken: list[int] = []
            while len(taken) < EVENTS:
                run = await receiver.receive(max_wait_s=5)
                assert run is not None
                taken += run.sequence_numbers()
                (await client.connection())._abort()
            assert taken == list(range(EVENTS))

    run_on("asyncio", scenario())


def test_what_a_cancelled_wait_had_is_given_by_the_next(namespace: RunningNamespace, new_hub: NewHub) -> None:
    hub = new_hub()

    async def scenario() -> None:
        async with client_of(namespace, hub) as client:
            await fill(client)
            receiver = client.receiver("0", ReceiverOptions(position=at(7), stored_batches=True))
            waiting = asyncio.ensure_future(receiver.receive_runs(EVENTS, max_wait_s=30))  # more than there are
            while receiver.position == at(7):
                await asyncio.sleep(0.01)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert numbers(await receiver.receive_runs(EVENTS - 7, max_wait_s=5)) == list(range(7, EVENTS))

    run_on("asyncio", scenario())


def test_credit_bounds_the_deliveries_that_nobody_takes(namespace: RunningNamespace, new_hub: NewHub) -> None:
    hub = new_hub()

    async def scenario() -> None:
        connection = await Connection.open(ConnectionString.parse(namespace.connection_string()))
        await (await Sender.open(connection, hub)).send([bytes(SIZE)] * EVENTS)
        address = address_of(hub, "$Default", "0")
        receiver = await Receiver.open(
            connection, address, ReceiverOptions(credit=3 * EVENTS_A_DELIVERY, stored_batches=True)
        )
        while receiver._untaken < 3:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)  # in which more would come
        assert (receiver._untaken, receiver._link.credit) == (3, 0)
        run = await receiver.receive(max_wait_s=5)
        assert run is not None and run.credit_count <= 3
        await connection.close()

    run_on("asyncio", scenario())


def test_batches_that_are_not_sound_end_the_link_behind_those_before_them(
    namespace: RunningNamespace, new_hub: NewHub
) -> None:
    hub = new_hub()

    async def scenario() -> None:
        connection = await Connection.open(ConnectionString.parse(namespace.connection_string()))
        await (await Sender.open(connection, hub)).send([b"x"] * 10)
        receiver = await Receiver.open(
            connection, address_of(hub, "$Default", "0"), ReceiverOptions(stored_batches=True)
        )
        while not receiver.has_events:
            await asyncio.sleep(0.01)
        for _ in range(2):
            noise = DeliveriesReceived(receiver._link, memoryview(b"noise"), array("q", (9, 0, 5, 1, 0x68576201)), 1)
            receiver.on_deliveries(noise)
        run = await receiver.receive(max_wait_s=5)
        assert run is not None and len(run) == 10
        with pytest.raises(ServiceError) as caught:
            await receiver.receive(max_wait_s=5)
        assert caught.value.condition is DECODE_ERROR
        assert connection.error is None
        await connection.close()

    run_on("asyncio", scenario())
