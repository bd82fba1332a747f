"""The fixtures that pytest has where hubweir is installed, with official clients; the examples of docs/testing.md."""

import asyncio
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest
from azure.eventhub import EventData, EventHubConsumerClient, EventHubProducerClient
from azure.eventhub.aio import EventHubProducerClient as AsyncProducerClient
from azure.servicebus import ServiceBusClient, ServiceBusMessage
from azure.servicebus.aio import ServiceBusClient as AsyncServiceBusClient

from hubweir.client.administration import Administration
from hubweir.errors import ServiceError
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.hubweir_server import DELETIONS, HubweirServer
from hubweir.testing.namespace_on_demand import NamespaceOnDemand
from hubweir.testing.server_process import ServerFailed

ROOT = Path(__file__).resolve().parents[4]
PLUGIN = "hubweir.testing.pytest_plugin"


def receive_all(namespace: NamespaceOnDemand, queue: str) -> list[str]:
    with (
        ServiceBusClient.from_connection_string(namespace.connection_string) as client,
        client.get_queue_receiver(queue) as receiver,
    ):
        messages = receiver.receive_messages(10, max_wait_time=2)
        for message in messages:
            receiver.complete_message(message)
        return [str(message) for message in messages]


def names(server: HubweirServer) -> list[str]:
    administration = Administration(ConnectionString.parse(server.get_connection_string()))
    return [each["name"] for each in administration.namespaces()]


@pytest.mark.parametrize("turn", [1, 2])
def test_each_test_has_a_namespace_of_its_own(hubweir_namespace: NamespaceOnDemand, turn: int) -> None:
    hubweir_namespace.create_queue("kitchen")  # the second would be refused where the first one's is
    with (
        ServiceBusClient.from_connection_string(hubweir_namespace.connection_string) as client,
        client.get_queue_sender("kitchen") as sender,
    ):
        sender.send_messages(ServiceBusMessage(f"order {turn}"))
    assert receive_all(hubweir_namespace, "kitchen") == [f"order {turn}"]


def test_the_key_of_a_namespace_opens_no_other(
    hubweir_server: HubweirServer, hubweir_namespace: NamespaceOnDemand
) -> None:
    hubweir_namespace.create_queue("mine")
    with hubweir_server.namespace() as other:
        assert other.name != hubweir_namespace.name
        with pytest.raises(ServiceError):
            other.administration.get("mine")
        with pytest.raises(ServiceError):
            other.administration.namespaces()


def test_official_clients_on_a_loop(hubweir_namespace: NamespaceOnDemand) -> None:
    hubweir_namespace.create_topic("menu")
    hubweir_namespace.create_subscription("menu", "kitchen", LockDuration="PT30S")
    hubweir_namespace.create_event_hub("orders", 2, consumer_groups=["billing"])
    text = hubweir_namespace.connection_string

    async def scenario() -> None:
        async with AsyncServiceBusClient.from_connection_string(text) as client:
            async with client.get_topic_sender("menu") as sender:
                await sender.send_messages(ServiceBusMessage("soup"))
            async with client.get_subscription_receiver("menu", "kitchen") as receiver:
                (message,) = await receiver.receive_messages(1, max_wait_time=10)
                assert str(message) == "soup"
                await receiver.complete_message(message)
        async with AsyncProducerClient.from_connection_string(text, eventhub_name="orders") as producer:
            await producer.send_event(EventData("two teas"), partition_id="1")
            properties = await producer.get_partition_properties("1")
            assert properties["last_enqueued_sequence_number"] == 0

    asyncio.run(scenario())
    with EventHubConsumerClient.from_connection_string(text, "billing", eventhub_name="orders") as consumer:
        assert consumer.get_partition_ids() == ["0", "1"]


def test_clock_faults_and_purge_are_at_hand(hubweir_namespace: NamespaceOnDemand) -> None:
    before = hubweir_namespace.clock.now()
    assert (hubweir_namespace.clock.forward(90) - before).total_seconds() >= 90
    hubweir_namespace.create_event_hub("orders")
    ordered = hubweir_namespace.faults(server_busy=1, seed=4)
    assert (ordered["server_busy"], ordered["seed"], hubweir_namespace.struck()) == (1, 4, {})
    with EventHubProducerClient.from_connection_string(
        hubweir_namespace.connection_string, eventhub_name="orders", retry_total=0
    ) as client:
        with pytest.raises(Exception, match="server-busy"):
            client.send_batch([EventData("no")])
        assert hubweir_namespace.struck()["server_busy"] >= 1
        assert hubweir_namespace.faults() == {} == hubweir_namespace.struck()
        client.send_batch([EventData("yes")])
        hubweir_namespace.purge("orders")
        assert client.get_partition_properties("0")["is_empty"]


def test_a_namespace_that_the_test_deleted_itself_is_no_trouble(hubweir_server: HubweirServer) -> None:
    administration = Administration(ConnectionString.parse(hubweir_server.get_connection_string()))
    with hubweir_server.namespace() as gone:
        administration.delete_namespace(gone.name)
    for _ in range(DELETIONS + 1):  # what went wrong with an earlier one is raised here
        with hubweir_server.namespace():
            pass
    assert gone.name not in names(hubweir_server)


def test_namespaces_go_behind_their_blocks_with_a_bound(hubweir_server: HubweirServer) -> None:
    for _ in range(3 * DELETIONS):
        with hubweir_server.namespace() as namespace:
            assert namespace.name in names(hubweir_server)
        assert len(names(hubweir_server)) <= DELETIONS + 3
    with hubweir_server.namespace("shop") as shop:
        assert shop.name == "shop"
        root = Administration(ConnectionString.parse(hubweir_server.get_connection_string()))
        root.delete_namespace("shop")  # the block's end does not mind


def test_a_server_starts_stops_and_leaves_nothing() -> None:
    server = HubweirServer()
    with pytest.raises(ServerFailed, match="start it first"):
        server.get_connection_string()
    assert server.start() is server
    folder = Path(server._folder)
    with pytest.raises(ServerFailed, match="runs already"):
        server.start()
    assert folder.is_dir() and names(server) == ["hubweir"]
    server.stop()
    server.stop()
    assert not folder.exists()
    with server as again:
        assert names(again) == ["hubweir"]


def test_a_server_that_cannot_start_says_why_and_leaves_nothing() -> None:
    server = HubweirServer(arguments=["--profile", "none"])
    with pytest.raises(ServerFailed, match="profile"):
        server.start()
    assert not Path(server._folder).exists()
    server.stop()


def test_it_takes_no_more_than_pytest_to_import() -> None:
    program = (
        f"import sys, {PLUGIN}\n"
        "print([name for name in sys.modules if name.startswith(('hubweir.', 'azure', 'msgspec', 'uvloop'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "['hubweir.testing', 'hubweir.testing.pytest_plugin']"


def test_pytest_finds_it_by_an_entry_point_named_as_the_module() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {PLUGIN: PLUGIN}


def run_examples(
    page: str, folder: Path, python: str | Path = sys.executable, options: Sequence[str] = ("-p", PLUGIN)
) -> subprocess.CompletedProcess[str]:
    """Those of the page that are tests, by pytest of this interpreter."""
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (folder / "test_examples.py").write_text("\n".join(block for block in blocks if "\ndef test_" in block))
    command = [python, "-m", "pytest", "-q", *options, "-p", "no:cacheprovider", "--rootdir", str(folder)]
    return subprocess.run(
        [*command, "-c", "/dev/null", str(folder)], cwd=folder, capture_output=True, text=True, check=False, timeout=110
    )


def test_the_examples_of_the_page_pass_and_a_wrong_one_fails(tmp_path: Path) -> None:
    page = (ROOT / "docs/testing.md").read_text()
    done = run_examples(page, tmp_path)
    assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout + done.stderr
    right = "clock.forward(60)"
    assert right in page
    wrong = run_examples(page.replace(right, "clock.forward(30)"), tmp_path)
    assert wrong.returncode == 1 and "1 failed, 1 passed" in wrong.stdout, wrong.stdout
