"""What the tests with the official Python client of queues share: its clients, and receiving with a limit."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from azure.servicebus import (
    ServiceBusClient,
    ServiceBusReceivedMessage,
    ServiceBusReceiver,
    ServiceBusSender,
)

from tests.conformance.conftest import Doors

# So long a receive waits for its first message; one that is to find nothing gets QUIET_S.
WAIT_S = 40.0
QUIET_S = 0.5
# The shortest lock that there is, and what a test waits for its end.
LOCK_MS = 5_000
LOCK_ENDS_S = 6.0


def options(doors: Doors, *, tls: bool) -> dict[str, Any]:
    """What every client of these tests is told. A retry would hide what the first answer was."""
    return {"retry_total": 0, **({"connection_verify": doors.ca_file} if tls else {})}


@contextmanager
def connected(doors: Doors, *, tls: bool = False, conn_str: str = "", **more: Any) -> Iterator[ServiceBusClient]:
    """A client that is closed at the end."""
    string = conn_str or doors.connection_string(tls=tls)
    with ServiceBusClient.from_connection_string(string, **{**options(doors, tls=tls), **more}) as client:
        yield client


def sender_to(client: ServiceBusClient, queue: str) -> ServiceBusSender:
    return client.get_queue_sender(queue)


def receive(receiver: ServiceBusReceiver, count: int, *, seconds: float = WAIT_S) -> list[ServiceBusReceivedMessage]:
    """The next messages, exactly so many: one call may return fewer."""
    got: list[ServiceBusReceivedMessage] = []
    end = time.monotonic() + seconds
    while len(got) < count and (left := end - time.monotonic()) > 0:
        got += receiver.receive_messages(max_message_count=count - len(got), max_wait_time=left)
    assert len(got) == count, f"{len(got)} of {count} came: {[str(each) for each in got]}"
    return got


def receive_one(receiver: ServiceBusReceiver, *, seconds: float = WAIT_S) -> ServiceBusReceivedMessage:
    [message] = receive(receiver, 1, seconds=seconds)
    return message


def is_empty(receiver: ServiceBusReceiver) -> bool:
    """Whether nothing comes for a while."""
    return not receiver.receive_messages(max_message_count=1, max_wait_time=QUIET_S)


def texts(messages: list[ServiceBusReceivedMessage]) -> list[str]:
    return [str(message) for message in messages]


def now() -> datetime:
    return datetime.now(UTC)
