"""The official Python client, blocking, over many minutes. What it does is task.py."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

from azure.core.credentials import AccessToken
from azure.eventhub import EventData, EventHubConsumerClient, EventHubProducerClient

from tests.conformance.soak.task import (
    CA_FILE,
    EVERY_S,
    HOST,
    HUB,
    LOOK_S,
    PARTITIONS,
    PLAIN,
    STEP_S,
    Check,
    left_s,
    run_on_threads,
    signature,
)


class Credential:
    """Makes tokens when the client wants one, and counts."""

    def __init__(self) -> None:
        self.made = 0

    def get_token(self, *scopes: str, **kwargs: Any) -> AccessToken:
        self.made += 1
        return AccessToken(*signature())


def clients(way: str, credential: Credential) -> tuple[EventHubProducerClient, EventHubConsumerClient]:
    if way == "key":
        producer = EventHubProducerClient.from_connection_string(PLAIN, eventhub_name=HUB)
        return producer, EventHubConsumerClient.from_connection_string(
            PLAIN, consumer_group="$Default", eventhub_name=HUB
        )
    producer = EventHubProducerClient(HOST, HUB, credential, connection_verify=CA_FILE)
    return producer, EventHubConsumerClient(HOST, HUB, "$Default", credential, connection_verify=CA_FILE)


class Reading:
    """One partition, read on a thread from its beginning: bodies, and the errors that were heard."""

    def __init__(self, client: EventHubConsumerClient, partition: str) -> None:
        self.bodies: list[str] = []
        self.errors: list[str] = []
        threading.Thread(target=self._read, args=(client, partition), daemon=True).start()

    def expect(self, bodies: list[str]) -> None:
        """Return when exactly these have come; what came instead is raised after STEP_S."""
        until = time.monotonic() + STEP_S / 2
        while self.bodies != bodies and not self.errors and time.monotonic() < until:
            time.sleep(0.1)
        if self.errors:
            raise AssertionError(f"the reader heard {self.errors}")
        if self.bodies != bodies:
            raise AssertionError(f"{len(self.bodies)} events of {len(bodies)} came")

    def _read(self, client: EventHubConsumerClient, partition: str) -> None:
        try:
            client.receive(
                lambda context, event: self.bodies.append(event.body_as_str()),
                on_error=lambda context, error: self.errors.append(repr(error)),
                partition_id=partition,
                starting_position="-1",
            )
        except Exception as error:
            self.errors.append(repr(error))


def send(producer: EventHubProducerClient, partition: str, body: str) -> None:
    batch = producer.create_batch(partition_id=partition)
    batch.add(EventData(body))
    producer.send_batch(batch)


def busy(check: Check, way: str) -> None:
    producer, consumer = clients(way, Credential())
    partition = PARTITIONS[way][0]
    reading, sent, look_s = Reading(consumer, partition), list[str](), left_s()
    while left_s():
        check.step("send")
        body = f"event {len(sent)}"
        send(producer, partition, body)
        sent.append(body)
        check.step("receive")
        reading.expect(sent)
        if left_s() < look_s:
            look_s -= LOOK_S
            check.step("read the partition's properties")
            producer.get_partition_properties(partition)
        check.rest(EVERY_S)
        time.sleep(EVERY_S)


def idle(check: Check, way: str) -> None:
    producer, consumer = clients(way, Credential())
    partition = PARTITIONS[way][1]
    reading = Reading(consumer, partition)
    for body, rest_s in (("first", left_s()), ("last", 0.0)):
        check.step(f"read the hub's properties, {body}")
        producer.get_eventhub_properties()
        check.step(f"send, {body}")
        send(producer, partition, body)
        check.step(f"receive, {body}")
        reading.expect(["first", "last"][: 1 + (body == "last")])
        check.rest(rest_s)
        time.sleep(rest_s)


def renewed(check: Check) -> None:
    """A reader polls all the time, so its connection puts every token; nobody else uses this credential."""
    credential = Credential()
    _, consumer = clients("token", credential)
    reading = Reading(consumer, PARTITIONS["token"][1])
    check.rest(left_s())
    time.sleep(left_s())
    if reading.errors or credential.made < 3:
        raise AssertionError(f"{credential.made} tokens were made; the reader heard {reading.errors}")


CHECKS: dict[str, Callable[[Check], None]] = {
    "key_busy": lambda check: busy(check, "key"),
    "key_idle": lambda check: idle(check, "key"),
    "token_busy": lambda check: busy(check, "token"),
    "token_idle": lambda check: idle(check, "token"),
    "tokens_renewed": renewed,
}

if __name__ == "__main__":
    run_on_threads(CHECKS)
    os._exit(0)  # a thread that waits without end would keep the process
