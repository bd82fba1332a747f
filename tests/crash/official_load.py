"""The official Python clients of Event Hubs and Service Bus, living through faults: a sender and a reader of each.

Each is on a thread of its own and does what its users are told to do: it catches the client's errors, and goes on with
the same client. None hangs, every retry ends, and what was said to be sent is received.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

from azure.core.exceptions import AzureError
from azure.eventhub import EventData, EventHubConsumerClient, EventHubProducerClient
from azure.eventhub.exceptions import EventHubError
from azure.servicebus import ServiceBusClient, ServiceBusMessage

from hubweir.client.administration import Administration
from hubweir.client.atom_documents import EntityType
from hubweir.client.connection import Connection
from hubweir.client.management import Management
from hubweir.namespace.connection_string import ConnectionString

HUB, QUEUE = "official-hub", "official-queue"
PARTITIONS = 4
KEYS = 5
GO_ON_S = 90.0  # an official client may try a send for 60 s
BETWEEN_S = 0.02
# A message whose receiver's connection was lost comes again at the end of its lock: by default after a minute.
LOCK = "PT10S"
# Those of Event Hubs have a base of their own. A send in flight as its link is detached ends in one of them.
CLIENT_ERRORS = (AzureError, EventHubError)


class OfficialClients:
    """A context manager: its clients live inside. counts: of sends that succeeded, and that ended in an error."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._is_over, self._is_closing = threading.Event(), threading.Event()
        self._went_on: dict[str, float] = {}
        self._found: list[BaseException] = []
        self._threads: dict[str, threading.Thread] = {}
        self._sent: dict[str, set[str]] = {HUB: set(), QUEUE: set()}
        self._seen: dict[str, set[str]] = {HUB: set(), QUEUE: set()}
        self._reader = EventHubConsumerClient.from_connection_string(target, "$Default", eventhub_name=HUB)
        self.counts = {"sent": 0, "ended in an error": 0}

    def create(self) -> None:
        """The hub and the partitioned queue; blocks."""
        create_hub(self._target, HUB)
        create_queue(self._target, QUEUE)

    def __enter__(self) -> OfficialClients:
        for works in (self._send_events, self._receive_events, self._send_messages, self._receive_messages):
            name = works.__name__.removeprefix("_").replace("_", " ")
            self._went_on[name] = 0.0
            self._threads[name] = threading.Thread(target=self._work, args=(works, name), name=name, daemon=True)
            self._threads[name].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._is_closing.set()
        self._reader.close()

    def all_went_on(self) -> None:
        """Wait until each client did again what it is for. AssertionError: one hangs."""
        began = time.monotonic()
        self._wait(lambda: all(at > began for at in self._went_on.values()), "went on")

    def stop(self) -> None:
        """End the senders, wait until all that they sent was received, then end the readers."""
        self._is_over.set()
        for name in ("send events", "send messages"):
            self._threads[name].join(GO_ON_S)
        self._wait(lambda: all(self._sent[name] <= self._seen[name] for name in self._sent), "received all")
        self._is_closing.set()
        self._reader.close()
        for thread in self._threads.values():
            thread.join(GO_ON_S)
        assert not (left := [name for name, each in self._threads.items() if each.is_alive()]), f"{left} do not end"
        assert self.counts["sent"]

    def _wait(self, holds: Callable[[], bool], what: str) -> None:
        limit = time.monotonic() + GO_ON_S
        while not holds():
            if self._found:
                raise self._found[0]
            missing = {name: len(self._sent[name] - self._seen[name]) for name in self._sent}
            ages = {name: round(time.monotonic() - at, 1) for name, at in self._went_on.items()}
            assert time.monotonic() < limit, f"not {what}: {ages} s since they went on, {missing} not received"
            time.sleep(0.05)

    def _work(self, works: Callable[[str], None], name: str) -> None:
        try:
            works(name)
        except BaseException as error:  # handed to the test's thread
            self._found.append(error)

    def _goes_on(self, name: str) -> None:
        self._went_on[name] = time.monotonic()

    def _send(self, name: str, entity: str, send: Callable[[int, str], None]) -> None:
        number = 0
        while not self._is_over.is_set():
            number += 1
            body = f"{entity} {number}"
            try:
                send(number, body)
            except CLIENT_ERRORS:
                self.counts["ended in an error"] += 1  # it is stored, or not
            else:
                self._sent[entity].add(body)
                self.counts["sent"] += 1
                self._goes_on(name)
            time.sleep(BETWEEN_S)

    def _send_events(self, name: str) -> None:
        with EventHubProducerClient.from_connection_string(self._target, eventhub_name=HUB) as client:

            def send(number: int, body: str) -> None:
                key = None if number % 2 else f"key-{number % KEYS}"
                client.send_batch([EventData(body)], partition_key=key)

            self._send(name, HUB, send)

    def _send_messages(self, name: str) -> None:
        with ServiceBusClient.from_connection_string(self._target) as client, client.get_queue_sender(QUEUE) as sender:

            def send(number: int, body: str) -> None:
                key = {} if number % 2 else {"partition_key": f"key-{number % KEYS}"}
                sender.send_messages(ServiceBusMessage(body, **key))

            self._send(name, QUEUE, send)

    def _receive_events(self, name: str) -> None:
        def take(partition: Any, events: list[EventData]) -> None:
            self._seen[HUB].update(event.body_as_str() for event in events)
            if events:
                self._goes_on(name)

        while not self._is_closing.is_set():
            try:
                self._reader.receive_batch(on_event_batch=take, starting_position="-1", max_wait_time=1)
            except CLIENT_ERRORS:
                time.sleep(BETWEEN_S)

    def _receive_messages(self, name: str) -> None:
        with ServiceBusClient.from_connection_string(self._target) as client:
            while not self._is_closing.is_set():
                try:
                    with client.get_queue_receiver(QUEUE) as receiver:
                        self._complete_all(name, receiver)
                except CLIENT_ERRORS:
                    time.sleep(BETWEEN_S)

    def _complete_all(self, name: str, receiver: Any) -> None:
        while not self._is_closing.is_set():
            for message in receiver.receive_messages(max_message_count=20, max_wait_time=1):
                self._seen[QUEUE].add(str(message))
                receiver.complete_message(message)
                self._goes_on(name)


def create_hub(target: str, name: str) -> None:
    async def create() -> None:
        connection = await Connection.open(ConnectionString.parse(target))
        settings = {"partition_count": PARTITIONS, "retention_ms": 3_600_000, "durability": "durable"}
        await Management(connection).create_hub(name, **settings)
        await connection.close()

    asyncio.run(create())


def create_queue(target: str, name: str) -> None:
    members = {"EnablePartitioning": "true", "MaxDeliveryCount": "1000", "LockDuration": LOCK}
    Administration(ConnectionString.parse(target)).create(EntityType.QUEUE, name, members)
