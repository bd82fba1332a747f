"""hubweir store move on a folder that a real service left: official clients find all of it in the other store."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from azure.eventhub import EventData, EventHubConsumerClient, EventHubProducerClient
from azure.servicebus import ServiceBusClient, ServiceBusMessage
from click.testing import CliRunner, Result

from hubweir.cli.data_folder import DataFolder
from hubweir.cli.main import hubweir
from hubweir.errors import HubweirError
from hubweir.testing.running_namespace import RunningNamespace, running_namespace
from hubweir.testing.server_process import ServerProcess

CRASHING = Path(__file__).resolve().parents[4] / "tests" / "crash" / "crashing_server.py"
WAIT_S = 20.0


def typed(*arguments: str) -> Result:
    return CliRunner().invoke(hubweir, list(arguments))


def move(data: Path, log: str, target: str) -> Result:
    return typed("store", "move", log, "--to", target, "--data", str(data))


def places(data: Path) -> dict[str, str]:
    """entity → store."""
    rows = json.loads(typed("store", "list", "--data", str(data), "--json").stdout)
    return {row["entity"]: row["store"] for row in rows if not row["state"]}


def publish(namespace: RunningNamespace | ServerProcess, *bodies: str, partition: str = "0") -> None:
    client = EventHubProducerClient.from_connection_string(namespace.connection_string(), eventhub_name="events")
    with client:
        for body in bodies:
            client.send_batch([EventData(body)], partition_id=partition)


def received(namespace: RunningNamespace | ServerProcess, count: int, *, partition: str = "0") -> dict[int, str]:
    """sequence number → body of the first events of a partition."""
    client = EventHubConsumerClient.from_connection_string(
        namespace.connection_string(), "$Default", eventhub_name="events"
    )
    found: dict[int, str] = {}

    def on_event(context: object, event: EventData | None) -> None:
        if event is not None:
            assert event.sequence_number is not None
            found[event.sequence_number] = event.body_as_str()
        if event is None or len(found) == count:
            client.close()

    with client:
        client.receive(on_event, partition_id=partition, starting_position="-1", max_wait_time=WAIT_S)
    return found


def send(namespace: RunningNamespace, count: int, *, first: int = 0) -> None:
    with (
        ServiceBusClient.from_connection_string(namespace.connection_string()) as client,
        client.get_queue_sender("orders") as sender,
    ):
        for number in range(first, first + count):
            sender.send_messages(ServiceBusMessage(f"message {number}", partition_key=f"table {number}"))


def taken(namespace: RunningNamespace, count: int) -> dict[str, int]:
    """Complete so many messages; body → sequence number."""
    found: dict[str, int] = {}
    with (
        ServiceBusClient.from_connection_string(namespace.connection_string()) as client,
        client.get_queue_receiver("orders", max_wait_time=WAIT_S) as receiver,
    ):
        while len(found) < count:
            for message in receiver.receive_messages(count - len(found), max_wait_time=WAIT_S):
                found[str(message)] = message.sequence_number
                receiver.complete_message(message)
    return found


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a service of two stores left: a hub with events, and a partitioned queue with messages."""
    data = tmp_path_factory.mktemp("left") / "data"
    with running_namespace(data=str(data), stores=2) as namespace:
        namespace.create_event_hub("events", partition_count=2)
        publish(namespace, "one", "two", "three")
        namespace.create_queue("orders", is_partitioned=True)
        send(namespace, 24)
    return data


@pytest.fixture
def data(left: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    shutil.copytree(left, tmp_path / "data")
    return tmp_path / "data"


def test_events_and_messages_are_served_from_the_other_store_and_more_come(data: Path) -> None:
    before = places(data)
    moves = {"hub events, partition 0": "events/0"}
    moves |= {f"queue orders, fragment {number}": f"orders/{number}" for number in range(4)}
    after = {entity: "store-1" if before[entity] == "store-0" else "store-0" for entity in moves}
    for entity, log in moves.items():
        result = move(data, log, after[entity].removeprefix("store-") if log == "events/0" else after[entity])
        assert result.exit_code == 0, result.exception
        assert result.stdout.startswith(f"{entity}: moved from {before[entity]} to {after[entity]}, ")
    assert places(data) == before | after
    verified = typed("store", "verify", "--data", str(data))
    assert verified.exit_code == 0, verified.stdout
    with running_namespace(data=str(data)) as namespace:
        assert [str(alarm) for alarm in namespace.service.alarms.current()] == []
        publish(namespace, "four")
        assert received(namespace, 4) == {0: "one", 1: "two", 2: "three", 3: "four"}
        send(namespace, 8, first=24)
        messages = taken(namespace, 32)
        assert sorted(messages) == sorted(f"message {number}" for number in range(32))
        assert len(set(messages.values())) == 32


def test_a_store_that_all_logs_have_left_may_be_taken_away(data: Path) -> None:
    for entity, store in places(data).items():
        if store == "store-1":
            owner, number = entity.split(" ")[1].rstrip(","), entity.split(" ")[-1]
            assert move(data, f"{owner}/{number}", "store-0").exit_code == 0
    shutil.rmtree(data / "store-1")
    with running_namespace(data=str(data)) as namespace:
        assert namespace.service.alarms.current() == () and not (data / "store-1").exists()
        assert received(namespace, 3) == {0: "one", 1: "two", 2: "three"}
        assert len(taken(namespace, 24)) == 24


def test_a_moved_log_is_served_by_the_process_that_has_its_store(data: Path) -> None:
    """`serve --brokers 2`: store-1 is the second process's, whichever one a client comes to."""
    target = "store-1" if places(data)["hub events, partition 0"] == "store-0" else "store-0"
    assert move(data, "events/0", target).exit_code == 0
    with running_namespace(data=str(data), brokers=2) as namespace:
        publish(namespace, "four")
        assert received(namespace, 4) == {0: "one", 1: "two", 2: "three", 3: "four"}
        assert len(taken(namespace, 24)) == 24


def test_a_folder_that_is_served_is_refused_and_the_service_goes_on(data: Path) -> None:
    before = places(data)
    target = "store-1" if before["hub events, partition 0"] == "store-0" else "store-0"
    for brokers in (1, 2):
        with running_namespace(data=str(data), brokers=brokers) as namespace:
            refusal = move(data, "events/0", target).exception
            assert isinstance(refusal, HubweirError)
            assert "a service runs on" in str(refusal) and "stop it, move the log, and start it again" in str(refusal)
            assert received(namespace, 3) == {0: "one", 1: "two", 2: "three"}
    assert places(data) == before


def test_what_cannot_be_moved_is_told_by_name(data: Path) -> None:
    store = places(data)["hub events, partition 1"]
    for log, target, text in (
        ("events/7", "store-0", "holds no log events/7"),
        ("catalog", "store-0", "catalog is no log of a partition, a queue or a topic"),
        ("events/1", "store-5", "has no store-5; it has store-0, store-1"),
        ("events/1", store, f"lies in {store} already"),
    ):
        assert text in str(move(data, log, target).exception)
    assert "'first' is no store: name one as `hubweir store list` does" in move(data, "events/1", "first").output


@pytest.mark.parametrize("point", ["copied", "shown", "committed"])
def test_a_killed_move_leaves_the_log_served_from_one_store_and_the_same_command_ends_it(
    data: Path, point: str
) -> None:
    before = places(data)["hub events, partition 0"]
    target = "store-1" if before == "store-0" else "store-0"
    command = ("store", "move", "events/0", "--to", target, "--data", str(data))
    environment = {**os.environ, "CRASH_AT": f"move.{point}", "CRASH_COUNT": "1"}
    killed = subprocess.run([sys.executable, str(CRASHING), *command], env=environment, timeout=60, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert places(data)["hub events, partition 0"] == (target if point == "committed" else before)
    other = before if point == "committed" else target
    (log_id,) = (log.log_id for log in DataFolder(data).logs() if log.paths[:1] == ("events/0",))
    verified = typed("store", "verify", "--data", str(data))
    assert verified.exit_code == (point != "copied") and verified.stdout.count("left over") == verified.exit_code
    with running_namespace(data=str(data)) as namespace:
        told = [str(alarm) for alarm in namespace.service.alarms.current()]
        assert len(told) == (point != "copied") and all(f"hubweir store move {log_id}" in text for text in told)
        publish(namespace, "four")
        assert received(namespace, 4) == {0: "one", 1: "two", 2: "three", 3: "four"}
    if point == "copied":
        assert not (data / other / "logs" / f"{log_id}.new").exists(), "a start removes what was not finished"
    result = typed(*command)
    assert result.exit_code == 0, result.exception
    assert ("lay in" in result.stdout) == (point == "committed")
    assert typed("store", "verify", "--data", str(data)).exit_code == 0
    with running_namespace(data=str(data)) as namespace:
        assert namespace.service.alarms.current() == ()
        publish(namespace, "five")
        assert received(namespace, 5) == {0: "one", 1: "two", 2: "three", 3: "four", 4: "five"}
