"""Load for the kill tests of queues and topics: clients of every kind until the server is gone, each told to a history.

A queue that detects duplicates, with locks, schedules and deferred messages; a queue with sessions and their states; a
topic with three subscriptions, from one of which messages are received and deleted. Histories live through all lives
of the server (hubweir.testing.message_history), and find at once what cannot be.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any

from hubweir.client.administration import Administration
from hubweir.client.atom_documents import EntityType
from hubweir.client.message_run import MessageRun, ReceivedMessage
from hubweir.client.queue_client import QueueClient
from hubweir.client.queue_message import QueueMessage
from hubweir.client.queue_receiver import QueueReceiver, QueueReceiverOptions
from hubweir.client.retry import RetryPolicy
from hubweir.client.session_receiver import SessionNotGranted
from hubweir.errors import MESSAGE_LOCK_LOST, SERVER_BUSY, SESSION_LOCK_LOST, ServiceError
from hubweir.namespace.connection_string import ConnectionString
from hubweir.queue.sub_queue import ReceiveMode
from hubweir.testing.history_values import Violation
from hubweir.testing.message_history import MessageHistory, SeenAnswer, SeenOutcome
from hubweir.testing.seen_messages import body_of, check_left, now_ms, settle, text_of, token_of
from tests.crash.waits import failed, first

JOBS, TURNS, NEWS = "jobs", "turns", "news"
SUBSCRIPTIONS = ("one", "two", "three")
DELETED_FROM = f"{NEWS}/Subscriptions/three"
SESSIONS = ("a", "b", "c")
WINDOW_MS, SLACK_MS = 600_000, 1_000
TAKEN_AT_ONCE = 5
WAIT_S = 60.0
LATEST_S = 2.0  # from a send until a scheduled message becomes active, at most
COMMON = {"LockDuration": "PT1M", "MaxDeliveryCount": "1000"}
OUTCOMES = {
    SeenOutcome.COMPLETE: 14,
    SeenOutcome.ABANDON: 4,
    SeenOutcome.DEFER: 1,
    SeenOutcome.DEAD_LETTER: 1,
    SeenOutcome.RELEASE: 1,
}


class MessageLoad:
    """All clients over all lives of a server."""

    def __init__(self, target: str, seed: int) -> None:
        self._target = target
        self._random = random.Random(seed)
        self.histories = {TURNS: MessageHistory(slack_ms=SLACK_MS)}
        self.histories[JOBS] = MessageHistory(slack_ms=SLACK_MS, window_ms=WINDOW_MS)
        for name in SUBSCRIPTIONS:
            self.histories[f"{NEWS}/Subscriptions/{name}"] = MessageHistory(slack_ms=SLACK_MS)
        self.counts = {"accepted": 0, "received": 0, "settled": 0, "holds": 0, "unknown": 0, "repeated": 0}
        self._messages = self._groups = self._values = 0
        self._is_ending = False
        self._scheduled: set[str] = set()

    def create(self) -> None:
        """The entities; blocks."""
        administration = Administration(ConnectionString.parse(self._target))
        detects = {"RequiresDuplicateDetection": "true", "DuplicateDetectionHistoryTimeWindow": "PT10M"}
        administration.create(EntityType.QUEUE, JOBS, COMMON | detects)
        administration.create(EntityType.QUEUE, TURNS, COMMON | {"RequiresSession": "true"})
        administration.create(EntityType.TOPIC, NEWS, {})
        for name in SUBSCRIPTIONS:
            administration.create(EntityType.SUBSCRIPTION, f"{NEWS}/Subscriptions/{name}", COMMON)

    async def live(self, seconds: float, end: Callable[[], None]) -> None:
        """All clients until one message is settled, and for so long behind that; then call end, which ends the server.
        Raises what a history found.
        """
        self._is_ending, before = False, self.counts["settled"]
        async with self._client() as client:
            works = [self._send(client, JOBS), self._send(client, JOBS), self._send(client, TURNS)]
            works += [self._send(client, NEWS), self._schedule(client)]
            works += [self._receive(client, path) for path in [JOBS, *self.histories] if path != TURNS]
            works += [self._hold(client), self._hold(client)]
            tasks = [asyncio.ensure_future(self._until_the_end(work)) for work in works]
            await first(lambda: self.counts["settled"] > before or failed(tasks), WAIT_S)
            await asyncio.sleep(seconds)
            self._is_ending = True
            await asyncio.to_thread(end)
            await asyncio.wait_for(asyncio.gather(*tasks), WAIT_S)
        for history in self.histories.values():
            history.crashed()
        for text in self._scheduled:
            self.histories[JOBS].cancelled(text, SeenAnswer.UNKNOWN)
        self._scheduled = set()
        self.histories[DELETED_FROM].may_be_taken(2 * TAKEN_AT_ONCE)

    async def check(self) -> None:
        """Hold what is left against the histories.

        What a topic has not copied yet gets a while. So does a scheduled message of JOBS that becomes active between
        two peeks: it has another number then, and is seen twice.
        """
        async with self._client(attempts=5) as client:
            for path, history in self.histories.items():
                patience_s = WAIT_S if path.startswith(NEWS) else LATEST_S if path == JOBS else 0.0
                await check_left(client, path, history, patience_s=patience_s)

    # Clients

    def _client(self, *, attempts: int = 1) -> QueueClient:
        retry = RetryPolicy(attempts=attempts, first_s=0.1, longest_s=0.5)
        return QueueClient.from_connection_string(self._target, retry=retry, timeout_s=WAIT_S)

    async def _until_the_end(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except ServiceError as error:
            if self._is_ending or error.condition is SERVER_BUSY:
                return  # of a log that is opened late this client asks in the next life
            # No lock here is so short that it could end by itself.
            assert error.condition in (MESSAGE_LOCK_LOST, SESSION_LOCK_LOST), f"a client met {error.text}"
            raise Violation(f"P7, P10: a lock is lost while it holds: {error.text}") from error

    def _new(self, path: str) -> tuple[int, list[QueueMessage]]:
        """A group of messages that the histories know."""
        self._groups += 1
        messages = []
        session = self._random.choice(SESSIONS) if path == TURNS else None
        for _ in range(self._random.choice([1, 1, 4])):
            self._messages += 1
            text = f"m{self._messages}"
            body = body_of(text, self._random.choice([10, 300, 6_000]))
            is_repeated = path == JOBS and self._random.random() < 0.2
            own_id = f"id {self._messages - self._random.randrange(1, 30) if is_repeated else self._messages}"
            self.counts["repeated"] += is_repeated
            for name, history in self.histories.items():
                if name == path or name.startswith(f"{path}/"):
                    history.send(
                        self._groups, text, body, now_ms(), session=session, message_id=own_id if path == JOBS else None
                    )
            messages.append(QueueMessage(body, message_id=own_id, session_id=session))
        return self._groups, messages

    def _accepted(self, path: str, group: int) -> None:
        self.counts["accepted"] += 1
        for name, history in self.histories.items():
            if name == path or name.startswith(f"{path}/"):
                history.accepted(group, now_ms())

    async def _send(self, client: QueueClient, path: str) -> None:
        sender = client.sender(path, resend_unknown=False)
        while True:
            group, messages = self._new(path)
            try:
                await sender.send(*messages)
            except ServiceError:
                self.counts["unknown"] += 1
                raise
            self._accepted(path, group)
            await asyncio.sleep(0.005)

    async def _schedule(self, client: QueueClient) -> None:
        sender, history = client.sender(JOBS), self.histories[JOBS]
        while True:
            group, messages = self._new(JOBS)
            for sent in history.groups[group]:
                sent.is_scheduled = True
            numbers = await sender.schedule(messages, now_ms() + self._random.choice([50, 200, int(LATEST_S * 1_000)]))
            self._accepted(JOBS, group)
            if self._random.random() < 0.3:
                text = history.groups[group][0].text
                self._scheduled.add(text)
                try:
                    await sender.cancel(numbers[0])
                    history.cancelled(text, SeenAnswer.DONE)
                except ServiceError:
                    if self._is_ending:
                        raise
                self._scheduled.discard(text)  # it is done, or it was active by then, or a duplicate
            await asyncio.sleep(0.02)

    async def _receive(self, client: QueueClient, path: str) -> None:
        deletes = path == DELETED_FROM
        mode = ReceiveMode.RECEIVE_AND_DELETE if deletes else ReceiveMode.PEEK_LOCK
        receiver, history = client.receiver(path, QueueReceiverOptions(mode=mode)), self.histories[path]
        deferred: list[int] = []
        while True:
            if deferred and self._random.random() < 0.5:
                run = await receiver.receive_deferred(deferred.pop())
                self._take_in(history, run, is_asked_by_number=True)
                await self._settle(receiver, history, list(run), outcome=SeenOutcome.COMPLETE)
                continue
            run = await receiver.receive(TAKEN_AT_ONCE, max_wait_s=0.5)
            if deletes:
                for each in run:
                    history.taken(text_of(each), each.sequence_number, each.body or b"", now_ms())
                continue
            self._take_in(history, run)
            for outcome, some in self._parts(list(run)):
                if await self._settle(receiver, history, some, outcome=outcome) and outcome is SeenOutcome.DEFER:
                    deferred += [each.sequence_number for each in some]

    async def _hold(self, client: QueueClient) -> None:
        history = self.histories[TURNS]
        while True:
            try:
                receiver = await client.accept_session(TURNS, max_wait_s=0.3)
            except SessionNotGranted:
                continue
            self.counts["holds"] += 1
            hold = history.hold(receiver.session_id, receiver.locked_until_ms, now_ms())
            history.sessions.state_seen(hold.session, await receiver.state())
            for _ in range(self._random.randrange(1, 8)):
                asked = history.tick
                run = await receiver.receive(1, max_wait_s=0.05)  # of one message nothing waits unseen
                self._take_in(history, run, hold=hold, asked=asked)
                outcome = self._random.choices(list(OUTCOMES), list(OUTCOMES.values()))[0]
                if len(run):
                    await self._settle(receiver, history, list(run), outcome=outcome)
            self._values += 1
            value = b"%d" % self._values
            history.sessions.setting(hold.session, value)
            await receiver.set_state(value)
            history.sessions.set_done(hold.session, value, is_done=True)
            history.let_go(hold)
            await receiver.close()

    def _take_in(self, history: MessageHistory, run: MessageRun, **how: Any) -> None:
        self.counts["received"] += len(run)
        for each in run:
            token, until_ms = token_of(each), each.locked_until_ms
            assert until_ms is not None
            history.received(
                text_of(each), each.sequence_number, each.body or b"", now_ms(), token=token, until_ms=until_ms, **how
            )

    def _parts(self, messages: list[ReceivedMessage]) -> list[tuple[SeenOutcome, list[ReceivedMessage]]]:
        parts: dict[SeenOutcome, list[ReceivedMessage]] = {}
        for each in messages:
            outcome = self._random.choices(list(OUTCOMES), list(OUTCOMES.values()))[0]
            parts.setdefault(outcome, []).append(each)
        return list(parts.items())

    async def _settle(
        self, receiver: QueueReceiver, history: MessageHistory, messages: list[ReceivedMessage], *, outcome: SeenOutcome
    ) -> bool:
        asked = [history.settling(token_of(each), outcome, now_ms()) for each in messages]
        await settle(receiver, outcome, messages)  # of one that is lost, the error says so
        for settlement in asked:
            history.settled(settlement, SeenAnswer.DONE)
        self.counts["settled"] += len(asked)
        return True
