"""One namespace of several is copied and restored: all that is its own, and nothing of the others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hubweir.cli.chosen_namespace import NoSuchNamespace, chosen_namespace
from hubweir.cli.data_folder import DataFolder
from hubweir.cli.main import hubweir
from hubweir.client.blocking import BlockingEventHubClient
from hubweir.client.blocking_queue import BlockingQueueClient
from hubweir.config.namespace_settings import Said, SaidNamespaces
from hubweir.errors import ServiceError
from hubweir.gateway.gateway import Gateway
from hubweir.gateway.http.exchange import answer_of
from hubweir.namespace.capture_description import CaptureDescription
from hubweir.namespace.connection_string import ConnectionString
from hubweir.namespace.entity import EntityDescription
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.secret import Secret
from hubweir.service.captured_files import captured_paths
from hubweir.testing.running_namespace import RunningNamespace, running_namespace

KEYS = {"one": "a2V5IG9mIG9uZQ==", "two": "a2V5IG9mIHR3bw=="}
SAID = SaidNamespaces(
    Said(name="one", key=KEYS["one"]), (Said(name="two", key=KEYS["two"], hostnames=("second.example",)),)
)
CAPTURED = CaptureDescription(enabled=True, container="files", archive_name_format=(
    "{Namespace}.x/{EventHub}/{PartitionId}/{Year}/{Month}/{Day}/{Hour}/{Minute}/{Second}"
))  # fmt: skip
TIME = "2026/11/25/08/00/00.avro"


def gateway_of(running: RunningNamespace, name: str) -> Gateway:
    return next(each for each in running.parts.process.gateways if each.settings.namespace == name)


def create(running: RunningNamespace, name: str, description: EntityDescription) -> None:
    keeper = gateway_of(running, name).keeper
    running.run(answer_of(lambda done: keeper.create(description, done)))


def string_of(running: RunningNamespace, name: str) -> str:
    """By the address: the key tells whose it is."""
    return replace(ConnectionString.parse(running.connection_string()), key=Secret(KEYS[name])).format()


def fill(running: RunningNamespace) -> None:
    """The same names in both namespaces, and in each what says whose it is."""
    for name in KEYS:
        create(running, name, EventHubDescription("orders", 1, capture=CAPTURED))
        create(running, name, QueueDescription("kitchen"))
        with BlockingEventHubClient.from_connection_string(string_of(running, name), "orders") as client:
            client.sender(partition_id="0").send([f"event of {name}".encode()])
        with BlockingQueueClient.from_connection_string(string_of(running, name)) as queues:
            queues.sender("kitchen").send(f"message of {name}".encode())


def store(*words: str) -> Result:
    return CliRunner().invoke(hubweir, ["store", *words])


def held(folder: Path) -> bytes:
    """All that stands in the files of a folder."""
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def served(data: Path) -> tuple[bytes, bytes]:
    """The event and the message of namespace two, of a service on a folder that has nothing else."""
    with running_namespace(data=str(data), said=SaidNamespaces(Said())) as running:
        assert [each.settings.namespace for each in running.parts.process.gateways] == ["two"]
        with BlockingEventHubClient.from_connection_string(string_of(running, "two"), "orders") as client:
            [event] = client.receiver("0").receive(max_wait_s=30)
            assert client.sender(partition_id="0").send([b"next"]) == 1
        with BlockingQueueClient.from_connection_string(string_of(running, "two")) as queues:
            [message] = queues.receiver("kitchen").receive(max_wait_s=30)
        return bytes(event.body), bytes(message.body)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of two namespaces, whose service is stopped, with a captured file of each."""
    folder = tmp_path_factory.mktemp("folder") / "data"
    with running_namespace(data=str(folder), said=SAID) as running:
        fill(running)
    for name in KEYS:
        path = folder / "capture" / "files" / f"{name}.x" / "orders" / "0" / TIME
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(f"captured of {name}".encode())
    return folder


def test_a_namespace_is_copied_while_its_service_runs_and_served_alone(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    with running_namespace(data=str(tmp_path / "data"), said=SAID) as running:
        fill(running)
        made = store("backup", str(copy), "--data", str(tmp_path / "data"), "--namespace", "TWO")
        assert made.exit_code == 0, made.output
    assert b"of one" not in held(copy) and KEYS["one"].encode() not in held(copy)
    assert not (copy / "tls").exists()
    assert store("verify", "--data", str(copy)).exit_code == 0
    assert served(copy) == (b"event of two", b"message of two")


def test_a_namespace_is_restored_alone_from_a_backup_of_all(data: Path, tmp_path: Path) -> None:
    copy, restored = tmp_path / "copy", tmp_path / "restored"
    assert store("backup", str(copy), "--data", str(data)).exit_code == 0
    assert b"of one" in held(copy), "control: the backup has both"
    made = store("restore", str(copy), "--data", str(restored), "--namespace", "two")
    assert made.exit_code == 0, made.output
    assert b"of one" not in held(restored)
    assert [path.read_bytes() for path in restored.rglob("*.avro")] == [b"captured of two"]
    assert served(restored) == (b"event of two", b"message of two")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("two", None),
        ("Two.LocalHost", None),
        ("second.example", None),
        (None, "Endpoint=sb://second.example;SharedAccessKeyName=any;SharedAccessKey=any"),
        (None, f"Endpoint=sb://127.0.0.1;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey={KEYS['two']}"),
    ],
)
def test_a_namespace_is_named_by_its_name_a_host_or_a_connection_string(
    data: Path, name: str | None, text: str | None
) -> None:
    assert chosen_namespace(DataFolder(data), name, text) == "two"


def test_who_names_none_means_all(data: Path) -> None:
    assert chosen_namespace(DataFolder(data), None, None) is None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("three", None),
        (None, "Endpoint=sb://127.0.0.1;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=d3Jvbmc="),
        (None, f"Endpoint=sb://127.0.0.1;SharedAccessKeyName=other;SharedAccessKey={KEYS['two']}"),
        (None, "Endpoint=sb://127.0.0.1"),
    ],
)
def test_a_namespace_that_is_not_there_is_refused_and_nothing_is_made(
    data: Path, tmp_path: Path, name: str | None, text: str | None
) -> None:
    with pytest.raises(NoSuchNamespace, match="has no namespace .+; it has one, two") as caught:
        chosen_namespace(DataFolder(data), name, text)
    assert "d3Jvbmc=" not in str(caught.value)
    words = ["--namespace", name] if name else ["--connection-string", text or ""]
    assert store("backup", str(tmp_path / "copy"), "--data", str(data), *words).exit_code != 0
    assert list(tmp_path.iterdir()) == []


def test_a_connection_string_that_is_none_and_both_options_are_refused(data: Path, tmp_path: Path) -> None:
    with pytest.raises(ServiceError, match="cannot be read"):
        chosen_namespace(DataFolder(data), None, "nothing")
    words = ("--namespace", "two", "--connection-string", "Endpoint=sb://two")
    refused = store("backup", str(tmp_path / "copy"), "--data", str(data), *words)
    assert refused.exit_code == 2 and "leave one of them out" in refused.output


def test_captured_files_are_known_by_the_names_that_hubs_give_them(data: Path) -> None:
    paths = captured_paths(DataFolder(data).catalogs(), "two")
    assert paths.fullmatch(f"files/two.x/orders/0/{TIME}")
    for other in ("files/one.x", "files/twoXx", "other/two.x", "two.x"):
        assert not paths.fullmatch(f"{other}/orders/0/{TIME}")
    assert not paths.fullmatch(f"files/two.x/other/0/{TIME}") and not paths.fullmatch(
        f"files/two.x/orders/0/{TIME}.tmp"
    )
