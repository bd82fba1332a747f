"""docs/troubleshooting.md: each symptom is brought about; what client or service say then is on the page."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from azure.eventhub import EventData, EventDataBatch, EventHubConsumerClient, EventHubProducerClient
from azure.servicebus import ServiceBusClient, ServiceBusMessage

from hubweir.testing.held_ports import HeldPorts
from hubweir.testing.running_namespace import RunningNamespace, running_namespace
from hubweir.testing.server_process import ServerProcess

PAGE = (Path(__file__).resolve().parents[2] / "docs/troubleshooting.md").read_text()
SHOWN = dict(re.findall(r"<!-- symptom: (.*?) -->\n```text\n(.*?)\n```", PAGE, re.DOTALL))
WAIT_S = 60.0
SYMPTOMS: dict[str, Callable[[RunningNamespace], None]] = {}


@pytest.fixture(scope="module")
def namespace() -> Iterator[RunningNamespace]:
    with running_namespace(throughput_units=1) as namespace:
        namespace.create_event_hub("orders", partition_count=2)
        namespace.create_queue("kitchen", lock_duration_ms=5_000)
        namespace.create_queue("tables", requires_session=True)
        yield namespace


def symptom(name: str) -> Callable[[Callable[[RunningNamespace], None]], Callable[[RunningNamespace], None]]:
    """Marks what ends in the error that the page has under this name."""

    def known(bring_about: Callable[[RunningNamespace], None]) -> Callable[[RunningNamespace], None]:
        SYMPTOMS[name] = bring_about
        return bring_about

    return known


def publish(text: str, body: bytes = b"x", **more: str) -> None:
    with EventHubProducerClient.from_connection_string(text, eventhub_name="orders", retry_total=0, **more) as client:
        client.send_event(EventData(body))


def client_of(text: str) -> ServiceBusClient:
    return ServiceBusClient.from_connection_string(text, retry_total=0)


@symptom("nobody listens")
def nobody_listens(namespace: RunningNamespace) -> None:
    held = HeldPorts()
    publish(namespace.connection_string().replace(f":{namespace.port}", f":{held.numbers[0]}"))


@symptom("the certificate is not trusted")
def untrusted_certificate(namespace: RunningNamespace) -> None:
    address = f"sb://{namespace.host}:{namespace.port}"
    publish(namespace.connection_string(plain=False), custom_endpoint_address=address)


@symptom("a wrong key, event hubs")
def wrong_key_of_hubs(namespace: RunningNamespace) -> None:
    publish(namespace.connection_string().replace("SAS_KEY_VALUE", "another"))


@symptom("a wrong key, queues")
def wrong_key_of_queues(namespace: RunningNamespace) -> None:
    text = namespace.connection_string().replace("SAS_KEY_VALUE", "another")
    with client_of(text) as client, client.get_queue_sender("kitchen") as sender:
        sender.send_messages(ServiceBusMessage("x"))


@symptom("too large")
def too_large(namespace: RunningNamespace) -> None:
    publish(namespace.connection_string(), bytes(1_100_000))


@symptom("no session id")
def no_session_id(namespace: RunningNamespace) -> None:
    with client_of(namespace.connection_string()) as client, client.get_queue_sender("tables") as sender:
        sender.send_messages(ServiceBusMessage("x"))


@symptom("over the throughput units")
def over_the_units(namespace: RunningNamespace) -> None:
    text = namespace.connection_string()
    with EventHubProducerClient.from_connection_string(text, eventhub_name="orders", retry_total=0) as client:
        for _ in range(30):  # 1,000 events a second are allowed
            batch: EventDataBatch = client.create_batch()
            for _ in range(500):
                batch.add(EventData(b"x"))
            client.send_batch(batch)


@symptom("an owner level was displaced")
def displaced(namespace: RunningNamespace) -> None:
    ended: list[Exception] = []
    reads = threading.Event()
    clients = [
        EventHubConsumerClient.from_connection_string(
            namespace.connection_string(), "$Default", eventhub_name="orders", retry_total=0
        )
        for _ in range(2)
    ]

    def read(client: EventHubConsumerClient, level: int) -> None:
        client.receive(
            lambda partition, event: reads.set(), partition_id="0", owner_level=level, starting_position="-1",
            on_error=lambda partition, error: ended.append(error),
        )  # fmt: skip

    with EventHubProducerClient.from_connection_string(namespace.connection_string(), eventhub_name="orders") as client:
        client.send_batch([EventData(b"x")], partition_id="0")
    threads = [threading.Thread(target=read, args=(each, level), daemon=True) for level, each in enumerate(clients, 1)]
    try:
        threads[0].start()
        assert reads.wait(WAIT_S)
        threads[1].start()
        until = time.monotonic() + WAIT_S
        while not ended and time.monotonic() < until:
            time.sleep(0.05)
    finally:
        for each in clients:
            each.close()
        for thread in threads:
            thread.join(WAIT_S)
    raise ended[0]


@symptom("a session receiver is needed")
def no_session(namespace: RunningNamespace) -> None:
    with client_of(namespace.connection_string()) as client, client.get_queue_receiver("tables") as receiver:
        receiver.receive_messages(1, max_wait_time=2)


@symptom("a session is held")
def held_session(namespace: RunningNamespace) -> None:
    with client_of(namespace.connection_string()) as client:
        with client.get_queue_sender("tables") as sender:
            sender.send_messages(ServiceBusMessage("x", session_id="window"))
        first, second = (client.get_queue_receiver("tables", session_id="window") for _ in range(2))
        with first, second:
            pass


@symptom("a lock is over")
def lock_is_over(namespace: RunningNamespace) -> None:
    with client_of(namespace.connection_string()) as client:
        with client.get_queue_sender("kitchen") as sender:
            sender.send_messages(ServiceBusMessage("x"))
        with client.get_queue_receiver("kitchen", max_wait_time=5) as receiver:
            [message] = receiver.receive_messages(1)
            time.sleep(5.2)  # the client looks at the clock by itself
            receiver.complete_message(message)


@dataclass(frozen=True)
class Served:
    """A service, and where its data lies."""

    data: Path
    port: int


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    data = tmp_path_factory.mktemp("served") / "data"
    with ServerProcess(data) as process:
        yield Served(data, process.port)


# The arguments of a start beside that service. A folder is another one.
STARTS: dict[str, Callable[[Served, Path], list[object]]] = {
    "two services on a data folder": lambda served, folder: ["--data", served.data, "--port", 0],
    "a port is taken": lambda served, folder: ["--data", folder, "--port", served.port],
    "the development key off loopback": lambda served, folder: ["--data", folder, "--port", 0, "--host", "0.0.0.0"],
}


@pytest.mark.parametrize("name", SYMPTOMS)
def test_a_client_says_what_the_page_shows(namespace: RunningNamespace, name: str) -> None:
    with pytest.raises(Exception) as raised:
        SYMPTOMS[name](namespace)
    assert SHOWN[name] in str(raised.value)


@pytest.mark.parametrize("name", STARTS)
def test_a_refused_start_says_what_the_page_shows(served: Served, tmp_path: Path, name: str) -> None:
    command = [sys.executable, "-m", "hubweir", "serve", *map(str, STARTS[name](served, tmp_path / "data"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert done.returncode == 1
    assert SHOWN[name] in done.stderr


def test_every_marked_symptom_of_the_page_is_brought_about() -> None:
    assert SHOWN.keys() == {**SYMPTOMS, **STARTS}.keys()
