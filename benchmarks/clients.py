"""What a message costs its client: the official client of queues for Python, and hubweir's, at one service.

    ./run bench clients [--messages N] [--rounds N]

Messages of 200 B. Rows: a send of one message, waited for; sends of 100; receives of up to 100 under peek-lock, each
message completed, the official client by one call a message, for it has no other; the same with body, sequence number,
message id and properties looked at; receive-and-delete. Figures: messages/s, and the processor time of the client's
process, which other processes do not change. Both clients block. It needs azure-servicebus, which the tests have.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusReceiveMode
from rich.console import Console
from rich.table import Table

from hubweir.client.blocking_queue import BlockingQueueClient
from hubweir.client.queue_message import QueueMessage
from hubweir.client.queue_receiver import QueueReceiverOptions
from hubweir.namespace.connection_string import ConnectionString
from hubweir.queue.sub_queue import ReceiveMode
from hubweir.testing.server_process import ServerProcess
from queue_cases.queues import create_queue
from spine import pid_of, pin

BODY = bytes(200)
PROPERTIES: dict[Any, Any] = {"gate": 7, "carrier": "UA"}
AT_ONCE = 100
WAIT_S = 10
JOBS = ("send 1", f"send {AT_ONCE}", "receive, complete", "receive, look, complete", "receive and delete")


class Official:
    """azure-servicebus."""

    name = "azure-servicebus"

    def __init__(self, text: str, queue: str) -> None:
        self._client = ServiceBusClient.from_connection_string(text)
        self._sender = self._client.get_queue_sender(queue)
        self._queue = queue

    def send(self, count: int, at_once: int) -> None:
        for _ in range(count // at_once):
            made = [ServiceBusMessage(BODY, application_properties=PROPERTIES) for _ in range(at_once)]
            self._sender.send_messages(made if at_once > 1 else made[0])

    def receive(self, count: int, *, looks: bool, deletes: bool) -> None:
        mode = ServiceBusReceiveMode.RECEIVE_AND_DELETE if deletes else ServiceBusReceiveMode.PEEK_LOCK
        with self._client.get_queue_receiver(self._queue, receive_mode=mode, prefetch_count=AT_ONCE) as receiver:
            while count > 0:
                messages = receiver.receive_messages(max_message_count=min(AT_ONCE, count), max_wait_time=WAIT_S)
                for message in messages:
                    if looks:
                        _ = b"".join(message.body), message.sequence_number, message.message_id
                        _ = message.application_properties
                    if not deletes:
                        receiver.complete_message(message)
                count -= len(messages)

    def close(self) -> None:
        self._sender.close()
        self._client.close()


class Ours:
    """hubweir.client, blocking."""

    name = "hubweir.client"

    def __init__(self, text: str, queue: str) -> None:
        self._client = BlockingQueueClient.from_connection_string(text)
        self._sender = self._client.sender(queue)
        self._queue = queue

    def send(self, count: int, at_once: int) -> None:
        for _ in range(count // at_once):
            self._sender.send(*(QueueMessage(BODY, PROPERTIES) for _ in range(at_once)))

    def receive(self, count: int, *, looks: bool, deletes: bool) -> None:
        mode = ReceiveMode.RECEIVE_AND_DELETE if deletes else ReceiveMode.PEEK_LOCK
        receiver = self._client.receiver(self._queue, QueueReceiverOptions(mode=mode, prefetch=AT_ONCE))
        while count > 0:
            run = receiver.receive(min(AT_ONCE, count), max_wait_s=WAIT_S)
            if looks:
                for message in run:
                    _ = message.body, message.sequence_number, message.message_id, message.properties
            if not deletes:
                receiver.complete(run)
            count -= len(run)
        receiver.close()

    def close(self) -> None:
        self._client.close()


Client = Official | Ours


def one_round(client: Client, messages: int, told: dict[str, list[tuple[float, float]]]) -> None:
    """Every job once: seconds and processor seconds a message.

    What is received and deleted is all that is left: what was prefetched beyond it would be gone.
    """

    def measured(job: str, count: int, step: Callable[[], None]) -> None:
        begun, cpu = time.perf_counter(), time.process_time()
        step()
        told.setdefault(job, []).append(((time.perf_counter() - begun) / count, (time.process_time() - cpu) / count))

    few = messages // 10
    measured(JOBS[0], few, lambda: client.send(few, 1))
    measured(JOBS[1], messages, lambda: client.send(messages, AT_ONCE))
    measured(JOBS[2], messages + few, lambda: client.receive(messages + few, looks=False, deletes=False))
    client.send(2 * messages, AT_ONCE)
    measured(JOBS[3], messages, lambda: client.receive(messages, looks=True, deletes=False))
    measured(JOBS[4], messages, lambda: client.receive(messages, looks=False, deletes=True))


def main() -> int:
    parser = argparse.ArgumentParser(prog="./run bench clients", description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--messages", type=int, default=5_000, help="messages a round (default 5000)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds, the clients in turn (default 3)")
    chosen = parser.parse_args()
    told: dict[str, dict[str, list[tuple[float, float]]]] = {Official.name: {}, Ours.name: {}}
    with tempfile.TemporaryDirectory(prefix="hubweir-bench-") as folder, ServerProcess(data=Path(folder)) as server:
        placed = pin(pid_of(server))
        for kind in (Official, Ours):
            create_queue(ConnectionString.parse(server.connection_string()), kind.name)
        for _ in range(chosen.rounds):
            for kind in (Official, Ours):
                client: Client = kind(server.connection_string(), kind.name)
                one_round(client, chosen.messages, told[kind.name])
                client.close()
    table = Table("", *(f"{name}: messages/s" for name in told), *(f"{name}: CPU, us" for name in told), "CPU, ratio")
    for job in JOBS:
        seconds = [median(each[0] for each in told[name][job]) for name in told]
        cpu = [median(each[1] for each in told[name][job]) * 1e6 for name in told]
        table.add_row(
            job, *(f"{1 / each:,.0f}" for each in seconds), *(f"{each:,.1f}" for each in cpu), f"{cpu[0] / cpu[1]:.1f}"
        )
    console = Console(width=None if sys.stdout.isatty() else 160)
    console.print(table)
    console.print(f"{len(BODY)} B and two properties; {placed}; medians of {chosen.rounds} rounds; durable")
    return 0


if __name__ == "__main__":
    sys.exit(main())
