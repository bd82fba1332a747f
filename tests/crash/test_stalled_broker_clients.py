"""Official clients of a partitioned queue, while one of three broker processes is stopped (`hubweir broker stall`).

It answers nothing, and its connections neither end nor carry anything, until its supervisor has it killed after 10 s.
Which process a connection is at, the system says; the one is stopped that has the fewest.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from azure.servicebus import ServiceBusClient, ServiceBusMessage
from azure.servicebus.exceptions import (
    MessageLockLostError,
    OperationTimeoutError,
    ServiceBusConnectionError,
    ServiceBusError,
    ServiceBusServerBusyError,
)

from hubweir.client.administration import Administration
from hubweir.client.atom_documents import EntityType
from hubweir.event_hub.partition_key import partition_of_key
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.server_process import ServerProcess
from tests.crash.several_processes import BACK_S, BROKERS, LINUX_ALONE, is_another, several_processes, typed, until

QUEUE, FRAGMENTS = "orders", 16
PATIENT, HASTY, KEYED = 3, 6, 1  # clients
PATIENT_S, HASTY_S = 60.0, 3.0  # their time-outs of a send
ORDERED_S = 0.5  # whoever orders a stall is answered a moment before it begins
STALL_S = 8.0  # of the 10 s after which it is killed
PAUSE_S = 0.02
RETRIABLE = (ServiceBusServerBusyError, OperationTimeoutError, ServiceBusConnectionError)

pytestmark = [
    pytest.mark.crash,
    pytest.mark.timeout(600),
    LINUX_ALONE,
    # The client for Python leaves the socket of a connection that was cut open.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with several_processes(tmp_path / "data") as made:
        yield made


class Sender:
    """A client that sends without a key, or with one, on a thread of its own when it is to. failed: when, and how."""

    def __init__(self, name: str, target: str, ends: ExitStack, *, limit_s: float, **how: int) -> None:
        self.sent: list[str] = []
        self.failed: list[tuple[float, ServiceBusError]] = []
        self._name, self._limit_s, self._count = name, limit_s, 0
        client = ends.enter_context(ServiceBusClient.from_connection_string(target, **how))
        self._link = ends.enter_context(client.get_queue_sender(QUEUE))
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._go_on)

    def send(self, key: str | None = None, *, limit_s: float | None = None) -> None:
        """One message, in the time-out, or another one. ServiceBusError: the client gave up."""
        self._count += 1
        body = f"{self._name} {self._count}"
        self._link.send_messages(ServiceBusMessage(body, partition_key=key), timeout=limit_s or self._limit_s)
        self.sent.append(body)

    def start(self, ends: ExitStack) -> None:
        """Send until `stop`, or until the end of the test, before the client is closed."""
        self._thread.start()
        ends.callback(self.stop)

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join()

    def _go_on(self) -> None:
        while not self._is_over.wait(PAUSE_S):
            began = time.monotonic()
            try:
                self.send()
            except ServiceBusError as error:
                self.failed.append((began, error))


def received(target: str) -> set[str]:
    """What is in the queue, by its bodies. A lock that was lost meanwhile loses nothing: the message comes again."""
    found: set[str] = set()
    with ServiceBusClient.from_connection_string(target) as client, client.get_queue_receiver(QUEUE) as receiver:
        while got := receiver.receive_messages(200, max_wait_time=5):
            for message in got:
                found.add(str(message))
                with suppress(MessageLockLostError):
                    receiver.complete_message(message)
    return found


def processes(server: ServerProcess) -> list[dict[str, Any]]:
    return json.loads(typed(server, "list", "--json"))  # type: ignore[no-any-return]


def all_are_counted(server: ServerProcess) -> bool:
    """Whether the supervisor, which asks twice a second, knows of the connections of all clients."""
    return sum(each["connections"] for each in processes(server)) >= PATIENT + HASTY + KEYED


def eventually(send: Callable[[], None]) -> None:
    limit = time.monotonic() + BACK_S
    while True:
        try:
            send()
            return
        except RETRIABLE:
            assert time.monotonic() < limit
            time.sleep(0.2)


def test_sends_without_a_key_go_on_while_a_process_stalls_and_keyed_ones_when_it_is_back(
    tmp_path: Path, server: ServerProcess
) -> None:
    target = server.connection_string()
    administration = Administration(ConnectionString.parse(target))
    administration.create(EntityType.QUEUE, QUEUE, {"EnablePartitioning": "true"})
    stores = [int(each.members["Store"]) for each in administration.fragments(QUEUE)]
    keys = {partition_of_key(f"k{number}".encode(), FRAGMENTS): f"k{number}" for number in range(400)}
    with ExitStack() as ends:
        patient = [Sender(f"patient {each}", target, ends, limit_s=PATIENT_S) for each in range(PATIENT)]
        hasty = [Sender(f"hasty {each}", target, ends, limit_s=HASTY_S, retry_total=0) for each in range(HASTY)]
        keyed = Sender("keyed", target, ends, limit_s=HASTY_S, retry_total=0)
        for each in (*patient, *hasty, keyed):
            each.send()  # the time-out of a send does not count while a client connects
        until(partial(all_are_counted, server), BACK_S)
        few = min(processes(server), key=lambda process: process["connections"])
        victim, cut = few["broker"], few["connections"]
        theirs = keys[next(number for number, store in enumerate(stores) if store % BROKERS == victim)]
        typed(server, "stall", str(victim))
        time.sleep(ORDERED_S)
        stalled = time.monotonic()
        for each in (*patient, *hasty):
            each.start(ends)
        with pytest.raises(RETRIABLE):
            keyed.send(theirs)
        time.sleep(max(0.0, stalled + STALL_S - time.monotonic()))
        in_stall = [[at for at, _ in each.failed if at < stalled + STALL_S] for each in hasty]
        until(partial(is_another, tmp_path / "data", victim, few["pid"]), BACK_S)
        for each in (*patient, *hasty):
            each.stop()
        # What a client waits for when the stall begins may end unknown. From then on it is sent past that process. One
        # send or another may take that long where much else runs.
        elsewhere = HASTY - min(cut, HASTY - 1)
        assert 2 * sum(len(fails) <= 1 for fails in in_stall) >= elsewhere, in_stall
        eventually(partial(keyed.send, theirs, limit_s=PATIENT_S))
        assert [each.failed for each in patient] == [[]] * PATIENT
        sent = {body for each in (*patient, *hasty, keyed) for body in each.sent}
    assert sent <= received(target)
    assert server.stop() == 0
