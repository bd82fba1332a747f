"""Tokens at live queues: their bodies are read back, and all of them are found, each where it is."""

from __future__ import annotations

import asyncio

import pytest

from hubweir.client.queue_client import QueueClient
from hubweir.testing.running_namespace import running_namespace
from hubweir.testing.token_ledger import TokenPlace
from hubweir.testing.token_messages import token_body, token_in, tokens_left


def test_a_token_and_its_move_are_read_back_and_what_is_no_token_is_refused() -> None:
    assert token_in(token_body(7, 12)) == (7, 12)
    for body in (None, b"7", b"7|12|1", b"a|b"):
        with pytest.raises(ValueError):
            token_in(body)


def test_tokens_are_found_in_all_places_and_among_dead_letters() -> None:
    async def scenario(text: str) -> list[tuple[int, TokenPlace]]:
        async with QueueClient.from_connection_string(text) as client:
            await client.sender("one").send(token_body(0, 0), token_body(1, 0))
            await client.sender("two").send(token_body(2, 5))
            receiver = client.receiver("one")
            await receiver.dead_letter(await receiver.receive(1, max_wait_s=10.0))
            return await tokens_left(client, {"first": "one", "second": "two"})

    with running_namespace() as namespace:
        namespace.create_queue("one")
        namespace.create_queue("two")
        found = asyncio.run(scenario(namespace.connection_string()))
    assert sorted(found, key=lambda each: each[0]) == [
        (0, TokenPlace("first", 0)), (1, TokenPlace("first", 0)), (2, TokenPlace("second", 5)),
    ]  # fmt: skip
