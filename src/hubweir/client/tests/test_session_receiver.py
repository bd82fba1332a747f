import asyncio
import time
from collections.abc import Callable

import pytest

from hubweir.client.queue_client import QueueClient
from hubweir.client.queue_message import QueueMessage
from hubweir.client.session_receiver import SessionNotGranted
from hubweir.errors import SESSION_CANNOT_BE_LOCKED, SESSION_LOCK_LOST, TIMED_OUT, ServiceError
from hubweir.testing.event_loops import run_on
from hubweir.testing.running_namespace import RunningNamespace

NewQueue = Callable[..., str]
WAIT_S = 30.0


def client_of(namespace: RunningNamespace) -> QueueClient:
    return QueueClient.from_connection_string(namespace.connection_string())


def test_a_session_gives_its_messages_in_order_and_keeps_its_state(
    namespace: RunningNamespace, new_queue: NewQueue
) -> None:
    queue = new_queue(requires_session=True)

    async def scenario() -> None:
        async with client_of(namespace) as client:
            letters = [QueueMessage(b"%d" % number, session_id="ab"[number % 2]) for number in range(6)]
            await client.sender(queue).send(*letters)
            assert sorted(await client.sessions(queue)) == ["a", "b"]
            async with await client.accept_session(queue, "b", max_wait_s=WAIT_S) as session:
                assert session.session_id == "b" and session.locked_until_ms > time.time() * 1000
                bodies: list[bytes] = []
                while len(bodies) < 3:
                    run = await session.receive(10, max_wait_s=WAIT_S)
                    bodies += run.bodies()
                    await session.complete(run)
                assert bodies == [b"1", b"3", b"5"]
                assert await session.state() is None
                await session.set_state(b"half way")
                assert await session.state() == b"half way"
                assert await session.renew_session() >= time.time() * 1000
                with pytest.raises(SessionNotGranted) as held:
                    await client.accept_session(queue, "b", max_wait_s=WAIT_S)
                assert held.value.condition is SESSION_CANNOT_BE_LOCKED
            async with await client.accept_session(queue, max_wait_s=WAIT_S) as session:
                assert session.session_id == "a"
                (first,) = await session.receive(1, max_wait_s=WAIT_S)
                await session.defer(first)
                (deferred,) = await session.receive_deferred(first.sequence_number)
                await session.complete(deferred)
                await session.complete(await session.receive(10, max_wait_s=WAIT_S))
            assert await client.sessions(queue) == ["b"], "it has a state"
            async with await client.accept_session(queue, "b", max_wait_s=WAIT_S) as session:
                await session.set_state(None)
            assert await client.sessions(queue) == []

    run_on("asyncio", scenario())


def test_a_wait_for_a_session_ends_in_time_and_is_not_repeated(
    namespace: RunningNamespace, new_queue: NewQueue
) -> None:
    queue = new_queue(requires_session=True)

    async def scenario() -> None:
        async with client_of(namespace) as client:
            began = time.monotonic()
            with pytest.raises(SessionNotGranted) as late:
                await client.accept_session(queue, max_wait_s=0.5)
            assert late.value.condition is TIMED_OUT
            assert 0.4 < time.monotonic() - began < 20
            waiting = asyncio.create_task(client.accept_session(queue, max_wait_s=WAIT_S))
            await asyncio.sleep(0.2)
            await client.sender(queue).send(QueueMessage(b"x", session_id="new"))
            assert (await waiting).session_id == "new"

    run_on("asyncio", scenario())


def test_a_session_whose_lock_has_ended_says_so_and_what_was_not_settled_comes_again(
    namespace: RunningNamespace, new_queue: NewQueue
) -> None:
    queue = new_queue(requires_session=True, lock_duration_ms=5_000)

    async def scenario() -> None:
        async with client_of(namespace) as client:
            await client.sender(queue).send(QueueMessage(b"x", session_id="s"))
            session = await client.accept_session(queue, "s", max_wait_s=WAIT_S)
            run = await session.receive(1, max_wait_s=WAIT_S)
            assert session.lost is None
            with pytest.raises(ServiceError) as lost:
                await session.receive(1, max_wait_s=WAIT_S)
            assert lost.value.condition is SESSION_LOCK_LOST
            assert session.lost is not None and session.lost.condition is SESSION_LOCK_LOST
            with pytest.raises(ServiceError) as late:
                await session.complete(run)
            assert late.value.condition is SESSION_LOCK_LOST
            again = await client.accept_session(queue, "s", max_wait_s=WAIT_S)
            assert again.lost is None and again.link_name != session.link_name
            (message,) = await again.receive(1, max_wait_s=WAIT_S)
            assert (message.body, message.delivery_count) == (b"x", 1)

    run_on("asyncio", scenario())
