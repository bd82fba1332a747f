"""A process that takes flights as orders: aircraft by aircraft, each flight recorded, then completed.

    HUBWEIR_CONNECTION_STRING=… python demo/worker.py TOPIC SUBSCRIPTION QUEUE [--hold]

It accepts the next sessions of the subscription that nobody holds, a few at once, sends a record of each flight to the
queue, and completes the flight. A flight whose record was sent, and which was not completed, comes again to another
worker; its record is sent again with the message id of the flight, and the queue drops it as a duplicate. So each
flight is recorded once, whenever a worker ends. What it did goes to stdout, a line of JSON for each batch (`Told`).
"""

from __future__ import annotations

import argparse
import asyncio
import os

import msgspec
from azure.servicebus import NEXT_AVAILABLE_SESSION, ServiceBusMessage, ServiceBusReceivedMessage
from azure.servicebus.aio import ServiceBusClient, ServiceBusReceiver, ServiceBusSender
from azure.servicebus.exceptions import OperationTimeoutError

# Accepting and closing a session costs this client about a second, nearly all of it asleep: so several at once.
SESSION_COUNT = 8
# Also how many are prefetched. Without prefetch this client gives back what comes between two calls, one by one, while
# later flights of the session are on their way: they would be handled before what was given back.
BATCH_COUNT = 40
# An aircraft without a flight for so long gives its place to the next. Too short costs a second visit, and no flight.
QUIET_S = 0.1
# A place that gets no session for so long ends.
IDLE_S = 5.0
# With --hold: the batch of each place, counted from 0, whose flights are recorded and never completed.
HELD_BATCH = 1


class Told(msgspec.Struct):
    """One batch of one aircraft: how many flights came, how many of them not for the first time, how many completed."""

    aircraft: str
    received: int
    again: int
    completed: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    for name in ("topic", "subscription", "queue"):
        parser.add_argument(name)
    parser.add_argument("--hold", action="store_true", help="stop with locks held, to be killed")
    asyncio.run(work(parser.parse_args()))


async def work(arguments: argparse.Namespace) -> None:
    """Work at several sessions at once until no session is left."""
    async with asyncio.TaskGroup() as places:
        for _ in range(SESSION_COUNT):
            place = Place(arguments.subscription, hold_at=HELD_BATCH if arguments.hold else None)
            places.create_task(place.work(os.environ["HUBWEIR_CONNECTION_STRING"], arguments.topic, arguments.queue))


class Place:
    """One of the places of a worker: it has one aircraft's session at a time."""

    def __init__(self, carrier: str, *, hold_at: int | None) -> None:
        self._carrier = carrier
        self._batches_left = hold_at

    async def work(self, connection_string: str, topic: str, queue: str) -> None:
        """Take session after session, until none comes."""
        async with (
            ServiceBusClient.from_connection_string(connection_string) as client,
            client.get_queue_sender(queue) as sender,
        ):
            while True:
                receiver = client.get_subscription_receiver(
                    topic,
                    self._carrier,
                    session_id=NEXT_AVAILABLE_SESSION,
                    max_wait_time=IDLE_S,
                    prefetch_count=BATCH_COUNT,
                )
                try:
                    async with receiver:
                        await self.one_session(receiver, sender)
                except OperationTimeoutError:
                    return

    async def one_session(self, receiver: ServiceBusReceiver, sender: ServiceBusSender) -> None:
        """Record and complete the flights of one aircraft, in their order, until none comes."""
        while flights := await receiver.receive_messages(BATCH_COUNT, max_wait_time=QUIET_S):
            await sender.send_messages([self._record(flight) for flight in flights])
            again = sum(1 for flight in flights if flight.delivery_count)
            told = Told(receiver.session.session_id, received=len(flights), again=again, completed=0)
            await self._hold_if_asked(told)
            for flight in flights:
                await receiver.complete_message(flight)
            told.completed = len(flights)
            tell(told)

    def _record(self, flight: ServiceBusReceivedMessage) -> ServiceBusMessage:
        properties = {"aircraft": flight.session_id, "carrier": self._carrier}
        return ServiceBusMessage(b"".join(flight.body), message_id=flight.message_id, application_properties=properties)

    async def _hold_if_asked(self, told: Told) -> None:
        """The worst moment to be killed in: the records are sent, and no flight is completed."""
        if self._batches_left is None:
            return
        if not self._batches_left:
            tell(told)
            await asyncio.Event().wait()
        self._batches_left -= 1


def tell(told: Told) -> None:
    print(msgspec.json.encode(told).decode(), flush=True)


if __name__ == "__main__":
    main()
