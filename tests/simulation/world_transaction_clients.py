"""The clients of the whole world that move tokens from entity to entity, in transactions over several logs (P12).

A partitioned queue, one that lies in one log, and a partitioned topic. What tokens are is in token_ledger.py.
"""

from __future__ import annotations

import asyncio

from hubweir.client.queue_client import QueueClient
from hubweir.client.queue_message import QueueMessage
from hubweir.client.queue_receiver import QueueReceiver
from hubweir.client.queue_transaction import CommitUnknown
from hubweir.client.retry import RetryPolicy
from hubweir.errors import ServiceError
from hubweir.testing.history_values import Violation
from hubweir.testing.seen_messages import token_of
from hubweir.testing.token_ledger import Move, TokenLedger, TokenPlace
from hubweir.testing.token_messages import token_body, token_in, tokens_left
from tests.simulation.world_clients import CONNECTION_STRING, NEWS, ONCE, ONE, TIMEOUT_S, TWO, World, pause
from tests.simulation.world_openings import Openings

# What tokens are sent to, and where they are received.
PLACES = {ONE: ONE, TWO: TWO, NEWS: f"{NEWS}/Subscriptions/all"}
TOKENS = 8
MOVED_AT_ONCE = 3
LEAST_MOVES = 2
FOUND_S = 60.0


class SeenTokens:
    """The tokens as their clients see them. openings: of what they are received from, by its path."""

    def __init__(self) -> None:
        self.ledger = TokenLedger(TOKENS, ONE)
        self.openings = {path: Openings(path) for path in PLACES.values()}

    def opened(self, path: str, number: int, secret: bytes) -> None:
        """A fragment was opened. What is no place of tokens is nothing here."""
        if path in self.openings:
            self.openings[path].opened(number, secret)


async def put_tokens() -> None:
    """All of them where they begin; nothing goes wrong yet."""
    async with QueueClient.from_connection_string(CONNECTION_STRING, timeout_s=TIMEOUT_S) as client:
        await client.sender(ONE).send(*(token_body(token, 0) for token in range(TOKENS)))


async def move_tokens(world: World, tokens: SeenTokens, name: str) -> None:
    """Move some, again and again, until the world is healed and so many moves were committed."""
    client = QueueClient.from_connection_string(CONNECTION_STRING, retry=ONCE, timeout_s=TIMEOUT_S)
    receivers = {place: client.receiver(path) for place, path in PLACES.items()}
    moves = 0
    while not world.is_healed or moves < LEAST_MOVES:
        place = world.random.choice(list(PLACES))
        try:
            moves += await _move(world, tokens, name, client, receivers[place], place)
        except ServiceError as error:
            world.note(f"{name} {error.condition.symbol}")
            await pause(world, 0.1, 0.8)
    await client.close()


async def _move(
    world: World, tokens: SeenTokens, name: str, client: QueueClient, receiver: QueueReceiver, place: str
) -> bool:
    """Receive tokens where they are, and send them on in one transaction; some are rolled back. Whether it is done."""
    ledger, random, openings = tokens.ledger, world.random, tokens.openings[PLACES[place]]
    found = await receiver.receive(random.randint(1, MOVED_AT_ONCE), max_wait_s=0.5)
    some = [message for message in found if openings.is_current(token_of(message))]
    if not some:
        return False
    origins = {token: TokenPlace(place, moved) for token, moved in (token_in(each.body) for each in some)}
    for token, origin in origins.items():
        world.note(f"{name} got token {token} at {origin.entity}")
        ledger.seen(token, origin)
    number = ledger.new_move()
    # The sends of one transaction to one partitioned entity have one key.
    key = f"key {random.randrange(4)}"
    goals = {token: TokenPlace(random.choice(list(PLACES)), number) for token in origins}
    move: Move | None = None
    is_sent_first, gives_up = random.random() < 0.5, random.random() < 0.15
    try:
        async with client.transaction() as transaction:
            if not is_sent_first:
                await receiver.complete(some, transaction=transaction)
            for token, goal in goals.items():
                message = QueueMessage(token_body(token, number), partition_key=key)
                await client.sender(goal.entity).send(message, transaction=transaction)
            if is_sent_first:
                await receiver.complete(some, transaction=transaction)
            if gives_up:
                raise _RolledBack
            move = ledger.moving(origins, goals)
    except _RolledBack:
        await receiver.abandon(some)
        return False
    except CommitUnknown:
        world.note(f"{name} move {number} unknown")
        return False
    except ServiceError as error:
        world.note(f"{name} move {number} {error.condition.symbol}")
        if move is not None:
            ledger.stayed(move)
        await receiver.abandon(some)
        return False
    assert move is not None
    ledger.moved(move)
    world.note(f"{name} move {number} done")
    return True


async def check_tokens(world: World, tokens: SeenTokens) -> None:
    """All are there, each once. What nobody has decided yet, or a topic has not copied, gets a while."""
    retry = RetryPolicy(attempts=12, first_s=0.1, longest_s=0.5)
    async with QueueClient.from_connection_string(CONNECTION_STRING, retry=retry, timeout_s=TIMEOUT_S) as client:
        limit_ms = world.now_ms + int(FOUND_S * 1_000)
        while missing := tokens.ledger.left(await tokens_left(client, PLACES)):
            if world.now_ms > limit_ms:
                raise Violation(f"P12: tokens {sorted(missing)} are nowhere, {FOUND_S:.0f} s after the last move")
            await asyncio.sleep(0.2)


class _RolledBack(Exception):
    """Ends a transaction's block."""
