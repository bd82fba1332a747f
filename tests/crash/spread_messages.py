"""Clients of partitioned queues that live through the loss of a part: of a broker, of their gateway, of the network.

Three queues: `open` takes messages without a key and with one, `once` detects duplicates and its sender sends again
whatever was not answered, `turns` has sessions. Each client has a connection of its own, tries again as long as it
runs, and tells a history what it sees (hubweir.testing.message_history), which finds at once what cannot be. A refusal
means that nothing was stored. A lock is lost with the broker that gave it, and with no other one; a session with its
receiver's connection, too.

Long because what each kind of client does and what it tells its history is one thing.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from hubweir.client.administration import Administration
from hubweir.client.atom_documents import EntityType
from hubweir.client.message_link import NotSettled
from hubweir.client.message_run import ReceivedMessage
from hubweir.client.queue_client import QueueClient
from hubweir.client.queue_message import QueueMessage
from hubweir.client.queue_receiver import QueueReceiver
from hubweir.client.queue_sender import QueueSender
from hubweir.client.retry import RetryPolicy
from hubweir.client.sender import OutcomeUnknown
from hubweir.client.session_receiver import SessionNotGranted
from hubweir.errors import MESSAGE_LOCK_LOST, SERVER_BUSY, SESSION_LOCK_LOST, STORE_OFFLINE, ServiceError
from hubweir.event_hub.partition_key import partition_of_key
from hubweir.namespace.connection_string import ConnectionString
from hubweir.queue.fragment_number import fragment_of
from hubweir.testing.history_values import SeenHold
from hubweir.testing.message_history import MessageHistory, SeenAnswer, SeenOutcome
from hubweir.testing.seen_messages import body_of, check_left, now_ms, settle, text_of, token_of

OPEN, ONCE, TURNS = "open", "once", "turns"
KEYLESS, KEYED = "keyless", "keyed"
RECEIVERS = ("receiver 1", "receiver 2")  # of `open`
KEYS = tuple(f"key-{number}" for number in range(12))
SESSIONS = tuple(f"session-{number}" for number in range(6))
FRAGMENTS = 16
WINDOW_MS, SLACK_MS = 600_000, 2_000
LOCK_MS = 30_000
COMMON = {"LockDuration": "PT30S", "MaxDeliveryCount": "1000", "EnablePartitioning": "true"}
IN_TIME_S = 60.0  # in which a send succeeds
GO_ON_S = 100.0  # in which a client goes on behind a fault: 60 s may pass before it gives up a silent connection
AGAIN_S = 0.05
LATE_S = 2.0  # clocks, and a lock that is given while its broker ends
PAUSE_S = 0.2
BACK_S = 60.0  # in which a fragment is there again that was away
PATIENT = RetryPolicy(attempts=1_000, first_s=AGAIN_S, longest_s=0.5)
ONCE_ONLY = RetryPolicy(attempts=1)
OUTCOMES = {SeenOutcome.COMPLETE: 16, SeenOutcome.ABANDON: 3, SeenOutcome.DEAD_LETTER: 1}


@dataclass(frozen=True, slots=True)
class Sent:
    """A send that succeeded: when it began (monotonic), how long it took with all its tries, the store; None: any."""

    began: float
    took_s: float
    store: int | None


class SpreadMessages:
    """See the module's text. sends: by kind. counts: what clients met. faulted: when a store's broker was killed."""

    def __init__(self, target: str, seed: int) -> None:
        self._target = target
        self._random = random.Random(seed)
        self.histories = {name: MessageHistory(slack_ms=SLACK_MS) for name in (OPEN, TURNS)}
        self.histories[ONCE] = MessageHistory(slack_ms=SLACK_MS, window_ms=WINDOW_MS)
        self.sends: dict[str, list[Sent]] = {KEYLESS: [], KEYED: []}
        self.late: list[str] = []  # sends that took longer than IN_TIME_S, or did not end at all
        self.counts = {"accepted": 0, "received": 0, "settled": 0, "holds": 0, "refused": 0, "unknown": 0, "lost": 0}
        self.went_on: dict[str, float] = {}  # when a client last did what it is for
        self.pauses: list[tuple[str, float, float]] = []  # of more than PAUSE_S: whose, from when on, how long
        self._stores: dict[str, list[int]] = {}
        self._ends: dict[int, list[float]] = {}
        self._last_fault = 0.0
        self._messages = 0
        self._is_over = False
        self._locked: dict[str, float] = {}
        self._holds: dict[str, tuple[SeenHold, float]] = {}
        self._tasks: list[asyncio.Task[None]] = []

    def create(self) -> None:
        """The queues; blocks."""
        administration = Administration(ConnectionString.parse(self._target))
        detects = {"RequiresDuplicateDetection": "true", "DuplicateDetectionHistoryTimeWindow": "PT10M"}
        for name, more in ((OPEN, {}), (ONCE, detects), (TURNS, {"RequiresSession": "true"})):
            administration.create(EntityType.QUEUE, name, COMMON | more)
            self._stores[name] = [int(each.members["Store"]) for each in administration.fragments(name)]

    # Life

    def start(self) -> None:
        """Let all clients begin; on a loop."""
        self._is_over = False
        self._tasks = [
            asyncio.ensure_future(self._client(name, works, again))
            for name, works, again in (
                ("keyless 1", self._send_keyless, ONCE_ONLY),
                ("keyless 2", self._send_keyless, ONCE_ONLY),
                ("keyed", self._send_keyed, ONCE_ONLY),
                ("once", self._send_once, PATIENT),
                ("sessions", self._send_to_sessions, ONCE_ONLY),
                (RECEIVERS[0], self._receive_open, ONCE_ONLY),
                (RECEIVERS[1], self._receive_open, ONCE_ONLY),
                ("receiver of once", self._receive_once, ONCE_ONLY),
                ("holder 1", self._hold, ONCE_ONLY),
                ("holder 2", self._hold, ONCE_ONLY),
            )
        ]

    def fault(self, store: int | None = None) -> None:
        """Something ends now: the broker of this store, or nothing but connections. From any thread."""
        self._last_fault = time.monotonic()
        if store is not None:
            self._ends.setdefault(store, []).append(self._last_fault)

    async def all_went_on(self) -> float:
        """Wait until each client did again what it is for; how many seconds that took. AssertionError: one hangs."""
        began = time.monotonic()
        while behind := [name for name, at in self.went_on.items() if at <= began]:
            self.raise_found()
            assert time.monotonic() - began < GO_ON_S, f"no word of {behind} for {GO_ON_S:.0f} s; {self.counts}"
            await asyncio.sleep(0.05)
        return time.monotonic() - began

    async def stop(self) -> None:
        """End all clients. Raises what a history found; AssertionError: one does not end."""
        self._is_over = True
        _, left = await asyncio.wait(self._tasks, timeout=GO_ON_S)
        assert not left, f"{len(left)} clients do not end"
        self.raise_found()

    def raise_found(self) -> None:
        for task in self._tasks:
            if task.done() and (error := task.exception()) is not None:
                raise error

    async def check(self) -> None:
        """Hold what is left against the histories. A peek passes over fragments that were away a moment ago: it gets
        another moment."""
        async with self._connected(PATIENT) as client:
            for path, history in self.histories.items():
                await check_left(client, path, history, patience_s=BACK_S)

    async def _client(
        self, name: str, works: Callable[[QueueClient, str], Awaitable[None]], again: RetryPolicy
    ) -> None:
        """One client until the end: what ends it before is an error that it has to survive."""
        self.went_on[name] = 0.0
        async with self._connected(again) as client:
            while not self._is_over:
                try:
                    await works(client, name)
                except ServiceError as error:
                    assert error.condition.retriable or _is_lost(error), f"{name} met {error.text}"
                    await asyncio.sleep(AGAIN_S)

    def _connected(self, retry: RetryPolicy) -> QueueClient:
        return QueueClient.from_connection_string(self._target, retry=retry, timeout_s=10.0)

    def _goes_on(self, name: str) -> None:
        now, before = time.monotonic(), self.went_on[name]
        self.went_on[name] = now
        if before and now - before > PAUSE_S:
            self.pauses.append((name, before, now - before))

    # Senders

    async def _send_keyless(self, client: QueueClient, name: str) -> None:
        await self._deliver(client, name, OPEN, lambda: {})

    async def _send_keyed(self, client: QueueClient, name: str) -> None:
        await self._deliver(client, name, OPEN, lambda: {"partition_key": self._random.choice(KEYS)})

    async def _send_once(self, client: QueueClient, name: str) -> None:
        await self._deliver(client, name, ONCE, lambda: {"message_id": f"id-{self._messages}"})

    async def _send_to_sessions(self, client: QueueClient, name: str) -> None:
        await self._deliver(client, name, TURNS, lambda: {"session_id": self._random.choice(SESSIONS)})

    async def _deliver(self, client: QueueClient, name: str, path: str, choose: Callable[[], dict[str, str]]) -> None:
        """Send one after the other, each until it is accepted: what ended unknown is followed by another message."""
        sender = client.sender(path, resend_unknown=path == ONCE)
        try:
            while not self._is_over:
                began, key = time.monotonic(), choose()
                while not await self._is_accepted(sender, path, key):
                    if self._is_over:
                        self._late(name, began)
                        return
                    await asyncio.sleep(AGAIN_S)
                self._late(name, began)
                self._goes_on(name)
                kind = KEYED if key else KEYLESS
                self.sends[kind].append(Sent(began, self.went_on[name] - began, self._store(path, key)))
                await asyncio.sleep(0.01)
        finally:
            await sender.close()

    def _late(self, name: str, began: float) -> None:
        if time.monotonic() - began > IN_TIME_S:
            self.late.append(name)

    async def _is_accepted(self, sender: QueueSender, path: str, key: dict[str, str]) -> bool:
        self._messages += 1
        group, history = self._messages, self.histories[path]
        text = f"m{group}"
        body = body_of(text, self._random.choice([10, 300, 3_000]))
        history.send(group, text, body, now_ms(), session=key.get("session_id"), message_id=key.get("message_id"))
        try:
            async with asyncio.timeout(IN_TIME_S):
                await sender.send(QueueMessage(body, **key))
        except TimeoutError:
            raise AssertionError(f"a send to {path} has no end for {IN_TIME_S:.0f} s") from None
        except OutcomeUnknown:
            self._ended_unknown(path, group)
        except ServiceError as error:
            assert error.condition.retriable, f"a send to {path} met {error.text}"
            self.counts["refused"] += 1
            if path != ONCE:  # an earlier try of that may have been stored
                history.refused(group)
        else:
            self.counts["accepted"] += 1
            history.accepted(group, now_ms())
            return True
        return False

    def _ended_unknown(self, path: str, group: int) -> None:
        self.counts["unknown"] += 1

    def _store(self, path: str, key: dict[str, str]) -> int | None:
        if not key:
            return None
        fragment = partition_of_key(next(iter(key.values())).encode(), FRAGMENTS)
        return self._stores[path][fragment]

    # Receivers

    async def _receive_open(self, client: QueueClient, name: str) -> None:
        await self._receive(client, name, OPEN)

    async def _receive_once(self, client: QueueClient, name: str) -> None:
        await self._receive(client, name, ONCE)

    async def _receive(self, client: QueueClient, name: str, path: str) -> None:
        receiver = client.receiver(path)
        try:
            while not self._is_over:
                run = await receiver.receive(10, max_wait_s=0.5)
                self._take_in(path, list(run))
                settling = [self._settle(receiver, path, each) for each in run]
                if any(await asyncio.gather(*settling)):
                    self._goes_on(name)
        finally:
            await receiver.close()

    async def _hold(self, client: QueueClient, name: str) -> None:
        history = self.histories[TURNS]
        try:
            receiver = await client.accept_session(TURNS, max_wait_s=0.5)
        except SessionNotGranted:
            return
        self.counts["holds"] += 1
        session = receiver.session_id
        before = self._holds.get(session)
        if before is not None and self._last_fault > before[1] - LATE_S:
            history.let_go(before[0])  # with its connection, as its holder may not know yet
        hold = history.hold(session, receiver.locked_until_ms, now_ms())
        self._holds[session] = hold, time.monotonic()
        try:
            for _ in range(self._random.randrange(1, 20)):
                asked = history.tick
                run = await receiver.receive(1, max_wait_s=0.05)  # of one message nothing waits unseen
                self._take_in(TURNS, list(run), hold=hold, asked=asked)
                for each in run:
                    if await self._settle(receiver, TURNS, each):
                        self._goes_on(name)
        finally:
            history.let_go(hold)
            await receiver.close()

    def _take_in(self, path: str, messages: list[ReceivedMessage], **how: Any) -> None:
        for each in messages:
            text, until_ms = text_of(each), each.locked_until_ms
            assert until_ms is not None
            if self._may_have_lost(path, each.sequence_number, text):
                self.histories[path].broker_ended(text)
            self._locked[text] = time.monotonic() - (LOCK_MS - (until_ms - now_ms())) / 1_000
            self.counts["received"] += 1
            self.histories[path].received(
                text, each.sequence_number, each.body or b"", now_ms(), token=token_of(each), until_ms=until_ms, **how
            )

    async def _settle(self, receiver: QueueReceiver, path: str, message: ReceivedMessage) -> bool:
        """Whether that was answered as done."""
        history, text = self.histories[path], text_of(message)
        outcome = self._random.choices(list(OUTCOMES), list(OUTCOMES.values()))[0]
        settlement = history.settling(token_of(message), outcome, now_ms())
        try:
            await settle(receiver, outcome, [message])
        except ServiceError as error:
            is_lost = _is_lost(error)
            self.counts["lost"] += is_lost
            if is_lost and self._may_have_lost(path, message.sequence_number, text):
                history.broker_ended(text)
            if is_lost and path == TURNS and self._last_fault > self._locked[text] - LATE_S:
                assert settlement.lock.hold is not None
                history.let_go(settlement.lock.hold)
                history.settled(settlement, SeenAnswer.UNKNOWN)
            else:
                history.settled(settlement, _answer(error))
            return False
        history.settled(settlement, SeenAnswer.DONE)
        self.counts["settled"] += 1
        return True

    def _may_have_lost(self, path: str, number: int, text: str) -> bool:
        """Whether the broker of a message ended since its newest lock was given."""
        ended = self._ends.get(self._stores[path][fragment_of(number)], ())
        return text in self._locked and any(at > self._locked[text] - LATE_S for at in ended)


def _is_lost(error: ServiceError) -> bool:
    return error.condition in (MESSAGE_LOCK_LOST, SESSION_LOCK_LOST)


def _answer(error: ServiceError) -> SeenAnswer:
    """What an error says of a settlement."""
    if _is_lost(error):
        return SeenAnswer.LOST
    is_refused = isinstance(error, NotSettled) and error.condition in (SERVER_BUSY, STORE_OFFLINE)
    return SeenAnswer.REFUSED if is_refused else SeenAnswer.UNKNOWN
