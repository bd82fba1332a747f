"""kill -9 in the middle of a restore: the namespace is whole and served, or it is not there, and can be restored (T6).

The service is one real process; a service of several broker processes is not tried here. What the next start tells,
and whether the namespace is there, is what docs/namespace.md says of that moment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from hubweir.cli.main import hubweir
from hubweir.client.administration import Administration
from hubweir.client.atom_documents import EntityType
from hubweir.client.blocking import BlockingEventHubClient
from hubweir.client.blocking_queue import BlockingQueueClient
from hubweir.errors import HubweirError, ServiceError
from hubweir.namespace.connection_string import ConnectionString
from hubweir.namespace.secret import Secret
from hubweir.testing.server_process import ServerProcess
from tests.crash.several_processes import SOURCE, until

RESTORING = str(Path(__file__).with_name("restoring_server.py"))
SHOP, KEY, PARTITIONS = "shop", "a2V5IG9mIHRoZSBzaG9w", 3
WAIT_S = 60.0

# What the next start tells, by the moment of the end; nothing at all others.
TOLD = {
    "a log is shown": ["logs-unnamed"],
    "logs are shown": ["logs-unnamed"],
    "the catalog is copied": ["logs-unnamed"],
    "the catalog has its name": ["others"],  # records-lost, of the catalog of another namespace
}
NOT_THERE = (
    "a log is being copied", "logs are copied", "a log is shown", "logs are shown", "the catalog is copied",
)  # fmt: skip
THERE = ("the catalog has its name", "the catalog is shown")

pytestmark = [pytest.mark.crash, pytest.mark.timeout(600)]


def served(data: Path, ports: Sequence[int] = (), **environment: str) -> ServerProcess:
    """A service in a folder. environment: of restoring_server.py; none: it is ours as it is."""
    return ServerProcess(
        data,
        ports=ports,
        environment={"PYTHONPATH": SOURCE, **environment},
        program=(RESTORING,) if environment else ("-m", "hubweir"),
    )


@pytest.fixture(scope="module")
def backup(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup with the shop in it."""
    folder = tmp_path_factory.mktemp("backup")
    copy = folder / "copy"
    with served(folder / "data") as server:
        administration(server).create_namespace(SHOP, key=KEY)
        Administration(ConnectionString.parse(string_of(server))).create(EntityType.QUEUE, "kitchen", {})
        call("eventhub", "create", "orders", "--partitions", str(PARTITIONS), "--connection-string", string_of(server))
        with BlockingEventHubClient.from_connection_string(string_of(server), "orders") as hub:
            for number in range(PARTITIONS):
                hub.sender(partition_id=str(number)).send([b"order %d" % number])
        with BlockingQueueClient.from_connection_string(string_of(server)) as queues:
            queues.sender("kitchen").send(b"tea")
        call("store", "backup", str(copy), "--data", str(folder / "data"))
    return copy


def call(*words: str) -> None:
    done = CliRunner().invoke(hubweir, words)
    assert done.exit_code == 0, (done.output, done.exception)


def string_of(server: ServerProcess) -> str:
    return replace(ConnectionString.parse(server.connection_string()), key=Secret(KEY)).format()


def administration(server: ServerProcess) -> Administration:
    return Administration(ConnectionString.parse(server.connection_string()))


def told(server: ServerProcess) -> list[str]:
    """The kinds of all alarms, those of other namespaces as one word."""
    status = administration(server).status()
    return [each["kind"] for each in status["alarms"]] + ["others"] * status["alarms_of_others"]


def is_there(server: ServerProcess) -> bool:
    return SHOP in [each["name"] for each in administration(server).namespaces()]


def restored(server: ServerProcess, source: Path) -> str:
    """Restore the shop; what went wrong."""
    administration(server).restore_namespace(SHOP, str(source))
    until(lambda: bool(administration(server).restore_state(SHOP)["is_over"]), WAIT_S)
    return str(administration(server).restore_state(SHOP)["problem"])


def wrong_with_shop(server: ServerProcess, wait_s: float = 20.0) -> list[str]:
    """What of the backup is not there, or is there otherwise; and what takes nothing new."""
    wrong = list[str]()
    with suppress_into(wrong), BlockingEventHubClient.from_connection_string(string_of(server), "orders") as hub:
        for number in range(PARTITIONS):
            bodies = [each.body for each in hub.receiver(str(number)).receive(max_wait_s=wait_s) or ()]
            if bodies[:1] != [b"order %d" % number]:
                wrong.append(f"partition {number} begins with {bodies[:1]}")
            hub.sender(partition_id=str(number)).send([b"later"])
    with suppress_into(wrong), BlockingQueueClient.from_connection_string(string_of(server)) as queues:
        kitchen = queues.receiver("kitchen")
        messages = kitchen.receive(max_wait_s=wait_s)
        if [each.body for each in messages] != [b"tea"]:
            wrong.append(f"the queue has {[each.body for each in messages]}")
        for each in messages:
            kitchen.abandon(each)
    return wrong


@contextmanager
def suppress_into(wrong: list[str]) -> Iterator[None]:
    try:
        yield
    except (HubweirError, OSError, TimeoutError) as error:
        wrong.append(str(error))


def fill_home(server: ServerProcess) -> None:
    """Something of the default namespace, to be there behind the kill."""
    administration(server).create(EntityType.QUEUE, "home", {})
    with BlockingQueueClient.from_connection_string(server.connection_string()) as queues:
        queues.sender("home").send(b"of home")


def home_is_kept(server: ServerProcess) -> bool:
    with BlockingQueueClient.from_connection_string(server.connection_string()) as queues:
        home = queues.receiver("home")
        messages = home.receive(max_wait_s=WAIT_S)
        for each in messages:
            home.abandon(each)
        return [each.body for each in messages] == [b"of home"]


def end_in_restore(server: ServerProcess, source: Path) -> None:
    """Begin a restore, and wait for the end of the process."""
    with suppress(ServiceError, OSError):
        administration(server).restore_namespace(SHOP, str(source))
    until(lambda: not server.is_running, WAIT_S)


@pytest.mark.parametrize("moment", [*NOT_THERE, *THERE])
def test_a_kill_leaves_all_of_the_namespace_or_nothing_and_the_same_restore_finishes(
    backup: Path, tmp_path: Path, moment: str
) -> None:
    data = tmp_path / "data"
    server = served(data)
    ending = served(data, server.ports, RESTORE_AT=moment)
    try:
        ending.start()
        fill_home(ending)
        end_in_restore(ending, backup)
        server.start()
        assert is_there(server) is (moment in THERE)
        assert told(server) == TOLD.get(moment, []), server.output
        if moment in NOT_THERE:
            assert restored(server, backup) == ""
            assert told(server) == []
        assert wrong_with_shop(server) == []
        assert home_is_kept(server)
        server.restart()
        assert wrong_with_shop(server) == [] and told(server) == []
    finally:
        ending.kill9()
        server.kill9()


def test_control_a_namespace_that_is_there_without_its_logs_is_found(backup: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    server = served(data)
    ending = served(data, server.ports, RESTORE_AT="catalog first")
    try:
        ending.start()
        end_in_restore(ending, backup)
        server.start()
        assert is_there(server) and wrong_with_shop(server, wait_s=1.0) and told(server)
    finally:
        ending.kill9()
        server.kill9()
