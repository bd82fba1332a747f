"""Sending, scheduling, refusals and connections that end, against a running service."""

import time
from collections.abc import Coroutine
from typing import Any

import pytest

from hubweir.client.queue_client import QueueClient
from hubweir.client.queue_message import QueueMessage
from hubweir.client.tests.queue_scenarios import SOON_S, NewQueue, Play, take
from hubweir.errors import (
    ARGUMENT_ERROR,
    MESSAGE_NOT_FOUND,
    MESSAGE_TOO_LARGE,
    NOT_ALLOWED,
    NOT_FOUND,
    ServiceError,
)


def test_messages_come_as_they_were_sent_and_a_completed_one_is_gone(play: Play, new_queue: NewQueue) -> None:
    queue = new_queue()

    async def scenario(client: QueueClient) -> None:
        rich = QueueMessage(
            b"body",
            properties={"count": 3, "word": "é"},
            message_id="m-1",
            subject="s",
            correlation_id="c",
            content_type="text/plain",
            reply_to="back",
            session_id="one",
            reply_to_session_id="two",
            time_to_live_ms=60_000,
        )
        await client.sender(queue).send(rich)
        await client.sender(queue).send(b"two", QueueMessage(b"three"))
        receiver = client.receiver(queue)
        run = await take(receiver, 3)
        first = run[0]
        assert run.bodies() == [b"body", b"two", b"three"]
        assert run.sequence_numbers() == [1, 2, 3]
        assert first.properties == {"count": 3, "word": "é"}
        assert (first.message_id, first.subject, first.correlation_id) == ("m-1", "s", "c")
        assert (first.content_type, first.reply_to) == ("text/plain", "back")
        assert (first.session_id, first.reply_to_session_id) == ("one", "two")
        assert (first.time_to_live_ms, first.delivery_count, first.state) == (60_000, 0, "active")
        assert abs(first.enqueued_time_ms - time.time() * 1000) < 60_000
        assert first.locked_until_ms is not None and first.locked_until_ms > time.time() * 1000
        assert isinstance(run[1].message_id, str), "the service gives one to a message without"
        await receiver.complete(run)
        assert not await receiver.receive(max_wait_s=SOON_S)
        assert not await receiver.peek(10)

    play(scenario)


def test_scheduled_messages_come_at_their_time_and_can_be_taken_back(play: Play, new_queue: NewQueue) -> None:
    queue = new_queue()

    async def scenario(client: QueueClient) -> None:
        sender, receiver = client.sender(queue), client.receiver(queue)
        at_ms = int(time.time() * 1000) + 1_000
        first, second = await sender.schedule([b"later", QueueMessage(b"never", message_id="n")], at_ms)
        states = [(message.body, message.state) for message in await receiver.peek(10)]
        assert states == [(b"later", "scheduled"), (b"never", "scheduled")]
        await sender.cancel(second)
        (message,) = await take(receiver, 1)
        assert message.body == b"later" and time.time() * 1000 >= at_ms
        assert message.sequence_number > first
        with pytest.raises(ServiceError) as gone:
            await sender.cancel(second)
        assert gone.value.condition is MESSAGE_NOT_FOUND
        assert not await receiver.peek(10, from_sequence_number=message.sequence_number + 1)

    play(scenario)


def test_refusals_carry_the_condition_of_the_service(play: Play, new_queue: NewQueue) -> None:
    queue, sessions = new_queue(), new_queue(requires_session=True)

    async def scenario(client: QueueClient) -> None:
        async def condition(step: Coroutine[Any, Any, object]) -> object:
            with pytest.raises(ServiceError) as refused:
                await step
            return refused.value.condition

        assert await condition(client.sender("nowhere").send(b"x")) is NOT_FOUND
        assert await condition(client.receiver("nowhere").receive(max_wait_s=1)) is NOT_FOUND
        assert await condition(client.receiver(sessions).receive(max_wait_s=1)) is NOT_ALLOWED
        assert await condition(client.sender(sessions).send(b"x")) is NOT_ALLOWED
        assert await condition(client.sender(queue).send()) is ARGUMENT_ERROR
        assert await condition(client.sender(queue).send(QueueMessage(b"x", message_id="x" * 129))) is ARGUMENT_ERROR
        assert await condition(client.sender(queue).send(bytes(2_000_000))) is MESSAGE_TOO_LARGE
        assert await condition(client.sender(queue).send_all([b"a", bytes(2_000_000)])) is MESSAGE_TOO_LARGE
        assert await condition(client.sender(queue).send(QueueMessage(b"", properties={"x": object()}))) is (
            ARGUMENT_ERROR
        )
        with pytest.raises(ServiceError, match="no queue is named"):
            client.sender()

    play(scenario)


def test_a_connection_that_ends_is_opened_again_and_its_messages_can_still_be_settled(
    play: Play, new_queue: NewQueue
) -> None:
    queue = new_queue()

    async def scenario(client: QueueClient) -> None:
        sender, receiver = client.sender(queue), client.receiver(queue)
        await sender.send(b"a", b"b")
        first = await take(receiver, 1)
        connection = await client._connection.now()
        connection._driver.abort()  # type: ignore[union-attr]
        await sender.send(b"c")
        await receiver.complete(first)
        rest = await take(receiver, 2)
        assert rest.bodies() == [b"b", b"c"]
        await receiver.complete(rest)
        assert not await receiver.peek(10)

    play(scenario)
