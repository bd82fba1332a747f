"""kill -9 in the middle of a restore: the namespace is whole and served, or it is not there, and can be restored (T6).

Real processes: one, and three with a supervisor, which is killed, or one whose store is being written. What the next
start tells, and whether the namespace is there, is what docs/namespace.md says of that moment. Broker processes outlive
their supervisor, and follow the next one when that is ready; of alarms they tell one another later, so all are asked
for those until they say the same.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
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
from hubweir.testing.broker_processes import broker_pids
from hubweir.testing.server_process import ServerProcess
from tests.crash.several_processes import BACK_S, BROKERS, LINUX_ALONE, is_another, typed, until

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
SHORT = ("a log is shown", "the catalog has its name")
MOMENTS = [pytest.param(each, marks=() if each in SHORT else pytest.mark.slow) for each in (*NOT_THERE, *THERE)]
# Each time over another connection. A process passes those that it accepts to all in turn: one of three accepts three.
ASKED = 7

pytestmark = [pytest.mark.crash, pytest.mark.timeout(600)]


@dataclass(frozen=True)
class Copy:
    """A backup of the shop. brokers: processes of the service that it was made of, which has as many stores."""

    path: Path
    brokers: int

    def served(self, data: Path, ports: Sequence[int] = (), **environment: str) -> ServerProcess:
        """A service for it. environment: of restoring_server.py; none: it is ours as it is."""
        return ServerProcess(
            data,
            ports=ports,
            arguments=["--brokers", str(self.brokers)] if self.brokers > 1 else [],
            environment=environment,
            program=(RESTORING,) if environment else ("-m", "hubweir"),
        )

    def all_say(self, server: ServerProcess, question: Callable[[ServerProcess], object], answer: object) -> None:
        """Wait until every process gives this answer; one process alone gives it at once."""
        limit = time.monotonic() + (BACK_S if self.brokers > 1 else 0.0)
        while (answers := [question(server) for _ in range(ASKED)]) != [answer] * ASKED:
            assert time.monotonic() < limit, f"{question.__name__}: {answers}, not {answer}\n{server.output}"


@pytest.fixture(scope="module", params=[1, pytest.param(BROKERS, marks=LINUX_ALONE)])
def backup(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Copy:
    folder = tmp_path_factory.mktemp("backup")
    copy = Copy(folder / "copy", request.param)
    with copy.served(folder / "data") as server:
        administration(server).create_namespace(SHOP, key=KEY)
        Administration(ConnectionString.parse(string_of(server))).create(EntityType.QUEUE, "kitchen", {})
        call("eventhub", "create", "orders", "--partitions", str(PARTITIONS), "--connection-string", string_of(server))
        with BlockingEventHubClient.from_connection_string(string_of(server), "orders") as hub:
            for number in range(PARTITIONS):
                hub.sender(partition_id=str(number)).send([b"order %d" % number])
        with BlockingQueueClient.from_connection_string(string_of(server)) as queues:
            queues.sender("kitchen").send(b"tea")
        call("store", "backup", str(copy.path), "--data", str(folder / "data"))
    return copy


def call(*words: str) -> None:
    done = CliRunner().invoke(hubweir, words)
    assert done.exit_code == 0, (done.output, done.exception)


def string_of(server: ServerProcess) -> str:
    return replace(ConnectionString.parse(server.connection_string()), key=Secret(KEY)).format()


def administration(server: ServerProcess) -> Administration:
    return Administration(ConnectionString.parse(server.connection_string()))


def follows(server: ServerProcess) -> bool:
    """Whether the process that answers follows the one that keeps the catalogs, and so tells its alarms, too."""
    return bool(administration(server).status()["namespace"]["is_current"])


def told(server: ServerProcess) -> list[str]:
    """The kinds of all alarms, those of other namespaces as one word."""
    status = administration(server).status()
    return [each["kind"] for each in status["alarms"]] + ["others"] * status["alarms_of_others"]


def is_there(server: ServerProcess) -> bool:
    return SHOP in [each["name"] for each in administration(server).namespaces()]


def restored(server: ServerProcess, source: Path) -> str:
    """Restore the shop; what went wrong."""
    administration(server).restore_namespace(SHOP, str(source))
    return ended(server)


def ended(server: ServerProcess) -> str:
    """Wait for the end of the restore that is under way; what went wrong."""
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
    """Begin a restore, and wait for the end of the process that keeps the catalogs; its broker processes live."""
    with suppress(ServiceError, OSError):
        administration(server).restore_namespace(SHOP, str(source))
    until(lambda: not server.is_running, WAIT_S)
    server.kill_supervisor()


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_kill_leaves_all_of_the_namespace_or_nothing_and_the_same_restore_finishes(
    backup: Copy, tmp_path: Path, moment: str
) -> None:
    data = tmp_path / "data"
    server = backup.served(data)
    ending = backup.served(data, server.ports, RESTORE_AT=moment)
    try:
        ending.start()
        fill_home(ending)
        end_in_restore(ending, backup.path)
        server.start()
        assert [follows(server) for _ in range(ASKED)] == [True] * ASKED
        assert [is_there(server) for _ in range(ASKED)] == [moment in THERE] * ASKED
        backup.all_say(server, told, TOLD.get(moment, []))
        if moment in NOT_THERE:
            assert restored(server, backup.path) == ""
            assert told(server) == []
        assert wrong_with_shop(server) == []
        assert home_is_kept(server)
        server.restart()
        assert wrong_with_shop(server) == []
        backup.all_say(server, told, [])
    finally:
        ending.kill9()
        server.kill9()


def test_control_a_namespace_that_is_there_without_its_logs_is_found(backup: Copy, tmp_path: Path) -> None:
    data = tmp_path / "data"
    server = backup.served(data)
    ending = backup.served(data, server.ports, RESTORE_AT="catalog first")
    try:
        ending.start()
        end_in_restore(ending, backup.path)
        server.start()
        assert [follows(server) and is_there(server) for _ in range(ASKED)] == [True] * ASKED
        assert wrong_with_shop(server, wait_s=1.0) and told(server)
    finally:
        ending.kill9()
        server.kill9()


def test_a_broker_that_is_killed_while_its_store_is_written_ends_the_restore_and_the_same_one_finishes(
    backup: Copy, tmp_path: Path
) -> None:
    """The next process of that store removes what it finds half made there."""
    if backup.brokers == 1:
        pytest.skip("its broker is the process that restores")
    data, flag = tmp_path / "data", tmp_path / "held"
    with backup.served(data, RESTORE_AT="held", RESTORE_HELD=str(flag)) as server:
        fill_home(server)
        administration(server).restore_namespace(SHOP, str(backup.path))
        until(flag.exists, WAIT_S)
        pid = broker_pids(data)[1]
        os.kill(pid, signal.SIGKILL)
        until(partial(is_another, data, 1, pid), BACK_S)
        until(lambda: "serves" in typed(server, "list").splitlines()[-2], BACK_S)
        until(lambda: not list((data / "store-1" / "logs").glob("*.new")), WAIT_S)
        flag.unlink()
        assert ended(server).endswith("Nothing of the namespace is there."), server.output
        backup.all_say(server, follows, True)
        assert not is_there(server) and not list(data.glob("store-*/logs/*.new"))
        administration(server).restore_namespace(SHOP, str(backup.path))
        until(flag.exists, WAIT_S)
        flag.unlink()
        assert ended(server) == ""
        assert wrong_with_shop(server) == [] and home_is_kept(server)
        backup.all_say(server, told, [])
