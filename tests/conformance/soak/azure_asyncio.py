"""The official Python client on asyncio, over many minutes. What it does is task.py."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable
from typing import Any

from azure.core.credentials import AccessToken
from azure.eventhub import EventData
from azure.eventhub.aio import EventHubConsumerClient, EventHubProducerClient

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
    signature,
    watch,
)


class Credential:
    """Makes tokens when the client wants one, and counts."""

    def __init__(self) -> None:
        self.made = 0

    async def get_token(self, *scopes: str, **kwargs: Any) -> AccessToken:
        self.made += 1
        return AccessToken(*signature())

    async def close(self) -> None:
        pass

    async def __aexit__(self, *reason: object) -> None:
        pass


def clients(way: str, credential: Credential) -> tuple[EventHubProducerClient, EventHubConsumerClient]:
    if way == "key":
        producer = EventHubProducerClient.from_connection_string(PLAIN, eventhub_name=HUB)
        return producer, EventHubConsumerClient.from_connection_string(
            PLAIN, consumer_group="$Default", eventhub_name=HUB
        )
    producer = EventHubProducerClient(HOST, HUB, credential, connection_verify=CA_FILE)
    return producer, EventHubConsumerClient(HOST, HUB, "$Default", credential, connection_verify=CA_FILE)


class Reading:
    """One partition, read in a task from its beginning: bodies, and the errors that were heard."""

    def __init__(self, client: EventHubConsumerClient, partition: str) -> None:
        self.bodies: list[str] = []
        self.errors: list[str] = []
        self._task = asyncio.create_task(self._read(client, partition))

    async def expect(self, bodies: list[str]) -> None:
        """Return when exactly these have come; what came instead is raised after half of STEP_S."""
        for _ in range(int(STEP_S * 5)):
            if self.bodies == bodies or self.errors:
                break
            await asyncio.sleep(0.1)
        if self.errors:
            raise AssertionError(f"the reader heard {self.errors}")
        if self.bodies != bodies:
            raise AssertionError(f"{len(self.bodies)} events of {len(bodies)} came")

    async def _read(self, client: EventHubConsumerClient, partition: str) -> None:
        async def on_event(context: Any, event: EventData | None) -> None:
            if event is not None:
                self.bodies.append(event.body_as_str())

        async def on_error(context: Any, error: Exception) -> None:
            self.errors.append(repr(error))

        try:
            await client.receive(on_event, on_error=on_error, partition_id=partition, starting_position="-1")
        except Exception as error:
            self.errors.append(repr(error))


async def send(producer: EventHubProducerClient, partition: str, body: str) -> None:
    batch = await producer.create_batch(partition_id=partition)
    batch.add(EventData(body))
    await producer.send_batch(batch)


async def busy(check: Check, way: str) -> None:
    producer, consumer = clients(way, Credential())
    partition = PARTITIONS[way][0]
    reading, sent, look_s = Reading(consumer, partition), list[str](), left_s()
    while left_s():
        check.step("send")
        body = f"event {len(sent)}"
        await send(producer, partition, body)
        sent.append(body)
        check.step("receive")
        await reading.expect(sent)
        if left_s() < look_s:
            look_s -= LOOK_S
            check.step("read the partition's properties")
            await producer.get_partition_properties(partition)
        check.rest(EVERY_S)
        await asyncio.sleep(EVERY_S)


async def idle(check: Check, way: str) -> None:
    producer, consumer = clients(way, Credential())
    partition = PARTITIONS[way][1]
    reading = Reading(consumer, partition)
    for body, rest_s in (("first", left_s()), ("last", 0.0)):
        check.step(f"read the hub's properties, {body}")
        await producer.get_eventhub_properties()
        check.step(f"send, {body}")
        await send(producer, partition, body)
        check.step(f"receive, {body}")
        await reading.expect(["first", "last"][: 1 + (body == "last")])
        check.rest(rest_s)
        await asyncio.sleep(rest_s)


async def renewed(check: Check) -> None:
    """A reader polls all the time, so its connection puts every token; nobody else uses this credential."""
    credential = Credential()
    _, consumer = clients("token", credential)
    reading = Reading(consumer, PARTITIONS["token"][1])
    check.rest(left_s())
    await asyncio.sleep(left_s())
    if reading.errors or credential.made < 3:
        raise AssertionError(f"{credential.made} tokens were made; the reader heard {reading.errors}")


CHECKS: dict[str, Callable[[Check], Awaitable[None]]] = {
    "key_busy": lambda check: busy(check, "key"),
    "key_idle": lambda check: idle(check, "key"),
    "token_busy": lambda check: busy(check, "token"),
    "token_idle": lambda check: idle(check, "token"),
    "tokens_renewed": renewed,
}


async def run(check: Check, body: Callable[[Check], Awaitable[None]]) -> None:
    try:
        await body(check)
        check.end()
    except Exception as error:
        check.end(f"{type(error).__name__}: {error}")


async def main(checks: list[Check]) -> None:
    await asyncio.gather(*(run(check, CHECKS[check.name]) for check in checks))


if __name__ == "__main__":
    made = [Check(name) for name in CHECKS]
    # The watch is on a thread of its own: a client could hold the loop, too.
    threading.Thread(target=lambda: asyncio.run(main(made)), daemon=True).start()
    watch(made)
    os._exit(0)
