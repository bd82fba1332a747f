"""Messages as clients of a history send and see them (message_history.py): each is known by the text that begins its
body, up to the first bar.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from hubweir.client.message_run import ReceivedMessage
from hubweir.client.queue_client import QueueClient
from hubweir.client.queue_receiver import QueueReceiver, QueueReceiverOptions
from hubweir.queue.sub_queue import SubQueue
from hubweir.testing.history_values import Violation
from hubweir.testing.message_history import MessageHistory, SeenOutcome

PEEKED_AT_ONCE = 250
AGAIN_S = 0.1


def now_ms() -> int:
    return int(time.time() * 1000)


def body_of(text: str, filler_bytes: int) -> bytes:
    """The body of the message of this text, which has no bar."""
    return f"{text}|{'x' * filler_bytes}".encode()


def text_of(message: ReceivedMessage) -> str:
    return (message.body or b"").split(b"|")[0].decode(errors="replace")


def token_of(message: ReceivedMessage) -> bytes:
    """Of its lock, which it must have."""
    token = message.lock_token
    assert token is not None
    return token.bytes


async def settle(receiver: QueueReceiver, outcome: SeenOutcome, messages: list[ReceivedMessage]) -> None:
    """Settle these so. Raises what the receiver raises."""
    calls: dict[SeenOutcome, Callable[[list[ReceivedMessage]], Awaitable[None]]] = {
        SeenOutcome.COMPLETE: receiver.complete,
        SeenOutcome.ABANDON: receiver.abandon,
        SeenOutcome.DEFER: receiver.defer,
        SeenOutcome.DEAD_LETTER: receiver.dead_letter,
        SeenOutcome.RELEASE: receiver.release,
    }
    await calls[outcome](messages)


async def left_in(client: QueueClient, path: str) -> list[tuple[str, int, bytes, bool]]:
    """All that a queue or a subscription holds: text, sequence number, body, whether it is a dead letter."""
    found = []
    for sub_queue in (SubQueue.MAIN, SubQueue.DEAD_LETTERS):
        receiver = client.receiver(path, QueueReceiverOptions(sub_queue=sub_queue))
        next_number = 1
        while run := await receiver.peek(PEEKED_AT_ONCE, from_sequence_number=next_number):
            is_dead = sub_queue is SubQueue.DEAD_LETTERS
            found += [(text_of(each), each.sequence_number, each.body or b"", is_dead) for each in run]
            next_number = max(run.sequence_numbers()) + 1
    return found


async def check_left(client: QueueClient, path: str, history: MessageHistory, *, patience_s: float = 0.0) -> None:
    """Hold what is left against a history. Violation: it is not so, and did not become so within patience_s."""
    limit = time.monotonic() + patience_s
    while True:
        found = await left_in(client, path)
        try:
            history.left(found, now_ms())
            return
        except Violation:
            if time.monotonic() > limit:
                raise
            await asyncio.sleep(AGAIN_S)
