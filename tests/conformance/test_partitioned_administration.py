"""Partitioned queues and topics managed over HTTPS by the official administration client of Python."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from azure.core.exceptions import HttpResponseError
from azure.core.pipeline.transport import RequestsTransport
from azure.servicebus import ServiceBusClient, ServiceBusMessage
from azure.servicebus.management import ServiceBusAdministrationClient

from hubweir.client.administration import Administration
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.running_namespace import RunningNamespace
from tests.conformance.conftest import HOST, Serve
from tests.conformance.lost_store import lost_store

pytestmark = [pytest.mark.client("azure-servicebus, administration"), pytest.mark.feature("administration")]
ALLOWED = 100


@pytest.fixture(scope="module")
def namespace(serve: Serve) -> Iterator[RunningNamespace]:
    with serve(host=(HOST,), profile="standard", stores=3) as namespace:
        yield namespace


@pytest.fixture
def client(namespace: RunningNamespace) -> Iterator[ServiceBusAdministrationClient]:
    where = f"{namespace.host}:{namespace.port}"
    text = f"Endpoint=sb://{where};SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;"
    transport = RequestsTransport(connection_verify=str(namespace.ca_file))
    with ServiceBusAdministrationClient.from_connection_string(text, transport=transport, retry_total=0) as client:
        yield client


@pytest.mark.sb(125)
def test_partitioning_is_said_when_an_entity_is_made_and_never_changes(client: ServiceBusAdministrationClient) -> None:
    for name, is_partitioned in (("several", True), ("one", False)):
        made = client.create_queue(name, enable_partitioning=is_partitioned)
        assert made.enable_partitioning is client.get_queue(name).enable_partitioning is is_partitioned
        made.enable_partitioning = not is_partitioned
        with pytest.raises(HttpResponseError, match="Partitioning cannot be changed for Queue. ") as refused:
            client.update_queue(made)
        assert refused.value.status_code == 400
        client.update_queue(client.get_queue(name))
    assert client.create_queue("unsaid").enable_partitioning is False
    topic = client.create_topic("news", enable_partitioning=True)
    topic.enable_partitioning = False
    with pytest.raises(HttpResponseError, match="Partitioning cannot be changed for Topic. "):
        client.update_topic(topic)
    for name in ("several", "one", "unsaid"):
        client.delete_queue(name)
    client.delete_topic("news")


@pytest.mark.sb(134)
def test_what_fragments_hold_is_summed_and_one_that_is_away_makes_the_entity_limited(
    namespace: RunningNamespace, client: ServiceBusAdministrationClient
) -> None:
    client.create_queue("orders", enable_partitioning=True)
    sending = ServiceBusClient.from_connection_string(namespace.connection_string())
    with sending, sending.get_queue_sender("orders") as sender:
        for number in range(20):
            sender.send_messages(ServiceBusMessage("tea", partition_key=f"key-{number}"))
    found = client.get_queue_runtime_properties("orders")
    assert (found.active_message_count, found.total_message_count) == (20, 20) and found.size_in_bytes > 0
    assert client.get_queue("orders").availability_status == "Available"
    with lost_store(namespace):
        assert client.get_queue("orders").availability_status == "Limited"
        assert 0 < client.get_queue_runtime_properties("orders").active_message_count < 20
        with pytest.raises(HttpResponseError, match="'late' was not created: it is partitioned, ") as refused:
            client.create_queue("late", enable_partitioning=True)
        assert refused.value.status_code == 503
        assert client.create_queue("late").enable_partitioning is False, "nothing is left of the other one"
        client.delete_queue("late")
    end_s = time.monotonic() + 30
    while client.get_queue("orders").availability_status != "Available" and time.monotonic() < end_s:
        time.sleep(0.1)
    assert client.get_queue_runtime_properties("orders").active_message_count == 20
    client.delete_queue("orders")


@pytest.mark.sb(134)
def test_operators_see_each_fragment_with_its_broker_and_its_store(
    namespace: RunningNamespace, client: ServiceBusAdministrationClient, broker_count: int
) -> None:
    client.create_queue("where", enable_partitioning=True)
    fragments = Administration(ConnectionString.parse(namespace.connection_string())).fragments("where")
    found = [(int(each.members["Broker"]), int(each.members["Store"])) for each in fragments]
    assert len(found) == 16 and {store for _, store in found} == {0, 1, 2}
    assert all(broker == store % broker_count for broker, store in found)
    client.delete_queue("where")


@pytest.mark.sb(133)
def test_the_hundred_and_first_partitioned_entity_is_refused(client: ServiceBusAdministrationClient) -> None:
    for number in range(ALLOWED - 1):
        client.create_queue(f"q{number}", enable_partitioning=True)
    client.create_topic("news", enable_partitioning=True)
    for create in (client.create_queue, client.create_topic):
        with pytest.raises(HttpResponseError, match="101 partitioned queues and topics") as refused:
            create("more", enable_partitioning=True)
        assert refused.value.status_code == 403
    assert client.create_queue("plain").enable_partitioning is False
    client.delete_topic("news")
    assert client.create_queue("more", enable_partitioning=True).enable_partitioning is True
