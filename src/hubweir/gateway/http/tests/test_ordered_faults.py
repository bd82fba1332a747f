"""Faults that a test orders, as clients of a live service meet them."""

import gc
import time
import warnings
from collections.abc import Iterator

import pytest
from azure.eventhub import EventData, EventHubProducerClient
from azure.servicebus import ServiceBusClient, ServiceBusMessage

from hubweir.client.administration import Administration
from hubweir.client.blocking_queue import BlockingQueueClient
from hubweir.client.namespace_control import NamespaceControl
from hubweir.client.retry import RetryPolicy
from hubweir.errors import ARGUMENT_ERROR, SERVER_BUSY, ServiceError
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.running_namespace import RunningNamespace, running_namespace

ONCE = RetryPolicy(attempts=1)


@pytest.fixture(scope="module")
def namespace() -> Iterator[RunningNamespace]:
    with running_namespace() as running:
        yield running


@pytest.fixture
def control(namespace: RunningNamespace) -> Iterator[NamespaceControl]:
    made = NamespaceControl(Administration(ConnectionString.parse(namespace.connection_string())))
    yield made
    made.end_faults()


@pytest.fixture
def queues(namespace: RunningNamespace) -> Iterator[BlockingQueueClient]:
    with BlockingQueueClient.from_connection_string(namespace.connection_string(), retry=ONCE) as client:
        yield client


@pytest.fixture(autouse=True)
def sockets_of_dropped_connections() -> Iterator[None]:
    """Official clients leave them open."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def test_a_busy_send_is_refused_and_nothing_is_stored(
    namespace: RunningNamespace, control: NamespaceControl, queues: BlockingQueueClient
) -> None:
    namespace.create_queue("busy")
    control.order_faults(server_busy=1)
    for _ in range(2):
        with pytest.raises(ServiceError, match="a fault that a test ordered") as caught:
            queues.sender("busy").send(b"no")
        assert caught.value.condition is SERVER_BUSY
    assert control.state()["faults"]["struck"] == {"server_busy": 2}
    assert control.end_faults()["faults"] is None
    queues.sender("busy").send(b"yes")
    assert queues.receiver("busy").receive(10, max_wait_s=5).bodies() == [b"yes"]


def test_events_meet_the_same(namespace: RunningNamespace, control: NamespaceControl) -> None:
    namespace.create_event_hub("busyhub")
    control.order_faults(server_busy=1)
    with EventHubProducerClient.from_connection_string(
        namespace.connection_string(), eventhub_name="busyhub", retry_total=0
    ) as client:
        with pytest.raises(Exception, match="server-busy"):
            client.send_batch([EventData("no")])
        control.end_faults()
        client.send_batch([EventData("yes")])
        assert client.get_partition_properties("0")["last_enqueued_sequence_number"] == 0


def test_an_answer_that_is_held_back_comes_when_the_clock_says_so(
    namespace: RunningNamespace, control: NamespaceControl
) -> None:
    namespace.create_queue("held")
    with (
        ServiceBusClient.from_connection_string(namespace.connection_string()) as client,
        client.get_queue_sender("held") as sender,
        client.get_queue_receiver("held", max_wait_time=5) as receiver,
    ):
        sender.send_messages(ServiceBusMessage("one"))
        control.order_faults(delay=1, delay_ms=400)
        began_s = time.monotonic()
        sender.send_messages(ServiceBusMessage("two"))
        assert time.monotonic() - began_s >= 0.4
        (message,) = receiver.receive_messages(1)
        began_s = time.monotonic()
        receiver.complete_message(message)
        assert time.monotonic() - began_s >= 0.4
        assert control.state()["faults"]["struck"]["delay"] >= 2


@pytest.mark.parametrize("fault", ["detach", "drop"])
def test_official_clients_get_over_links_and_connections_that_end(
    namespace: RunningNamespace, control: NamespaceControl, fault: str
) -> None:
    """Each message is completed in the end; those that were sent twice for want of an answer may come twice."""
    namespace.create_queue(f"rough-{fault}")
    with (
        ServiceBusClient.from_connection_string(
            namespace.connection_string(), retry_backoff_factor=0.01, retry_total=20
        ) as client,
        client.get_queue_sender(f"rough-{fault}") as sender,
    ):
        sender.send_messages(ServiceBusMessage("0"))
        control.order_faults(**{fault: 0.2}, seed=3)
        for number in range(1, 12):
            sender.send_messages(ServiceBusMessage(str(number)))
        assert control.state()["faults"]["struck"][fault] >= 1
        control.end_faults()
        with client.get_queue_receiver(f"rough-{fault}", max_wait_time=3) as receiver:
            seen = set()
            for message in receiver:
                seen.add(str(message))
                receiver.complete_message(message)
        assert seen == {str(number) for number in range(12)}


def test_links_of_requests_are_spared(namespace: RunningNamespace, control: NamespaceControl) -> None:
    namespace.create_event_hub("asked")
    control.order_faults(detach=1, drop=1)
    with EventHubProducerClient.from_connection_string(
        namespace.connection_string(), eventhub_name="asked", retry_total=0
    ) as client:
        assert client.get_partition_ids() == ["0"]
    assert control.state()["faults"]["struck"] == {}


@pytest.mark.parametrize(
    ("order", "says"),
    [
        ({"detach": 1.1}, "<= 1"),
        ({"drop": -0.1}, ">= 0"),
        ({"delay_ms": 3_600_001}, "<= 3600000"),
        ({"seed": -1}, ">= 0"),
    ],
)
def test_an_order_that_is_none_is_refused(control: NamespaceControl, order: dict[str, float], says: str) -> None:
    with pytest.raises(ServiceError, match=says) as caught:
        control.order_faults(**order)  # type: ignore[arg-type]
    assert caught.value.condition is ARGUMENT_ERROR
    assert control.state()["faults"] is None
