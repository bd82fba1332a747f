"""What clients of histories do alike, at a live queue: bodies with their texts, settlements, and all that is left."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from hubweir.client.queue_client import QueueClient
from hubweir.client.queue_message import QueueMessage
from hubweir.testing.history_values import Violation
from hubweir.testing.message_history import MessageHistory, SeenOutcome
from hubweir.testing.running_namespace import RunningNamespace, running_namespace
from hubweir.testing.seen_messages import body_of, check_left, left_in, now_ms, settle, text_of, token_of

WAIT_S = 10.0


@pytest.fixture(scope="module")
def namespace() -> Iterator[RunningNamespace]:
    with running_namespace() as namespace:
        yield namespace


def client_of(namespace: RunningNamespace) -> QueueClient:
    return QueueClient.from_connection_string(namespace.connection_string())


def test_what_is_left_is_all_that_was_neither_completed_nor_taken(namespace: RunningNamespace) -> None:
    namespace.create_queue("outcomes")
    filler = {f"m{number}": 10 * number for number in range(300)}  # more than are peeked at once

    async def scenario() -> None:
        async with client_of(namespace) as client:
            bodies = [QueueMessage(body_of(text, size)) for text, size in filler.items()]
            await client.sender("outcomes").send(*bodies)
            receiver = client.receiver("outcomes")
            for outcome in SeenOutcome:
                [message] = await receiver.receive(1, max_wait_s=WAIT_S)
                assert len(token_of(message)) == 16
                await settle(receiver, outcome, [message])
                if outcome is SeenOutcome.RELEASE or outcome is SeenOutcome.ABANDON:
                    [again] = await receiver.receive(1, max_wait_s=WAIT_S)
                    assert text_of(again) == text_of(message), "it was given back"
                    await settle(receiver, SeenOutcome.COMPLETE, [again])
            left = await left_in(client, "outcomes")
            dead = [text for text, _, _, is_dead in left if is_dead]
            # Completed, abandoned and then completed, deferred, dead-lettered, released and then completed.
            assert dead == ["m3"]
            assert sorted(text for text, _, _, _ in left) == sorted({*filler} - {"m0", "m1", "m4"})
            assert all(body == body_of(text, filler[text]) for text, _, body, _ in left)
            assert len({number for _, number, _, _ in left}) == len(left)

    asyncio.run(scenario())


def test_what_a_history_misses_is_waited_for_and_then_said(namespace: RunningNamespace) -> None:
    namespace.create_queue("late")
    history = MessageHistory(slack_ms=1_000)
    history.send(1, "m1", body_of("m1", 3), now_ms())
    history.accepted(1, now_ms())

    async def scenario() -> None:
        async with client_of(namespace) as client:
            with pytest.raises(Violation):
                await check_left(client, "late", history, patience_s=0.3)
            checking = asyncio.ensure_future(check_left(client, "late", history, patience_s=WAIT_S))
            await asyncio.sleep(0.3)
            assert not checking.done()
            await client.sender("late").send(QueueMessage(body_of("m1", 3)))
            await checking

    asyncio.run(scenario())
