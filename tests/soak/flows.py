"""What official clients do to a service all the time: events, messages, sessions, subscriptions, and the catalog.

A flow makes a step, rests, and makes the next one, until it is told to stop; then it takes what is still on its way.
Its ledgers say what should have come. An error that a client raises ends the flow and is a complaint: nothing of what
happens in a soak excuses it.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import ExitStack
from datetime import timedelta
from typing import Any

from azure.eventhub import EventData, EventHubConsumerClient, EventHubProducerClient
from azure.servicebus import (
    NEXT_AVAILABLE_SESSION,
    ServiceBusClient,
    ServiceBusMessage,
    ServiceBusReceiver,
    ServiceBusSubQueue,
)
from azure.servicebus.exceptions import OperationTimeoutError
from azure.servicebus.management import ServiceBusAdministrationClient, SqlRuleFilter

from tests.soak.ledger import Ledger

HUB, QUEUE, SESSION_QUEUE, TOPIC = "orders", "kitchen", "tables", "news"
PARTITIONS, SESSIONS = 4, 8
EVENTS, MESSAGES = 10, 5  # of a step
PAUSE_S, CATALOG_PAUSE_S = 0.5, 5.0
WAIT_S = 1.0  # for a message
# A machine may be busy with other tests; no lock ends meanwhile.
DRAIN_S, LOCK = 120.0, timedelta(minutes=5)
PADDING = "x" * 400
ABANDONED, DEAD = 7, 11  # of every so many messages one


def prepare(administration: ServiceBusAdministrationClient) -> None:
    """Make the queues and the topic of the flows; the hub is made by the command line."""
    administration.create_queue(QUEUE, lock_duration=LOCK)
    administration.create_queue(SESSION_QUEUE, requires_session=True, lock_duration=LOCK)
    administration.create_topic(TOPIC)
    for name in ("all", "even"):
        administration.create_subscription(TOPIC, name, lock_duration=LOCK)
    administration.delete_rule(TOPIC, "even", "$Default")
    administration.create_rule(TOPIC, "even", "even", filter=SqlRuleFilter("parity = 0"))


class Flow(ABC):
    """See the module's text. ledgers: one for each sequence of numbers. warm_steps: the service has met everything that
    the flow does once it made so many.
    """

    pause_s, warm_steps = PAUSE_S, 2 * SESSIONS

    def __init__(self, name: str, ledgers: Iterable[Ledger] = ()) -> None:
        self.name = name
        self.ledgers = list(ledgers)
        self.steps = 0
        self._trouble: list[str] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def begin(self) -> None:
        self._thread.start()

    @property
    def is_warm(self) -> bool:
        """Whether it made its first steps, or cannot make any more."""
        return self.steps >= self.warm_steps or bool(self._trouble)

    def stop(self) -> None:
        """Tell it to stop; `complaints` waits."""
        self._stop.set()

    def complaints(self) -> list[str]:
        """What is wrong, once it has ended."""
        self._thread.join(2 * DRAIN_S)
        hangs = [f"{self.name} does not end"] if self._thread.is_alive() else []
        return [*self._trouble, *hangs, *(each for ledger in self.ledgers for each in ledger.complaints())]

    @abstractmethod
    def open(self, stack: ExitStack) -> None:
        """Open clients, to be closed with the stack. On the flow's own thread, as all that follows."""

    @abstractmethod
    def step(self) -> None:
        """Do it once."""

    def receive(self) -> None:  # noqa: B027 - most flows receive what they send; some have nothing to receive
        """Take what has come, again and again behind the last step."""

    def _run(self) -> None:
        try:
            with ExitStack() as stack:
                self.open(stack)
                while not self._stop.wait(self.pause_s):
                    self.step()
                    self.steps += 1
                until = time.monotonic() + DRAIN_S
                while not all(ledger.is_whole for ledger in self.ledgers) and time.monotonic() < until:
                    self.receive()
        except Exception as error:
            self._trouble.append(f"{self.name}: {type(error).__name__}: {error}")


class EventFlow(Flow):
    """Batches to one partition after the other, and one reader of all of them."""

    def __init__(self, connection_string: str) -> None:
        super().__init__("events", (Ledger(f"partition {n}", is_ordered=True) for n in range(PARTITIONS)))
        self._how: dict[str, Any] = {"conn_str": connection_string, "eventhub_name": HUB}

    def open(self, stack: ExitStack) -> None:
        self._producer = stack.enter_context(EventHubProducerClient.from_connection_string(**self._how))
        consumer = EventHubConsumerClient.from_connection_string(consumer_group="$Default", **self._how)
        reader = threading.Thread(target=self._read, args=(consumer,), name="events, read", daemon=True)
        reader.start()
        stack.callback(reader.join, DRAIN_S)
        stack.callback(consumer.close)

    def step(self) -> None:
        partition = self.steps % PARTITIONS
        batch = self._producer.create_batch(partition_id=str(partition))
        for number in self.ledgers[partition].send(EVENTS):
            batch.add(EventData(f"{number} {PADDING}"))
        self._producer.send_batch(batch)

    def receive(self) -> None:
        time.sleep(0.1)  # the reader does it

    def _read(self, consumer: EventHubConsumerClient) -> None:
        consumer.receive_batch(self._came, on_error=self._failed, starting_position="-1", max_wait_time=WAIT_S)

    def _came(self, context: Any, events: list[EventData]) -> None:
        ledger = self.ledgers[int(context.partition_id)]
        for event in events:
            ledger.come(number_of(event.body_as_str()))

    def _failed(self, context: Any, error: Exception) -> None:
        self._trouble.append(f"the reader heard {type(error).__name__}: {error}")


class QueueFlow(Flow):
    """Messages that are completed, abandoned and dead-lettered; dead letters are taken, too."""

    def __init__(self, connection_string: str) -> None:
        super().__init__("messages", [Ledger(QUEUE)])
        self._connection_string = connection_string

    def open(self, stack: ExitStack) -> None:
        client = stack.enter_context(ServiceBusClient.from_connection_string(self._connection_string))
        self._sender = stack.enter_context(client.get_queue_sender(QUEUE))
        self._receiver = stack.enter_context(client.get_queue_receiver(QUEUE))
        dead = client.get_queue_receiver(QUEUE, sub_queue=ServiceBusSubQueue.DEAD_LETTER)
        self._dead = stack.enter_context(dead)

    def step(self) -> None:
        self._sender.send_messages([message(number) for number in self.ledgers[0].send(MESSAGES)])
        self.receive()

    def receive(self) -> None:
        [ledger] = self.ledgers
        for received in self._receiver.receive_messages(2 * MESSAGES, max_wait_time=WAIT_S):
            number = number_of(str(received))
            is_new = ledger.come(number)
            if is_new and number % ABANDONED == 0:
                ledger.explain(number)
                self._receiver.abandon_message(received)
            elif number % DEAD == 0:
                ledger.explain(number)
                self._receiver.dead_letter_message(received, reason="the soak wants dead letters")
            else:
                self._receiver.complete_message(received)
        for received in self._dead.receive_messages(2 * MESSAGES, max_wait_time=0.1):
            ledger.come(number_of(str(received)))
            self._dead.complete_message(received)


class SessionFlow(Flow):
    """Messages of several sessions; each session is accepted by a receiver of its own, which keeps a state there."""

    def __init__(self, connection_string: str) -> None:
        super().__init__("sessions", (Ledger(f"session {n}", is_ordered=True) for n in range(SESSIONS)))
        self._connection_string = connection_string

    def open(self, stack: ExitStack) -> None:
        self._client = stack.enter_context(ServiceBusClient.from_connection_string(self._connection_string))
        self._sender = stack.enter_context(self._client.get_queue_sender(SESSION_QUEUE))

    def step(self) -> None:
        session = self.steps % SESSIONS
        numbers = self.ledgers[session].send(MESSAGES)
        self._sender.send_messages([message(number, session_id=str(session)) for number in numbers])
        self.receive()

    def receive(self) -> None:
        receiver = self._client.get_queue_receiver(
            SESSION_QUEUE, session_id=NEXT_AVAILABLE_SESSION, max_wait_time=WAIT_S
        )
        try:
            with receiver:
                self._take(receiver, int(receiver.session.session_id))
        except OperationTimeoutError:
            return  # no session has a message

    def _take(self, receiver: ServiceBusReceiver, session: int) -> None:
        state = receiver.session.get_state()
        for received in receiver.receive_messages(MESSAGES, max_wait_time=WAIT_S):
            number = number_of(str(received))
            if number and state != str(number - 1).encode():
                self._trouble.append(f"session {session}: {number} met the state {state!r}")
            self.ledgers[session].come(number)
            state = str(number).encode()
            receiver.session.set_state(state)
            receiver.complete_message(received)


class TopicFlow(Flow):
    """A topic with two subscriptions: one has every message, a rule gives the other those with an even number."""

    def __init__(self, connection_string: str) -> None:
        # Not ordered: the client gives back what comes while nobody calls receive_messages, and gets that again later.
        super().__init__("topic", [Ledger("all"), Ledger("even")])
        self._connection_string = connection_string

    def open(self, stack: ExitStack) -> None:
        client = stack.enter_context(ServiceBusClient.from_connection_string(self._connection_string))
        self._sender = stack.enter_context(client.get_topic_sender(TOPIC))
        self._receivers = {
            ledger: stack.enter_context(client.get_subscription_receiver(TOPIC, ledger.name)) for ledger in self.ledgers
        }

    def step(self) -> None:
        every, even = self.ledgers
        numbers = every.send(MESSAGES)
        even.send(sum(number % 2 == 0 for number in numbers))
        self._sender.send_messages([message(each, application_properties={"parity": each % 2}) for each in numbers])
        self.receive()

    def receive(self) -> None:
        every = self.ledgers[0]
        for ledger, receiver in self._receivers.items():
            for received in receiver.receive_messages(2 * MESSAGES, max_wait_time=WAIT_S):
                number = number_of(str(received))
                ledger.come(number if ledger is every else number // 2)
                receiver.complete_message(received)


class CatalogFlow(Flow):
    """Entities that are made, changed and deleted again."""

    pause_s, warm_steps = CATALOG_PAUSE_S, 2

    def __init__(self, administration: ServiceBusAdministrationClient) -> None:
        super().__init__("catalog")
        self._administration = administration

    def open(self, stack: ExitStack) -> None:
        """The client is there, and whoever made it closes it."""

    def step(self) -> None:
        queue, topic = f"passing-queue-{self.steps}", f"passing-topic-{self.steps}"
        made = self._administration.create_queue(queue)
        made.lock_duration = LOCK
        self._administration.update_queue(made)
        self._administration.create_topic(topic)
        self._administration.create_subscription(topic, "passing")
        self._administration.delete_queue(queue)
        self._administration.delete_topic(topic)
        left = [each.name for each in self._administration.list_queues() if each.name.startswith("passing")]
        if left:
            self._trouble.append(f"queues that were deleted are listed: {left}")


def message(number: int, **how: Any) -> ServiceBusMessage:
    return ServiceBusMessage(f"{number} {PADDING}", **how)


def number_of(body: str) -> int:
    return int(body.split(" ", 1)[0])
