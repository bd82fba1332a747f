"""The clients of the queues in the whole world: senders, receivers, holders of sessions; what they saw of a queue."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar

from hubweir.client.message_run import ReceivedMessage
from hubweir.client.queue_client import QueueClient
from hubweir.client.queue_message import QueueMessage
from hubweir.client.queue_receiver import QueueReceiver
from hubweir.client.queue_requests import RequestUnknown
from hubweir.client.queue_sender import QueueSender
from hubweir.client.sender import OutcomeUnknown
from hubweir.client.session_receiver import SessionNotGranted, SessionReceiver
from hubweir.errors import MESSAGE_LOCK_LOST, SESSION_LOCK_LOST, ServiceError
from hubweir.event_hub.partition_key import partition_of_key
from hubweir.queue.fragment_number import fragment_of
from hubweir.testing.history_values import SeenHold, SeenMessage, Violation
from hubweir.testing.message_history import MessageHistory, SeenAnswer, SeenOutcome
from hubweir.testing.seen_messages import body_of, settle, text_of, token_of
from hubweir.testing.simulated_env import START_MS
from tests.simulation.many_processes import SimulatedProcess
from tests.simulation.world_clients import (
    CONNECTION_STRING,
    FRAGMENTS,
    KINDS,
    LATEST_SCHEDULE_MS,
    LOCK_MS,
    ONCE,
    TIMEOUT_S,
    WINDOW_MS,
    World,
    pause,
)
from tests.simulation.world_openings import Openings

T = TypeVar("T")

OUTCOMES = {
    SeenOutcome.COMPLETE: 12,
    SeenOutcome.ABANDON: 3,
    SeenOutcome.RELEASE: 1,
    SeenOutcome.DEAD_LETTER: 1,
}


class SeenQueue:
    """A partitioned queue, or a subscription, as its clients see it.

    sent_to: the entity that its messages are sent to. kind: of those that it takes; None: all. breaks: how often
    something ended that holds of a fragment depend on, by what that is. ended_links: those that a gateway ended, by
    client, process and name.
    """

    def __init__(
        self,
        name: str,
        *,
        slack_ms: int,
        has_sessions: bool = False,
        has_ids: bool = False,
        sent_to: str = "",
        kind: str | None = None,
    ) -> None:
        self.name = name
        self.sent_to, self.kind = sent_to or name, kind
        self.has_sessions, self.has_ids = has_sessions, has_ids
        window_ms = WINDOW_MS if has_ids else None
        self.history = MessageHistory(slack_ms=slack_ms, window_ms=window_ms, is_partitioned=True)
        self.openings = Openings(name)
        self.stores: tuple[int, ...] = ()
        self.holds: dict[SeenHold, tuple[str, SimulatedProcess | None, int]] = {}
        self.breaks: dict[object, int] = {}
        self.ended_links: dict[tuple[str, SimulatedProcess | None, str], None] = {}
        self.senders_left = 0
        self.due_ms: dict[str, int] = {}  # of messages that are scheduled, by their texts

    def opened(self, number: int, secret: bytes) -> None:
        """A fragment was opened: it knows no lock and no hold of before."""
        if self.openings.opened(number, secret):
            self.history.crashed(lambda sent: self.number_of(sent) == number)
            self.broke(("fragment", number), lambda *where: where[2] == number)

    def number_of(self, sent: SeenMessage) -> int:
        """The fragment that a message lies in; -1 where nobody knows."""
        if sent.session is not None:
            return partition_of_key(sent.session.encode(), FRAGMENTS)
        return -1 if sent.number is None else fragment_of(sent.number)

    def broke(self, what: object, hits: Callable[[str, SimulatedProcess | None, int], bool]) -> None:
        """Something ended; with it end the holds that it hits: of such a client, gateway and fragment."""
        self.breaks[what] = self.breaks.get(what, 0) + 1
        for hold, where in tuple(self.holds.items()):
            if hits(*where):
                del self.holds[hold]
                self.history.let_go(hold)

    def link_ended(self, client: str, gateway: SimulatedProcess | None, link: str, session: str) -> None:
        """A gateway ends the link of a session's holder, who hears of it maybe behind the next holder."""
        self.ended_links[client, gateway, link] = None
        for hold, (holder, its_gateway, _) in tuple(self.holds.items()):
            if (holder, its_gateway, hold.session) == (client, gateway, session):
                del self.holds[hold]
                self.history.let_go(hold)

    def send(
        self,
        group: int,
        text: str,
        body: bytes,
        now_ms: int,
        *,
        session: str | None,
        message_id: str | None,
        due_ms: int | None,
    ) -> None:
        """A message is about to be sent. due_ms: it is scheduled for then; None: it is not."""
        is_scheduled = due_ms is not None
        self.history.send(group, text, body, now_ms, session=session, message_id=message_id, is_scheduled=is_scheduled)
        if due_ms is not None:
            self.due_ms[text] = due_ms

    def expect_due(self, text: str, now_ms: int) -> None:
        """A receiver has it. Violation: before its time."""
        if now_ms < self.due_ms.get(text, 0):
            raise Violation(f"{text} comes {self.due_ms[text] - now_ms} ms before the time that it is scheduled for")

    @property
    def is_drained(self) -> bool:
        """Whether nothing will come any more that must be received."""
        return not self.senders_left and not self.history.waiting


class Sending:
    """Sends to a queue, or to a topic with these subscriptions, until the world is healed and least groups were
    accepted. Where the world has times that can be relied on, some messages are scheduled, and some of those cancelled.
    """

    def __init__(self, world: World, queues: Sequence[SeenQueue], name: str, least: int) -> None:
        self._world, self._queues, self._name, self._least = world, queues, name, least
        self._queue = queues[0]
        self._texts = self._groups = self._accepted = 0
        for queue in queues:
            queue.senders_left += 1

    async def run(self) -> None:
        world = self._world
        client = QueueClient.from_connection_string(CONNECTION_STRING, retry=ONCE, timeout_s=TIMEOUT_S)
        sender = client.sender(self._queue.sent_to, resend_unknown=False)
        schedules = world.is_scheduling and not self._queue.has_sessions and not self._queue.has_ids
        while not world.is_healed or self._accepted < self._least:
            if schedules and world.random.random() < 0.3:
                await self._schedule(sender)
            else:
                group, messages = self._new()
                await self._told(group, sender.send(*messages))
        for queue in self._queues:
            queue.senders_left -= 1
        await client.close()

    async def _told(self, group: int, sends: Awaitable[T]) -> T | None:
        """Do it, and tell the histories what the sender is told; None: it is not known to be stored."""
        world = self._world
        try:
            result = await sends
        except (OutcomeUnknown, RequestUnknown):
            world.note(f"{self._name} {group} unknown")
            await pause(world, 0.05, 0.5)
            return None
        except ServiceError as error:
            for queue in self._of(group):
                queue.history.refused(group)
            world.note(f"{self._name} {group} refused {error.condition.symbol}")
            await pause(world, 0.1, 0.8)
            return None
        self._accepted += 1
        for queue in self._of(group):
            queue.history.accepted(group, world.now_ms)
        world.note(f"{self._name} {group} accepted")
        await pause(world, 0.05, 0.5)
        return result

    async def _schedule(self, sender: QueueSender) -> None:
        """One message for later; maybe it is taken back."""
        world, due_ms = self._world, self._world.now_ms + self._world.random.randrange(200, LATEST_SCHEDULE_MS)
        group, messages = self._new(due_ms=due_ms)
        numbers = await self._told(group, sender.schedule(messages, START_MS + due_ms))
        if numbers is None or world.random.random() < 0.6:
            return
        answer = SeenAnswer.DONE
        try:
            await sender.cancel(*numbers)
        except RequestUnknown:
            answer = SeenAnswer.UNKNOWN
        except ServiceError:
            answer = SeenAnswer.REFUSED  # it is active by then, or its fragment is away
        for queue in self._of(group):
            for sent in queue.history.groups[group]:
                queue.history.cancelled(sent.text, answer)
        world.note(f"{self._name} {group} cancelled {answer.name}")

    def _of(self, group: int) -> list[SeenQueue]:
        """The queues, or subscriptions, that something of a group is for."""
        return [queue for queue in self._queues if group in queue.history.groups]

    def _new(self, due_ms: int | None = None) -> tuple[int, list[QueueMessage]]:
        random, queue = self._world.random, self._queue
        self._groups += 1
        group = _group_number(self._name, self._groups)
        session = f"{self._name} {random.choice('abc')}" if queue.has_sessions else None
        key = None if session is not None or random.random() < 0.5 else f"key {random.randrange(4)}"
        messages = []
        for _ in range(1 if queue.has_ids or due_ms is not None else random.choice([1, 1, 3])):
            self._texts += 1
            text, kind = f"{self._name}.{self._texts}", random.choice(KINDS)
            body = body_of(text, random.choice([5, 200, 3_000]))
            own_id = f"{self._name} {self._texts - (random.randrange(1, 4) if random.random() < 0.3 else 0)}"
            # Duplicates are those of one id and one key.
            seen_id = f"{key} {own_id}" if queue.has_ids else None
            for each in self._queues:
                if each.kind in (None, kind):
                    each.send(group, text, body, self._world.now_ms, session=session, message_id=seen_id, due_ms=due_ms)
            messages.append(
                QueueMessage(body, message_id=own_id, session_id=session, partition_key=key, properties={"kind": kind})
            )
        return group, messages


def _group_number(name: str, number: int) -> int:
    """A number of a group that no other has, the same in every process."""
    return int.from_bytes(name.encode(), "big") * 100_000 + number


async def receive(world: World, queue: SeenQueue, name: str) -> None:
    """Receive and settle until nothing is left that was accepted."""
    client = QueueClient.from_connection_string(CONNECTION_STRING, retry=ONCE, timeout_s=TIMEOUT_S)
    receiver = client.receiver(queue.name)
    while not queue.is_drained:
        try:
            run = await receiver.receive(world.random.choice([1, 3, 10]), max_wait_s=0.7)
        except ServiceError as error:
            world.note(f"{name} {error.condition.symbol}")
            await pause(world, 0.1, 0.8)
            continue
        await _settle_all(world, queue, name, receiver, list(run))
    await client.close()


async def hold_sessions(world: World, queue: SeenQueue, name: str) -> None:
    """Take session after session, and receive and settle what it has, until nothing is left that was accepted."""
    client = QueueClient.from_connection_string(CONNECTION_STRING, retry=ONCE, timeout_s=TIMEOUT_S)
    values = 0
    while not queue.is_drained:
        breaks, asked_ms = dict(queue.breaks), world.now_ms
        try:
            receiver = await client.accept_session(queue.name, max_wait_s=0.7)
        except SessionNotGranted:
            continue
        except ServiceError as error:
            world.note(f"{name} {error.condition.symbol}")
            await pause(world, 0.1, 0.8)
            continue
        number, gateway = partition_of_key(receiver.session_id.encode(), FRAGMENTS), world.gateway_of(name)
        what = (("client", name), ("fragment", number), ("way", gateway and gateway.name, queue.stores[number]))
        is_broken = any(queue.breaks.get(each) != breaks.get(each) for each in what)
        if gateway is None or is_broken or (name, gateway, receiver.link_name) in queue.ended_links:
            await receiver.close()  # it may be over since it was granted
            continue
        hold = queue.history.hold(receiver.session_id, asked_ms + LOCK_MS, world.now_ms)
        queue.holds[hold] = name, gateway, number
        world.note(f"{name} holds {receiver.session_id}")
        try:
            state = await receiver.state()
            if not hold.is_over:
                queue.history.sessions.state_seen(hold.session, state)
            for _ in range(world.random.randrange(1, 4)):
                asked = queue.history.tick
                run = await receiver.receive(world.random.choice([1, 3]), max_wait_s=0.5)
                await _settle_all(world, queue, name, receiver, list(run), hold=hold, asked=asked)
            if world.random.random() < 0.4 and not hold.is_over:
                values += 1
                await _set_state(queue, receiver, hold, f"{name} {values}".encode())
        except ServiceError as error:
            world.note(f"{name} {error.condition.symbol}")
        queue.holds.pop(hold, None)
        queue.history.let_go(hold)
        await receiver.close()
    await client.close()


async def _set_state(queue: SeenQueue, receiver: Any, hold: SeenHold, value: bytes) -> None:
    sessions, what = queue.history.sessions, ("fragment", partition_of_key(hold.session.encode(), FRAGMENTS))
    opened = queue.breaks.get(what)
    sessions.setting(hold.session, value)
    is_done: bool | None = None
    try:
        await receiver.set_state(value)
        is_done = True
    finally:
        if queue.breaks.get(what) == opened:  # else a crash came first
            sessions.set_done(hold.session, value, is_done=is_done)


async def _settle_all(
    world: World,
    queue: SeenQueue,
    name: str,
    receiver: QueueReceiver,
    messages: Iterable[ReceivedMessage],
    *,
    hold: SeenHold | None = None,
    asked: int | None = None,
) -> None:
    parts: dict[SeenOutcome, list[ReceivedMessage]] = {}
    stale: list[ReceivedMessage] = []
    history, now_ms = queue.history, world.now_ms
    for message in messages:
        text, token = text_of(message), token_of(message)
        world.note(f"{name} got {text} {message.sequence_number}")
        queue.expect_due(text, now_ms)
        if not queue.openings.is_current(token) or (hold is not None and hold.is_over):
            history.peeked(text, message.sequence_number, message.body or b"", now_ms, asked=0)
            stale.append(message)
            continue
        history.received(
            text,
            message.sequence_number,
            message.body or b"",
            now_ms,
            token=token,
            until_ms=now_ms + LOCK_MS,
            hold=hold,
            asked=asked,
        )
        outcome = world.random.choices(list(OUTCOMES), list(OUTCOMES.values()))[0]
        parts.setdefault(outcome, []).append(message)
    if hold is None:
        for message in stale:
            await _settle_stale(receiver, message)
    for outcome, some in parts.items():
        for message in some:
            if isinstance(receiver, SessionReceiver) and receiver.lost is not None and hold is not None:
                queue.history.let_go(hold)  # its holder was told that it is over
            if hold is None or not hold.is_over:
                await _settle(world, queue, name, receiver, message, outcome)
        if world.random.random() < 0.2:
            await pause(world, 0.0, 0.4)


async def _settle_stale(receiver: QueueReceiver, message: ReceivedMessage) -> None:
    """A lock of an earlier opening settles nothing. (P7)"""
    try:
        await receiver.complete(message)
    except ServiceError:
        return
    raise Violation(f"P7: the lock of {text_of(message)} is of an earlier opening of its fragment, and settles it")


async def _settle(
    world: World,
    queue: SeenQueue,
    name: str,
    receiver: QueueReceiver,
    message: ReceivedMessage,
    outcome: SeenOutcome,
) -> None:
    settlement = queue.history.settling(token_of(message), outcome, world.now_ms)
    answer = SeenAnswer.DONE
    try:
        await settle(receiver, outcome, [message])
    except ServiceError as error:
        is_lost = error.condition in (MESSAGE_LOCK_LOST, SESSION_LOCK_LOST)
        # Of a link that is gone the client says so itself: nobody was asked.
        answer = SeenAnswer.UNKNOWN if not is_lost or outcome is SeenOutcome.RELEASE else SeenAnswer.LOST
    queue.history.settled(settlement, answer)
    world.note(f"{name} {outcome.name} {text_of(message)} {answer.name}")
