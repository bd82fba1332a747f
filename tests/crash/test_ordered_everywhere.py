"""Test control over real broker processes: clock and faults hold in each of them, and in those that come later."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from hubweir.broker.commands.testcontrol import AskOrders, OrdersTold, StandingOrders
from hubweir.client.administration import Administration
from hubweir.client.atom_documents import EntityType
from hubweir.client.blocking_queue import BlockingQueueClient
from hubweir.client.namespace_control import NamespaceControl
from hubweir.client.queue_message import QueueMessage
from hubweir.client.queue_receiver import QueueReceiverOptions
from hubweir.client.retry import RetryPolicy
from hubweir.drivers.system_env import SystemEnv
from hubweir.errors import SERVER_BUSY, STORE_OFFLINE, ServiceError
from hubweir.namespace.connection_string import ConnectionString
from hubweir.queue.sub_queue import SubQueue
from hubweir.service.asked_process import ask_once
from hubweir.service.runtime_folder import RuntimeFolder
from hubweir.testing.broker_processes import broker_pids
from hubweir.testing.memory_files import MemoryFiles
from hubweir.testing.server_process import ServerProcess
from tests.crash.several_processes import BACK_S, BROKERS, LINUX_ALONE, is_another, several_processes, typed, until

HOUR_MS = 3_600_000
CONNECTIONS = 4 * BROKERS  # each process has some of so many
ONCE = RetryPolicy(attempts=1)
DEAD = QueueReceiverOptions(sub_queue=SubQueue.DEAD_LETTERS)

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900), LINUX_ALONE]


def administration(server: ServerProcess) -> Administration:
    return Administration(ConnectionString.parse(server.connection_string()))


def gone_by(data: Path) -> list[StandingOrders]:
    """What each process goes by, asked at its own socket."""

    async def ask() -> list[StandingOrders]:
        env, folder = SystemEnv(MemoryFiles()), RuntimeFolder.left(str(data))
        assert folder is not None
        try:
            told = [await ask_once(folder.process(index), AskOrders(), env, within_s=30) for index in range(BROKERS)]
        finally:
            env.close()
        assert all(isinstance(each, OrdersTold) for each in told), told
        return [each.orders for each in told if isinstance(each, OrdersTold)]

    return asyncio.run(ask())


def answers(control: NamespaceControl) -> bool:
    """Whether the process that is asked has its way to the supervisor again."""
    try:
        control.state()
    except ServiceError as error:
        assert error.condition is STORE_OFFLINE
        return False
    return True


def refused(server: ServerProcess) -> int:
    """How many of CONNECTIONS connections have a send refused as busy."""
    count = 0
    for _ in range(CONNECTIONS):
        with BlockingQueueClient.from_connection_string(server.connection_string(), retry=ONCE) as client:
            try:
                client.sender("parts").send(b"one")
            except ServiceError as error:
                assert error.condition is SERVER_BUSY
                count += 1
    return count


def test_clock_and_faults_hold_in_all_processes_also_in_one_that_was_killed_and_under_the_next_supervisor(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    with several_processes(data) as server:
        control = NamespaceControl(administration(server))
        settings = {
            "DefaultMessageTimeToLive": "PT2H", "DeadLetteringOnMessageExpiration": "true", "EnablePartitioning": "true"
        }  # fmt: skip
        administration(server).create(EntityType.QUEUE, "parts", settings)

        # The clock of every process goes forward.
        with BlockingQueueClient.from_connection_string(server.connection_string(), retry=ONCE) as client:
            sender = client.sender("parts")
            for number in range(16):
                sender.send(QueueMessage(b"one", partition_key=str(number)))
            assert control.forward_clock(HOUR_MS)["clock"]["ahead_ms"] == HOUR_MS
            assert not client.receiver("parts", DEAD).receive(1, max_wait_s=0.5)
            control.forward_clock(HOUR_MS)
            dead, found = client.receiver("parts", DEAD), 0
            while found < 16 and (more := dead.receive(16, max_wait_s=60)):
                found += len(more)
            assert found == 16
        assert [each.clock_ms for each in gone_by(data)] == [2 * HOUR_MS] * BROKERS
        for _ in range(CONNECTIONS):
            clock = control.state()["clock"]
            assert clock["now_ms"] >= time.time() * 1000 + 2 * HOUR_MS - 60_000

        # Faults strike at each of them, and are counted together.
        control.order_faults(server_busy=1, seed=7)
        assert refused(server) == CONNECTIONS
        assert control.state()["faults"]["struck"] == {"server_busy": CONNECTIONS}

        # One that is started anew has both before it takes clients.
        pid = broker_pids(data)[1]
        typed(server, "kill", "1")
        until(lambda: is_another(data, 1, pid), BACK_S)
        until(lambda: typed(server, "list").count("serves") == BROKERS, BACK_S)
        assert refused(server) == CONNECTIONS
        assert len({each.version for each in gone_by(data)}) == 1

        # So does the service under another supervisor, and it goes on from there.
        server.kill_supervisor()
        server.start()
        until(lambda: all(answers(control) for _ in range(CONNECTIONS)), BACK_S)
        assert control.state()["clock"]["ahead_ms"] == 2 * HOUR_MS
        assert refused(server) == CONNECTIONS
        control.forward_clock(HOUR_MS)
        control.end_faults()
        assert refused(server) == 0
        assert [(each.clock_ms, each.faults) for each in gone_by(data)] == [(3 * HOUR_MS, {})] * BROKERS

        # Nobody takes it for a clock that jumped.
        assert "clock-away" not in server.output
        assert server.stop() == 0
