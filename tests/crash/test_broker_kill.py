"""Ways to lose a process of `serve --brokers 3`, each once: nothing accepted is lost, others go on (T7).

Real processes. Each partition has a writer with a connection of its own, which connects again as clients do. Clients
of a process that dies lose their connections, partitions of its broker are away until it is back, and nothing else is.
Many faults in a row, under messages too, are test_broker_faults.py.
"""

import asyncio
import json
import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from hubweir.client.administration import Administration
from hubweir.client.atom_documents import EntityType
from hubweir.namespace.connection_string import ConnectionString
from hubweir.service.runtime_folder import RuntimeFolder
from hubweir.testing.broker_processes import broker_pids, end_brokers
from hubweir.testing.server_process import ServerProcess
from tests.crash.several_processes import (
    BACK_S,
    BROKERS,
    LINUX_ALONE,
    PARTITIONS,
    health,
    is_another,
    kept,
    loaded,
    several_processes,
    typed,
    until,
)

LATE_FOLLOWERS = str(Path(__file__).with_name("late_followers.py"))
# Each time over another connection. A process passes those that it accepts to all in turn: one of three accepts three.
ASKED = 7
ALONE_S = 5.0  # so long the load goes on without a supervisor

pytestmark = [pytest.mark.crash, pytest.mark.timeout(1800), LINUX_ALONE]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with several_processes(tmp_path / "data") as made:
        yield made


def test_a_stalled_broker_is_killed_before_another_owns_its_store(tmp_path: Path, server: ServerProcess) -> None:
    load, data = loaded(server, 1), tmp_path / "data"
    pid = broker_pids(data)[1]
    asyncio.run(load.write_on(0.5, lambda: os.kill(pid, signal.SIGSTOP), 12.0, served=range(PARTITIONS)))
    assert "broker process 1 answers no more: it is killed" in server.output
    assert broker_pids(data)[1] != pid
    assert max(load.gaps_s.values()) > 9.0
    kept(load, server)


def test_brokers_serve_on_without_a_supervisor_and_the_next_one_keeps_them(
    tmp_path: Path, server: ServerProcess
) -> None:
    load, data = loaded(server, 2), tmp_path / "data"
    before = broker_pids(data)
    asyncio.run(load.write_on(0.5, server.kill_supervisor, ALONE_S, served=range(PARTITIONS)))
    assert "Service is healthy" in health(server)
    server.start()
    assert broker_pids(data) == before
    kept(load, server)
    os.kill(before[0], signal.SIGKILL)
    until(partial(is_another, data, 0, before[0]), BACK_S)
    assert server.stop() == 0
    assert broker_pids(data) == {}
    assert RuntimeFolder.left(str(data)) is None


@pytest.mark.parametrize("late_s", ["2", "never"])
def test_the_next_supervisor_is_ready_when_all_processes_follow_it(tmp_path: Path, late_s: str) -> None:
    """Those that it keeps, or others in the place of those that never do. Any process takes changes then."""
    data = tmp_path / "data"
    with ServerProcess(
        data,
        arguments=["--brokers", str(BROKERS)],
        environment={"LATE_S": late_s},
        program=(LATE_FOLLOWERS,),
    ) as server:
        before = broker_pids(data)
        server.kill_supervisor()
        server.start()
        administration = Administration(ConnectionString.parse(server.connection_string()))
        for number in range(ASKED):
            administration.create(EntityType.QUEUE, f"queue-{number}", {})
            assert administration.status()["namespace"]["is_current"]
        same = [index for index, pid in broker_pids(data).items() if before[index] == pid]
        assert same == ([] if late_s == "never" else list(range(BROKERS)))
        assert ("does not follow the keeper: it is killed" in server.output) is (late_s == "never")
        assert server.stop() == 0


def test_a_start_ends_when_a_process_that_it_started_never_follows_and_its_line_names_the_process(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    server = ServerProcess(
        data,
        arguments=["--brokers", str(BROKERS)],
        environment={"LATE_S": "2", "FOLLOWS_NOBODY": "1", "UNSERVED_BEATS": "6"},
        program=(LATE_FOLLOWERS,),
    )
    server.begin()
    try:
        assert not server.becomes_ready()
        assert "broker process 1 does not follow the keeper, and was killed for it" in server.output
        assert broker_pids(data) == {}
    finally:
        server.kill9()


def test_a_start_that_fails_leaves_processes_to_the_next_one(tmp_path: Path, server: ServerProcess) -> None:
    data, nothing = tmp_path / "data", str(tmp_path / "nothing")
    before = broker_pids(data)
    server.kill_supervisor()
    wrong = ServerProcess(
        data, ports=server.ports, arguments=["--brokers", str(BROKERS), "--tls-cert", nothing, "--tls-key", nothing],
    )  # fmt: skip
    wrong.begin()
    try:
        assert not wrong.becomes_ready()
    finally:
        wrong.kill_supervisor()
    assert nothing in wrong.output
    if broker_pids(data) != before:
        end_brokers(data, before.values())  # nobody else finds them
        pytest.fail("they are not found any more")
    server.start()
    assert broker_pids(data) == before
    assert server.stop() == 0


def test_processes_of_another_start_are_ended_before_their_stores_are_opened(
    tmp_path: Path, server: ServerProcess
) -> None:
    load, data = loaded(server, 3), tmp_path / "data"
    before = broker_pids(data)
    os.kill(before[2], signal.SIGSTOP)  # one of them does not answer
    server.kill_supervisor()
    other = ServerProcess(
        data, ports=server.ports, arguments=["--brokers", "2", "--stop-grace-ms", "1000"],
    )  # fmt: skip
    with other:
        after = broker_pids(data)
        assert len(after) == 2
        assert not set(after.values()) & set(before.values())
        kept(load, other)  # the third store is served by the first process now
        assert other.stop() == 0


def test_faults_are_ordered_by_command(tmp_path: Path, server: ServerProcess) -> None:
    load, data = loaded(server, 4), tmp_path / "data"

    def states() -> list[str]:
        return [each["state"] for each in json.loads(typed(server, "list", "--json"))]

    before = broker_pids(data)
    until(lambda: states() == ["serves"] * BROKERS, BACK_S)  # one that is busy may miss a heartbeat
    assert [str(pid) in typed(server, "list") for pid in before.values()] == [True] * BROKERS
    asyncio.run(load.write_on(0.2, lambda: typed(server, "stop", "1"), 2.0))
    until(lambda: states()[1] == "stopped", BACK_S)
    assert sorted(broker_pids(data)) == [0, 2]
    until(lambda: "1 store-away" in health(server), BACK_S)
    typed(server, "start", "1")
    until(lambda: states() == ["serves"] * BROKERS, BACK_S)
    until(lambda: "Service is healthy" in health(server), BACK_S)
    typed(server, "kill", "2")
    until(partial(is_another, data, 2, before[2]), BACK_S)
    until(lambda: states() == ["serves"] * BROKERS, BACK_S)
    kept(load, server)
    assert server.stop() == 0


def test_a_start_of_one_process_ends_those_that_are_left_and_serves_all_stores(
    tmp_path: Path, server: ServerProcess
) -> None:
    load, data = loaded(server, 5), tmp_path / "data"
    asyncio.run(load.write_on(0.2, server.kill_supervisor, 0.2))
    assert len(broker_pids(data)) == BROKERS
    with ServerProcess(data, ports=server.ports) as alone:
        assert broker_pids(data) == {}
        kept(load, alone)
        assert alone.stop() == 0
