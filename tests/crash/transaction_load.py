"""Load for the kill tests of transactions: tokens that clients move from entity to entity until the server is gone.

A token is a message that says which move brought it where it is. One transaction completes some where they are and
sends each on, to any queue or topic; some transactions are rolled back. Whatever happens to the server, every token is
in one place, and there is no other copy of it, and a transaction is done whole or not at all (token_ledger.py).
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable

from hubweir.client.administration import Administration
from hubweir.client.atom_documents import EntityType
from hubweir.client.queue_client import QueueClient
from hubweir.client.queue_transaction import CommitUnknown
from hubweir.client.retry import RetryPolicy
from hubweir.errors import MESSAGE_LOCK_LOST, SERVER_BUSY, TRANSACTION_ROLLED_BACK, ServiceError
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.history_values import Violation
from hubweir.testing.token_ledger import Move, TokenLedger, TokenPlace
from hubweir.testing.token_messages import token_body, token_in, tokens_left
from tests.crash.waits import failed, first

# What tokens are sent to, and where they are received.
PLACES = {"one": "one", "two": "two", "news": "news/Subscriptions/all"}
TOKENS = 40
MOVED_AT_ONCE = 3
WAIT_S = 60.0
COMMON = {"LockDuration": "PT1M", "MaxDeliveryCount": "1000"}


class TransactionLoad:
    """All clients over all lives of a server."""

    def __init__(self, target: str, seed: int) -> None:
        self._target = target
        self._random = random.Random(seed)
        self.ledger = TokenLedger(TOKENS, "one")
        self.counts = {"committed": 0, "rolled back": 0, "refused": 0, "unknown": 0}
        self._is_ending = False

    async def create(self) -> None:
        """The entities, and every token in the first of them."""
        administration = Administration(ConnectionString.parse(self._target))
        await asyncio.to_thread(administration.create, EntityType.QUEUE, "one", COMMON)
        await asyncio.to_thread(administration.create, EntityType.QUEUE, "two", COMMON)
        await asyncio.to_thread(administration.create, EntityType.TOPIC, "news", {})
        await asyncio.to_thread(administration.create, EntityType.SUBSCRIPTION, PLACES["news"], COMMON)
        async with self._client() as client:
            await client.sender("one").send(*(token_body(token, 0) for token in range(TOKENS)))

    async def live(self, seconds: float, end: Callable[[], None]) -> None:
        """All clients until one transaction is committed, and for so long behind that; then call end, which ends the
        server. Raises what the ledger found.
        """
        self._is_ending, before = False, self.counts["committed"]
        async with self._client() as client, self._client() as another:
            works = [self._until_the_end(each, place) for place in PLACES for each in (client, another)]
            tasks = [asyncio.ensure_future(work) for work in works]
            await first(lambda: self.counts["committed"] > before or failed(tasks), WAIT_S)
            await asyncio.sleep(seconds)
            self._is_ending = True
            await asyncio.to_thread(end)
            await asyncio.wait_for(asyncio.gather(*tasks), WAIT_S)

    async def check(self) -> None:
        """Hold what is left against the ledger. What a topic has not copied yet gets a while."""
        async with self._client(attempts=12) as client:
            limit = time.monotonic() + WAIT_S
            while missing := self.ledger.left(await tokens_left(client, PLACES)):
                if time.monotonic() > limit:
                    raise Violation(f"P12: tokens {sorted(missing)} are nowhere")
                await asyncio.sleep(0.1)

    # Clients

    def _client(self, *, attempts: int = 1) -> QueueClient:
        retry = RetryPolicy(attempts=attempts, first_s=0.1, longest_s=0.5)
        return QueueClient.from_connection_string(self._target, retry=retry, timeout_s=WAIT_S)

    async def _until_the_end(self, client: QueueClient, place: str) -> None:
        try:
            while True:
                try:
                    await self._move(client, place)
                except ServiceError as error:
                    if error.condition is not SERVER_BUSY:
                        raise
                    await asyncio.sleep(0.05)  # an entity waits to hear what became of a transaction
        except CommitUnknown:
            self.counts["unknown"] += 1
            if not self._is_ending:
                raise
        except ServiceError as error:
            if not self._is_ending:
                raise
            assert error.condition is not MESSAGE_LOCK_LOST, f"no lock here is so short: {error.text}"

    async def _move(self, client: QueueClient, place: str) -> None:
        """Receive tokens where they are, and send them on in one transaction; roll some back."""
        receiver = client.receiver(PLACES[place])
        run = await receiver.receive(self._random.randint(1, MOVED_AT_ONCE), max_wait_s=0.3)
        if not len(run):
            return
        origins = {token: TokenPlace(place, moved) for token, moved in (token_in(each.body) for each in run)}
        for token, origin in origins.items():
            self.ledger.seen(token, origin)
        number = self.ledger.new_move()
        move: Move | None = None
        goals = {token: TokenPlace(self._random.choice(list(PLACES)), number) for token in origins}
        try:
            async with client.transaction() as transaction:
                is_sent_first = self._random.random() < 0.5
                if not is_sent_first:
                    await receiver.complete(run, transaction=transaction)
                for token, goal in goals.items():
                    await client.sender(goal.entity).send(token_body(token, number), transaction=transaction)
                if is_sent_first:
                    await receiver.complete(run, transaction=transaction)
                if self._random.random() < 0.15:
                    raise _RolledBack
                move = self.ledger.moving(origins, goals)
        except _RolledBack:
            self.counts["rolled back"] += 1
            await receiver.abandon(run)
        except CommitUnknown:
            raise
        except ServiceError as error:
            if error.condition is not TRANSACTION_ROLLED_BACK:
                raise
            if move is not None:
                self.ledger.stayed(move)
            self.counts["refused"] += 1
            await receiver.abandon(run)
        else:
            assert move is not None
            self.ledger.moved(move)
            self.counts["committed"] += 1


class _RolledBack(Exception):
    """Ends a transaction's block."""
