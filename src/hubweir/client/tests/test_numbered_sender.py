import asyncio
import zlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from hubweir.client import numbered_sender
from hubweir.client.connection import Connection
from hubweir.client.event_batch import EventBatch
from hubweir.client.event_hub_client import EventHubClient
from hubweir.client.management import Management
from hubweir.client.numbered_sender import NUMBERS_ROOM_BYTES, NumberedSender
from hubweir.client.sender import OutcomeUnknown
from hubweir.errors import (
    ARGUMENT_OUT_OF_RANGE,
    NOT_FOUND,
    NOT_IMPLEMENTED,
    OUT_OF_ORDER_SEQUENCE,
    PRODUCER_EPOCH_STOLEN,
    SERVER_BUSY,
    ServiceError,
)
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.event_loops import run_on
from hubweir.testing.running_namespace import RunningNamespace, running_namespace
from hubweir.testing.server_process import ServerProcess

NewHub = Callable[..., str]


def rows_of(round_number: int, count: int) -> list[bytes]:
    return [b"%d:%d" % (round_number, number) for number in range(1, count + 1)]


def digest_of(rows: list[bytes]) -> int:
    return zlib.crc32(b"|".join(rows)) if rows else 0


def batch_of(sender: NumberedSender, rows: list[bytes], *, partition_key: str | None = None) -> EventBatch:
    batch = sender.batch(partition_key=partition_key)
    assert all(batch.try_add(row) for row in rows)
    return batch


async def bodies_of(client: EventHubClient) -> list[bytes]:
    held = await client.partition("0")
    receiver, bodies = client.receiver("0"), []
    while len(bodies) <= held.last_sequence_number:
        run = await receiver.receive(max_wait_s=5)
        assert run is not None
        bodies += [bytes(body) for body in run.bodies()]
    return bodies


def test_a_round_is_resumed_behind_what_is_stored_and_the_next_one_begins_at_one(
    namespace: RunningNamespace, new_hub: NewHub
) -> None:
    hub, rows = new_hub(), rows_of(0, 9)

    async def scenario() -> None:
        async with EventHubClient.from_connection_string(namespace.connection_string(), hub) as client:
            first = await client.numbered_sender("0", producer_id=7, round=0)
            assert (first.producer_id, first.round, first.epoch, first.last_number, first.digest) == (7, 0, 0, 0, 0)
            in_flight = [
                first.submit(batch_of(first, rows[:3], partition_key="k"), 1, digest_of(rows[:3])),
                first.submit(batch_of(first, rows[3:5]), 4, digest_of(rows[:5])),
            ]
            await asyncio.gather(*in_flight)
            again = await client.numbered_sender("0", producer_id=7, round=0)
            assert (again.epoch, again.last_number) == (1, 5) and again.digest == digest_of(rows[:5])
            with pytest.raises(ServiceError) as refused:
                await first.submit(batch_of(first, rows[5:6]), 6, 1)
            assert refused.value.condition.symbol == PRODUCER_EPOCH_STOLEN.symbol
            await again.submit(batch_of(again, rows[3:5]), 4, digest_of(rows[:5]))  # a duplicate
            await again.submit(batch_of(again, rows[5:]), 6, digest_of(rows))
            following = await client.numbered_sender("0", producer_id=7, round=1)
            assert (following.round, following.epoch, following.last_number, following.digest) == (1, 0, 0, 0)
            await following.submit(batch_of(following, rows_of(1, 2)), 1, 5)
            with pytest.raises(ServiceError) as fenced:
                await client.numbered_sender("0", producer_id=7, round=0)
            assert fenced.value.condition.symbol == PRODUCER_EPOCH_STOLEN.symbol
            assert await bodies_of(client) == rows + rows_of(1, 2)
            await following.close()
            assert following.error is not None

    run_on("asyncio", scenario())


def test_refusals_are_seen_by_whoever_submits_and_what_follows_one_is_out_of_order() -> None:
    """The first batch passes and owes its unit a minute, so the others are refused however slowly they come."""
    owing, limit_s = 60_000, 50  # events, of a thousand a second; less time than that

    async def scenario(text: str) -> None:
        connection = await Connection.open(ConnectionString.parse(text))
        sender = await NumberedSender.open(connection, "paced", "0", producer_id=7, round=0)
        first, others = batch_of(sender, [b"x"] * owing), [batch_of(sender, [b"y"] * 2) for _ in range(7)]
        numbered = [(batch, owing + 1 + 2 * at, at) for at, batch in enumerate(others)]
        submitted = [sender.submit(first, 1, 0), *(sender.submit(*each) for each in numbered)]
        taken, *refused = await asyncio.gather(*submitted, return_exceptions=True)
        assert taken is None and len(refused) == len(others)
        for error in refused:
            assert isinstance(error, ServiceError) and error.condition.symbol == SERVER_BUSY.symbol
        await Management(connection).change_namespace(throughput_units=0)  # off: there is room at once
        with pytest.raises(ServiceError) as behind:
            await sender.submit(*numbered[1])
        assert behind.value.condition.symbol == OUT_OF_ORDER_SEQUENCE.symbol
        await asyncio.gather(*(sender.submit(*each) for each in numbered))
        held = await Management(connection).partition("paced", "0")
        assert held.last_sequence_number + 1 == owing + 2 * len(others)
        await connection.close()

    with running_namespace(throughput_units=1) as namespace:
        namespace.create_event_hub("paced")
        run_on("asyncio", scenario(namespace.connection_string()), seconds=limit_s)


def test_after_a_kill_a_round_goes_on_where_it_was(tmp_path: Path) -> None:
    rows, was_accepted = rows_of(3, 40), []

    async def before(client: EventHubClient) -> None:
        management = Management(await client.connection())
        await management.create_hub("orders", partition_count=1, retention_ms=3_600_000, durability="durable")
        sender = await client.numbered_sender("0", producer_id=9, round=3)
        for at in range(0, 20, 5):
            await sender.submit(batch_of(sender, rows[at : at + 5]), at + 1, digest_of(rows[: at + 5]))
        open_end = sender.submit(batch_of(sender, rows[20:25]), 21, digest_of(rows[:25]))
        await asyncio.to_thread(server.kill9)
        (ended,) = await asyncio.gather(open_end, return_exceptions=True)
        assert ended is None or isinstance(ended, OutcomeUnknown)
        was_accepted.append(ended is None)

    async def after(client: EventHubClient) -> None:
        sender = await client.numbered_sender("0", producer_id=9, round=3)
        assert sender.last_number in ((25,) if was_accepted[0] else (20, 25)) and sender.epoch == 1
        assert sender.digest == digest_of(rows[: sender.last_number])
        await sender.submit(batch_of(sender, rows[sender.last_number :]), sender.last_number + 1, digest_of(rows))
        assert await bodies_of(client) == rows

    async def on_a_client(scenario: Callable[[EventHubClient], Awaitable[None]]) -> None:
        async with EventHubClient.from_connection_string(server.connection_string(), "orders") as client:
            await scenario(client)

    with ServerProcess(tmp_path / "data") as server:
        run_on("asyncio", on_a_client(before))
        server.restart()
        run_on("asyncio", on_a_client(after))


def test_what_the_wire_has_no_number_for_is_refused_before_anything_is_sent(
    namespace: RunningNamespace, new_hub: NewHub
) -> None:
    hub = new_hub()

    async def scenario() -> None:
        connection = await Connection.open(ConnectionString.parse(namespace.connection_string()))
        for producer_id, round_number in ((-1, 0), (1, -1), (1, 2**63)):
            with pytest.raises(ServiceError) as refused:
                await NumberedSender.open(connection, hub, "0", producer_id=producer_id, round=round_number)
            assert refused.value.condition is ARGUMENT_OUT_OF_RANGE
        sender = await NumberedSender.open(connection, hub, "0", producer_id=1, round=0)
        for number, digest in ((-1, 0), (2**31, 0), (1, -1), (1, 2**63)):
            with pytest.raises(ServiceError):
                sender.submit(batch_of(sender, [b"x"]), number, digest)
        full = sender.batch()
        while full.try_add(b"x" * 10_000):
            pass
        await sender.submit(full, 1, 2**63 - 1)
        assert full.size_bytes > sender.max_message_size - 20_000 > NUMBERS_ROOM_BYTES
        with pytest.raises(ServiceError) as missing:
            await NumberedSender.open(connection, "no-such-hub", "0", producer_id=1, round=0)
        assert missing.value.condition.symbol == NOT_FOUND.symbol
        await connection.close()

    run_on("asyncio", scenario())


def test_a_service_that_offers_no_rounds_is_told_apart() -> None:
    for answer in (None, SimpleNamespace(offered_capabilities=None, properties=None)):
        with pytest.raises(ServiceError) as refused:
            numbered_sender._offered(SimpleNamespace(answer=answer, what="hub/Partitions/0"))  # type: ignore[arg-type]
        assert refused.value.condition is NOT_IMPLEMENTED
