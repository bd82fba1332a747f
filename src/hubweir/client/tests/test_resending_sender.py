import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from hubweir.client.connection import Connection
from hubweir.client.event_hub_client import EventHubClient
from hubweir.client.management import Management
from hubweir.client.retry import RetryPolicy
from hubweir.client.sender import OutcomeUnknown
from hubweir.errors import ILLEGAL_STATE, MESSAGE_TOO_LARGE, ServiceError
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.event_loops import run_on
from hubweir.testing.running_namespace import RunningNamespace
from hubweir.testing.server_process import ServerProcess

QUICK = RetryPolicy(attempts=200, first_s=0.05, longest_s=0.1)


@pytest.mark.parametrize("resend_unknown", [True, False])
def test_batch_whose_outcome_nobody_knows_is_sent_again_only_when_that_is_wanted(
    tmp_path: Path, resend_unknown: bool
) -> None:
    """The server is stopped before it can answer, then killed: the batch went out and was not stored."""

    async def scenario(server: ServerProcess) -> None:
        connection = await Connection.open(ConnectionString.parse(server.connection_string()))
        await Management(connection).create_hub(
            "orders", partition_count=1, retention_ms=3_600_000, durability="durable"
        )
        await connection.close()
        async with EventHubClient.from_connection_string(server.connection_string(), "orders", retry=QUICK) as client:
            sender = client.sender(resend_unknown=resend_unknown)
            await sender.send([b"first"])
            assert server.pid is not None
            os.kill(server.pid, signal.SIGSTOP)
            async with asyncio.TaskGroup() as group:
                sending = group.create_task(_ended(sender.send([b"second"])))
                await asyncio.sleep(0.05)
                await asyncio.to_thread(server.kill9)
                await asyncio.to_thread(server.start)
            assert isinstance(sending.result(), OutcomeUnknown) is not resend_unknown
            assert (await client.partition("0")).last_sequence_number == int(resend_unknown)
            await sender.send([b"third"])  # the sender is as good as before

    with ServerProcess(tmp_path / "data") as server:
        run_on("asyncio", scenario(server), seconds=60)


async def _ended(step: object) -> object:
    try:
        return await step  # type: ignore[misc]
    except ServiceError as error:
        return error


def test_senders_at_once_share_one_link(namespace: RunningNamespace, new_hub: Callable[..., str]) -> None:
    hub = new_hub()

    async def scenario() -> None:
        async with EventHubClient.from_connection_string(namespace.connection_string(), hub) as client:
            sender = client.sender()
            await asyncio.gather(*(sender.send([b"x"]) for _ in range(50)))
            links = [link for link in (await client.connection())._users if link.name.startswith("sender")]
            assert len(links) == 1
            assert (await client.partition("0")).last_sequence_number == 49

    run_on("asyncio", scenario())


def test_batches_are_filled_to_the_size_of_the_service_and_kept_whole(
    namespace: RunningNamespace, new_hub: Callable[..., str]
) -> None:
    hub = new_hub(partition_count=4)

    async def scenario() -> None:
        async with EventHubClient.from_connection_string(namespace.connection_string(), hub) as client:
            sender = client.sender()
            batch = await sender.batch(partition_key="k")
            while batch.try_add(bytes(100_000)):
                pass
            assert batch.count == 10
            await sender.send_batch(batch)
            held = [await client.partition(str(each)) for each in range(4)]
            assert sorted(state.last_sequence_number for state in held) == [-1, -1, -1, 9]
            with pytest.raises(ServiceError) as refused:
                await sender.send([bytes(2_000_000)])
            assert refused.value.condition is MESSAGE_TOO_LARGE

    run_on("asyncio", scenario())


def test_closed_sender_attaches_again_when_it_is_used(namespace: RunningNamespace, new_hub: Callable[..., str]) -> None:
    hub = new_hub()

    async def scenario() -> None:
        async with EventHubClient.from_connection_string(namespace.connection_string(), hub) as client:
            sender = client.sender()
            await sender.close()
            for _ in range(2):
                assert await sender.send([b"x"]) == 1
                await sender.close()

    run_on("asyncio", scenario())


def test_what_is_on_its_way_when_a_sender_is_closed_is_not_sent_again(
    namespace: RunningNamespace, new_hub: Callable[..., str]
) -> None:
    """It would be stored behind the caller's back, and leave a link that nobody closes."""
    hub = new_hub()

    async def scenario() -> None:
        async with EventHubClient.from_connection_string(namespace.connection_string(), hub, retry=QUICK) as client:
            sender = client.sender()
            await sender.max_message_size()
            assert sender._sender is not None
            sender._sender._send_waiting = lambda: None  # type: ignore[method-assign]  # the transport is full
            sending = asyncio.ensure_future(_ended(sender.send([b"x"])))
            while not sender._sender._waiting:
                await asyncio.sleep(0)
            await sender.close()
            ended = await sending
            assert isinstance(ended, ServiceError) and ended.condition is ILLEGAL_STATE
            assert not [link for link in (await client.connection())._users if link.name.startswith("sender")]
            assert (await client.partition("0")).last_sequence_number == -1
            assert await sender.send([b"y"]) == 1

    run_on("asyncio", scenario())
