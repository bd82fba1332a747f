from collections.abc import Callable
from dataclasses import replace

import pytest

from hubweir.client.connection import Connection
from hubweir.client.management import Management
from hubweir.client.sender import Sender
from hubweir.errors import ARGUMENT_OUT_OF_RANGE, ENTITY_EXISTS, NOT_FOUND, UNAUTHORIZED, ServiceError
from hubweir.namespace.connection_string import ConnectionString
from hubweir.namespace.secret import Secret
from hubweir.testing.event_loops import run_on
from hubweir.testing.running_namespace import RunningNamespace

HOUR_MS = 3_600_000


def target_of(namespace: RunningNamespace) -> ConnectionString:
    return ConnectionString.parse(namespace.connection_string())


def test_hub_lives_from_create_to_delete(namespace: RunningNamespace) -> None:
    async def scenario() -> None:
        connection = await Connection.open(target_of(namespace))
        management = Management(connection)
        made = await management.create_hub(
            "Managed", partition_count=3, retention_ms=HOUR_MS, durability="relaxed", consumer_groups=("Reports",)
        )
        assert (made.name, made.partition_ids) == ("Managed", ("0", "1", "2"))
        assert (made.retention_ms, made.durability) == (HOUR_MS, "relaxed")
        await management.create_group("Managed", "More")
        (listed,) = [hub for hub in await management.list_hubs() if hub.name == "Managed"]
        assert {name.lower() for name in listed.consumer_groups} >= {"reports", "more"}
        await management.delete_group("Managed", "More")
        read = await management.hub("managed")
        assert (read.partition_ids, read.created_at_ms) == (made.partition_ids, made.created_at_ms)
        await management.delete_hub("Managed")
        with pytest.raises(ServiceError) as gone:
            await management.hub("Managed")
        assert gone.value.condition is NOT_FOUND
        await connection.close()

    run_on("asyncio", scenario())


def test_partition_tells_what_it_holds(namespace: RunningNamespace, new_hub: Callable[..., str]) -> None:
    hub = new_hub(partition_count=2)

    async def scenario() -> None:
        connection = await Connection.open(target_of(namespace))
        management = Management(connection)
        empty = await management.partition(hub, "1")
        assert empty.is_empty
        assert empty.last_sequence_number == -1
        await (await Sender.open(connection, f"{hub}/Partitions/1")).send([b"x"] * 4)
        held = await management.partition(hub, "1")
        assert (held.partition_id, held.begin_sequence_number, held.last_sequence_number) == ("1", 0, 3)
        assert int(held.last_offset) > 0
        assert held.last_enqueued_time_ms > 1_700_000_000_000
        assert not held.is_empty
        await connection.close()

    run_on("asyncio", scenario())


def test_refusals_carry_their_condition(namespace: RunningNamespace, new_hub: Callable[..., str]) -> None:
    hub = new_hub()

    async def scenario() -> None:
        connection = await Connection.open(target_of(namespace))
        management = Management(connection)
        for step, condition in (
            (management.partition(hub, "9"), ARGUMENT_OUT_OF_RANGE),
            (management.hub("none"), NOT_FOUND),
            (
                management.create_hub(hub, partition_count=1, retention_ms=HOUR_MS, durability="durable"),
                ENTITY_EXISTS,
            ),
            (
                management.create_hub("wide", partition_count=33, retention_ms=HOUR_MS, durability="durable"),
                ARGUMENT_OUT_OF_RANGE,
            ),
            (management.delete_hub("none"), NOT_FOUND),
            (management.create_group("none", "group"), NOT_FOUND),
        ):
            with pytest.raises(ServiceError) as refused:
                await step
            assert refused.value.condition is condition
        assert (await management.hub(hub)).name == hub  # the links are as good as before
        await connection.close()

    run_on("asyncio", scenario())


def test_wrong_key_manages_nothing(namespace: RunningNamespace, new_hub: Callable[..., str]) -> None:
    hub = new_hub()

    async def scenario() -> None:
        connection = await Connection.open(replace(target_of(namespace), key=Secret("wrong")))
        for step in (Management(connection).hub(hub), Management(connection).delete_hub(hub)):
            with pytest.raises(ServiceError) as refused:
                await step
            assert refused.value.condition is UNAUTHORIZED
        await connection.close()

    run_on("asyncio", scenario())
