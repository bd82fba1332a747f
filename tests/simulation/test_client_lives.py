"""hubweir's own client over hours, in virtual time, against the gateway: renewals, heartbeats, idle links, retries.

Every timer of the client goes off here, and every timer of the gateway beside it: an hour takes a fraction of a second.
"""

from __future__ import annotations

import asyncio

import pytest

from hubweir.client.event_hub_client import EventHubClient
from hubweir.client.event_processor import EventProcessor
from hubweir.client.memory_checkpoint_store import MemoryCheckpointStore
from hubweir.client.processor_options import ProcessorOptions
from hubweir.client.retry import RetryPolicy
from hubweir.gateway.amqp.tests.world import World
from hubweir.gateway.settings import GatewaySettings
from tests.simulation.virtual_time import CONNECTION_STRING, VirtualLoop, live

MINUTE_S, HOUR_S = 60.0, 3_600.0


def client_of(**options: object) -> EventHubClient:
    return EventHubClient.from_connection_string(CONNECTION_STRING, "hub", **options)  # type: ignore[arg-type]


async def bodies(receiver, count: int) -> list[bytes]:  # type: ignore[no-untyped-def]
    got: list[bytes] = []
    while len(got) < count:
        run = await receiver.receive(max_wait_s=30.0)
        assert run is not None, f"{len(got)} of {count} events came within 30 s"
        got += [bytes(event.body) for event in run]
    return got


@pytest.mark.parametrize("pause_s", [4 * MINUTE_S, 50 * MINUTE_S, 3 * HOUR_S], ids=["busy", "now and then", "idle"])
def test_a_client_lives_for_hours_on_one_connection(pause_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(hubs={"hub": 1})

    async def scenario(loop: VirtualLoop) -> None:
        async with client_of() as client:
            sender, receiver = client.sender(), client.receiver("0")
            for number in range(int(6 * HOUR_S / pause_s) + 1):
                await sender.send([b"%d" % number])
                assert await bodies(receiver, 1) == [b"%d" % number]
                assert (await client.describe()).name == "hub"
                await asyncio.sleep(pause_s)
            assert len(loop.wires) == 1
            assert (await client.connection()).error is None

    live(world, monkeypatch, scenario)


def test_a_reader_that_only_waits_gets_what_comes_after_hours(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(hubs={"hub": 1})

    async def scenario(loop: VirtualLoop) -> None:
        async with client_of() as reader, client_of() as writer:
            receiver = reader.receiver("0")
            assert await receiver.receive(max_wait_s=5 * HOUR_S) is None
            await writer.sender().send([b"at last"])
            began = loop.time()
            assert await bodies(receiver, 1) == [b"at last"]
            assert loop.time() - began < 1.0
            assert len(loop.wires) == 2

    live(world, monkeypatch, scenario)


def test_a_service_that_is_away_for_a_while_costs_nothing_but_the_while(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(hubs={"hub": 1})

    async def scenario(loop: VirtualLoop) -> None:
        async with client_of(retry=RetryPolicy(attempts=20)) as client:
            sender, receiver = client.sender(), client.receiver("0")
            for number in range(6):
                await sender.send([b"%d" % number])
                assert await bodies(receiver, 1) == [b"%d" % number]
                await asyncio.sleep(HOUR_S)
                loop.is_away = True
                loop.wires[-1].cut()
                loop.call_later(5 * MINUTE_S, setattr, loop, "is_away", False)
            assert 6 <= len(loop.wires) <= 7

    live(world, monkeypatch, scenario)


def test_a_renewal_that_fails_is_tried_again_before_the_token_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """The service refuses the first renewals, as one whose rule is changed and changed back; links outlive that."""
    world = World(hubs={"hub": 1})

    async def scenario(loop: VirtualLoop) -> None:
        async with client_of() as client:
            receiver = client.receiver("0")
            await client.sender().send([b"1"])
            assert await bodies(receiver, 1) == [b"1"]
            await asyncio.sleep(0.89 * HOUR_S)
            taken = world.gateway.authorization.put_token
            refusals: list[str] = []

            def refuse(claims: object, token: str, audience: str) -> None:
                refusals.append(audience)
                taken(claims, token + "x", audience)  # type: ignore[arg-type]

            monkeypatch.setattr(world.gateway.authorization, "put_token", refuse)
            await asyncio.sleep(0.05 * HOUR_S)
            monkeypatch.setattr(world.gateway.authorization, "put_token", taken)
            await asyncio.sleep(2 * HOUR_S)
            assert len(refusals) >= 2
            await client.sender().send([b"2"])
            assert await bodies(receiver, 1) == [b"2"]
            assert len(loop.wires) == 1

    live(world, monkeypatch, scenario)


def test_a_processor_keeps_its_partitions_for_hours_and_another_takes_them_when_it_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(hubs={"hub": 4})
    seen: list[tuple[str, bytes]] = []

    async def scenario(loop: VirtualLoop) -> None:
        def now_s() -> float:
            return world.env.now_ms() / 1_000

        store = MemoryCheckpointStore(now_s)

        def processor_of(client: EventHubClient, name: str) -> EventProcessor:
            async def handle(context, run) -> None:  # type: ignore[no-untyped-def]
                seen.extend((name, bytes(event.body)) for event in run)
                await context.checkpoint()

            return EventProcessor(client, store, handle, ProcessorOptions(owner_id=name), now_s=now_s)

        async with client_of() as one, client_of() as two, client_of() as writer:
            first, second = processor_of(one, "first"), processor_of(two, "second")
            await first.start()
            await second.start()
            sender = writer.sender()
            for number in range(40):
                await sender.send([b"%d" % number])
                await asyncio.sleep(6 * MINUTE_S)
            assert len(first.partition_ids) == len(second.partition_ids) == 2
            assert {name for name, _ in seen} == {"first", "second"}
            await first.stop()
            await asyncio.sleep(5 * MINUTE_S)
            assert second.partition_ids == ("0", "1", "2", "3")
            await sender.send([b"the last"])
            await asyncio.sleep(MINUTE_S)
            await second.stop()
            assert sorted(body for _, body in seen) == sorted([*(b"%d" % number for number in range(40)), b"the last"])
            assert len(loop.wires) == 3

    live(world, monkeypatch, scenario)


def test_without_renewals_the_claims_end_and_the_client_puts_new_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control arm: a client that renews too late loses its links every hour, and finds its way back."""
    world = World(hubs={"hub": 1}, settings=GatewaySettings())
    monkeypatch.setattr("hubweir.client.connection_tokens._REFRESH_AFTER", 1.5)

    async def scenario(loop: VirtualLoop) -> None:
        async with client_of() as client:
            await client.sender().send([b"1"])
            connection = await client.connection()
            receiver = client.receiver("0")
            assert await bodies(receiver, 1) == [b"1"]
            await asyncio.sleep(1.1 * HOUR_S)
            assert connection.error is None
            assert receiver._receiver is not None and receiver._receiver.error is not None

    live(world, monkeypatch, scenario)
