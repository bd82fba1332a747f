"""The official Python client of queues, asyncio, over plain TCP and TLS: what an application does with messages."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, TypeVar

import pytest
from azure.servicebus import NEXT_AVAILABLE_SESSION, ServiceBusMessage, ServiceBusReceivedMessage, ServiceBusSubQueue
from azure.servicebus.aio import AutoLockRenewer, ServiceBusClient, ServiceBusReceiver
from azure.servicebus.exceptions import (
    MessageLockLostError,
    MessageNotFoundError,
    MessageSizeExceededError,
    MessagingEntityDisabledError,
    OperationTimeoutError,
    ServiceBusAuthenticationError,
    SessionCannotBeLockedError,
)

from hubweir.namespace.entity import Availability
from tests.conformance.conftest import Doors
from tests.conformance.servicebus_python import LOCK_ENDS_S, LOCK_MS, QUIET_S, WAIT_S, now, options, texts

T = TypeVar("T")
Make = Callable[..., str]
PLAIN, TLS = "azure-servicebus, asyncio, plain", "azure-servicebus, asyncio, TLS"
pytestmark = [pytest.mark.conformance, pytest.mark.client(PLAIN)]
BOTH = pytest.mark.parametrize(
    "tls",
    [pytest.param(False, id="plain"), pytest.param(True, id="tls", marks=pytest.mark.client(TLS))],
)
LIMIT_S = 60.0


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(coroutine, LIMIT_S))


@asynccontextmanager
async def connected(doors: Doors, *, tls: bool = False, conn_str: str = "") -> AsyncIterator[ServiceBusClient]:
    string = conn_str or doors.connection_string(tls=tls)
    async with ServiceBusClient.from_connection_string(string, **options(doors, tls=tls)) as client:
        yield client


async def send(client: ServiceBusClient, queue: str, *messages: ServiceBusMessage) -> None:
    async with client.get_queue_sender(queue) as sender:
        await sender.send_messages(list(messages))


async def receive(receiver: ServiceBusReceiver, count: int) -> list[ServiceBusReceivedMessage]:
    """The next messages, exactly so many."""
    got: list[ServiceBusReceivedMessage] = []
    end = time.monotonic() + WAIT_S
    while len(got) < count and (left := end - time.monotonic()) > 0:
        got += await receiver.receive_messages(max_message_count=count - len(got), max_wait_time=left)
    assert len(got) == count, f"{len(got)} of {count} came"
    return got


async def receive_one(receiver: ServiceBusReceiver) -> ServiceBusReceivedMessage:
    [message] = await receive(receiver, 1)
    return message


async def is_empty(receiver: ServiceBusReceiver) -> bool:
    return not await receiver.receive_messages(max_message_count=1, max_wait_time=QUIET_S)


@pytest.mark.both_ways
@BOTH
@pytest.mark.sb(3, 4, 7, 8, 26, 31, 43, 45, 50, 166)
@pytest.mark.feature("send batch")
def test_messages_are_sent_received_and_completed(doors: Doors, queue: str, tls: bool) -> None:
    async def task() -> None:
        async with connected(doors, tls=tls) as client, client.get_queue_receiver(queue) as receiver:
            await send(client, queue, *(ServiceBusMessage(text) for text in "abc"))
            got = await receive(receiver, 3)
            assert texts(got) == ["a", "b", "c"]
            assert [message.sequence_number for message in got] == [1, 2, 3]
            for message in got:
                await receiver.complete_message(message)
            assert await is_empty(receiver)
            assert await receiver.peek_messages(sequence_number=1) == []

    run(task())


@pytest.mark.sb(44)
@pytest.mark.feature("receive and delete")
def test_receive_and_delete(doors: Doors, queue: str) -> None:
    async def task() -> None:
        async with (
            connected(doors) as client,
            client.get_queue_receiver(queue, receive_mode="receiveanddelete") as receiver,
        ):
            await send(client, queue, ServiceBusMessage("x"))
            assert (await receive_one(receiver)).lock_token is None
            assert await receiver.peek_messages(sequence_number=1) == []

    run(task())


@pytest.mark.sb(51, 52, 53, 55, 95)
@pytest.mark.feature("settle")
def test_abandon_defer_and_dead_letter(doors: Doors, queue: str) -> None:
    async def task() -> None:
        async with connected(doors) as client, client.get_queue_receiver(queue) as receiver:
            await send(client, queue, ServiceBusMessage("x"))
            await receiver.abandon_message(await receive_one(receiver))
            message = await receive_one(receiver)
            assert message.delivery_count == 1
            await receiver.defer_message(message)
            assert await is_empty(receiver)
            [message] = await receiver.receive_deferred_messages(message.sequence_number)
            await receiver.dead_letter_message(message, reason="broken", error_description="no wheels")
            with pytest.raises(MessageNotFoundError):
                await receiver.receive_deferred_messages(message.sequence_number)
            async with client.get_queue_receiver(queue, sub_queue=ServiceBusSubQueue.DEAD_LETTER) as dead:
                message = await receive_one(dead)
                assert (message.dead_letter_reason, message.dead_letter_error_description) == ("broken", "no wheels")
                await dead.complete_message(message)

    run(task())


@pytest.mark.sb(58)
@pytest.mark.feature("receive")
def test_a_closing_receiver_gives_back_what_it_prefetched(doors: Doors, queue: str) -> None:
    async def task() -> None:
        async with connected(doors) as client:
            await send(client, queue, *(ServiceBusMessage(f"{number}") for number in range(10)))
            async with client.get_queue_receiver(queue, prefetch_count=9) as first:
                await receive_one(first)
            async with client.get_queue_receiver(queue) as second:
                got = await receive(second, 9)
                assert texts(got) == [f"{number}" for number in range(1, 10)]
                assert {message.delivery_count for message in got} == {0}

    run(task())


@pytest.mark.sb(59, 60)
@pytest.mark.feature("locks")
def test_locks_end_or_are_renewed(doors: Doors, make_queue: Make) -> None:
    queue = make_queue(lock_duration_ms=LOCK_MS)

    async def task() -> None:
        async with (
            connected(doors) as client,
            client.get_queue_receiver(queue) as receiver,
            AutoLockRenewer() as renewer,
        ):
            await send(client, queue, ServiceBusMessage("lost"), ServiceBusMessage("kept"))
            lost, kept = await receive(receiver, 2)
            renewer.register(receiver, kept, max_lock_renewal_duration=60)
            await asyncio.sleep(LOCK_ENDS_S)
            with pytest.raises(MessageLockLostError):
                await receiver.complete_message(lost)
            again = await receive_one(receiver)
            assert (str(again), again.delivery_count) == ("lost", 1)
            await receiver.complete_message(kept)
            await receiver.complete_message(again)

    run(task())


@pytest.mark.both_ways
@pytest.mark.sb(88, 89, 92, 93)
@pytest.mark.feature("schedule")
def test_scheduled_messages_come_at_their_time_and_peek_shows_them(doors: Doors, queue: str) -> None:
    async def task() -> None:
        async with (
            connected(doors) as client,
            client.get_queue_receiver(queue) as receiver,
            client.get_queue_sender(queue) as sender,
        ):
            assert await receiver.peek_messages() == []
            due = now().replace(microsecond=0) + timedelta(seconds=3)
            first, second = await sender.schedule_messages([ServiceBusMessage("x"), ServiceBusMessage("y")], due)
            await sender.cancel_scheduled_messages(second)
            with pytest.raises(MessageNotFoundError):
                await sender.cancel_scheduled_messages(second)
            [peeked] = await receiver.peek_messages(5)
            assert peeked.sequence_number == first
            message = await receive_one(receiver)
            assert due <= now() < due + timedelta(seconds=1)
            assert message.enqueued_time_utc.replace(microsecond=0) == due

    run(task())


@pytest.mark.both_ways
@BOTH
@pytest.mark.sb(74, 75, 77, 78, 80, 83)
@pytest.mark.feature("sessions")
def test_sessions(doors: Doors, make_queue: Make, tls: bool) -> None:
    queue = make_queue(requires_session=True)

    async def task() -> None:
        async with connected(doors, tls=tls) as client:
            await send(client, queue, *(ServiceBusMessage(body, session_id=body[0]) for body in ("a1", "b1", "a2")))
            async with client.get_queue_receiver(queue, session_id=NEXT_AVAILABLE_SESSION, max_wait_time=5) as one:
                assert one.session.session_id == "a"
                assert timedelta(seconds=50) < one.session.locked_until_utc - now() <= timedelta(seconds=60)
                assert texts(await receive(one, 2)) == ["a1", "a2"]
                await one.session.set_state("kept")
                assert await one.session.get_state() == b"kept"
                assert await one.session.renew_lock() > now()
                with pytest.raises(SessionCannotBeLockedError):
                    async with client.get_queue_receiver(queue, session_id="a") as two:
                        await two.receive_messages(max_wait_time=1)
                async with client.get_queue_receiver(queue, session_id="b") as two:
                    assert texts(await receive(two, 1)) == ["b1"]
                    with pytest.raises(OperationTimeoutError):
                        async with client.get_queue_receiver(
                            queue, session_id=NEXT_AVAILABLE_SESSION, max_wait_time=2
                        ) as three:
                            await three.receive_messages(max_wait_time=1)

    run(task())


@pytest.mark.sb(11, 23, 34, 38, 72)
@pytest.mark.feature("errors")
def test_what_is_refused(doors: Doors, make_queue: Make) -> None:
    small = make_queue(max_message_kilobytes=256)
    no_sends = make_queue(availability=Availability.SEND_DISABLED)
    no_receives = make_queue(availability=Availability.RECEIVE_DISABLED)

    async def task() -> None:
        async with connected(doors) as client:
            with pytest.raises(MessageSizeExceededError):
                async with client.get_queue_sender(small) as sender:
                    await sender.send_messages(ServiceBusMessage(b"x" * 300_000))
            with pytest.raises(MessagingEntityDisabledError):
                await send(client, no_sends, ServiceBusMessage("x"))
            with pytest.raises(MessagingEntityDisabledError):
                async with client.get_queue_receiver(no_receives) as receiver:
                    await receiver.receive_messages(max_wait_time=1)
            with pytest.raises(ServiceBusAuthenticationError):
                await send(client, "nowhere", ServiceBusMessage("x"))
        async with connected(doors, conn_str=doors.connection_string(key="wrong")) as client:
            with pytest.raises(ServiceBusAuthenticationError):
                await send(client, small, ServiceBusMessage("x"))

    run(task())


@pytest.mark.sb(87, 167)
@pytest.mark.feature("peek")
def test_concurrent_requests_of_two_clients_get_their_own_answers(doors: Doors, queue: str) -> None:
    async def task() -> None:
        async with connected(doors) as one, connected(doors) as two:
            await send(one, queue, *(ServiceBusMessage(f"{number}") for number in range(10)))
            async with one.get_queue_receiver(queue) as first, two.get_queue_receiver(queue) as second:
                for _ in range(3):
                    asked = [
                        each.peek_messages(1, sequence_number=number + 1)
                        for number in range(10)
                        for each in (first, second)
                    ]
                    got = [messages[0] for messages in await asyncio.gather(*asked)]
                    assert texts(got) == [f"{number}" for number in range(10) for _ in range(2)]

    run(task())
