"""Stores of `serve --brokers 3` that are away, and a process that follows no keeper: all else goes on, nothing is lost.

Real processes: those of several_processes.py.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path

import pytest

from hubweir.client.administration import Administration
from hubweir.client.atom_documents import EntityType
from hubweir.errors import ServiceError
from hubweir.namespace.connection_string import ConnectionString
from hubweir.service.runtime_folder import RuntimeFolder
from hubweir.testing.broker_processes import broker_pids
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
from tests.crash.spread_load import SpreadLoad

pytestmark = [pytest.mark.crash, pytest.mark.timeout(600), LINUX_ALONE]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with several_processes(tmp_path / "data") as made:
        yield made


def away(server: ServerProcess) -> list[int]:
    return sorted(store for each in json.loads(typed(server, "list", "--json")) for store in each["away"])


def served_beside(load: SpreadLoad, store: int, end: Callable[[], object]) -> bool:
    """Whether nothing is accepted in a store that end took away, while all others go on."""
    others = [partition for partition in range(PARTITIONS) if partition % BROKERS != store]
    asyncio.run(load.write_on(0.3, end, 0.5, served=others))
    return not any(count for partition, count in load.behind.items() if partition not in others)


def test_a_store_whose_folder_is_missing_is_not_made_anew_and_the_others_are_served(
    tmp_path: Path, server: ServerProcess
) -> None:
    load, data = loaded(server, 1), tmp_path / "data"
    asyncio.run(load.write_on(0.3, lambda: None, 0.1))
    assert server.stop() == 0
    (data / "store-1").rename(data / "elsewhere")
    server.start()
    assert away(server) == [1] and not (data / "store-1").exists()
    until(lambda: "1 store-away" in health(server), BACK_S)
    assert served_beside(load, 1, lambda: None)
    pid = broker_pids(data)[1]
    os.kill(pid, signal.SIGKILL)
    until(partial(is_another, data, 1, pid), BACK_S)
    until(lambda: away(server) == [1], BACK_S)
    assert not (data / "store-1").exists()
    (data / "elsewhere").rename(data / "store-1")
    until(lambda: away(server) == [] and "Service is healthy" in health(server), BACK_S)
    kept(load, server)
    assert server.stop() == 0


def test_a_store_is_taken_away_and_brought_back_by_command(tmp_path: Path, server: ServerProcess) -> None:
    load = loaded(server, 2)
    assert served_beside(load, 2, lambda: typed(server, "away", "2"))
    assert away(server) == [2]
    # Whichever process answers: each hears of it with the next question of the supervisor.
    until(lambda: all("1 store-away" in health(server) for _ in range(12)), BACK_S)
    typed(server, "back", "2")
    until(lambda: away(server) == [], BACK_S)
    until(lambda: all("Service is healthy" in health(server) for _ in range(12)), BACK_S)
    kept(load, server)
    assert sorted(broker_pids(tmp_path / "data")) == [0, 1, 2]
    assert server.stop() == 0


def test_a_process_that_answers_and_cannot_follow_the_keeper_is_started_anew(
    tmp_path: Path, server: ServerProcess
) -> None:
    """It misses a change while it is stopped, so that the keeper ends its stream, and finds no way back to it."""
    load, data = loaded(server, 3), tmp_path / "data"
    keeper, hidden = RuntimeFolder.of(str(data)).keeper, RuntimeFolder.of(str(data)).keeper.with_name("hidden")
    pid = broker_pids(data)[1]
    os.kill(pid, signal.SIGSTOP)
    keeper.rename(hidden)
    # As soon as a change was missed: a process that says nothing for 10 s is killed as it is.
    create_somewhere(server, then=partial(os.kill, pid, signal.SIGCONT))
    until(lambda: "broker process 1 does not follow the keeper: it is killed" in server.output, BACK_S)
    hidden.rename(keeper)
    until(partial(is_another, data, 1, pid), BACK_S)
    until(lambda: "serves" in typed(server, "list").splitlines()[-2], BACK_S)
    kept(load, server)
    assert server.stop() == 0


def create_somewhere(server: ServerProcess, then: Callable[[], None]) -> None:
    """Make a queue through a process that is not stopped: one of several connections leads to one. then: is called."""
    target = ConnectionString.parse(server.connection_string())

    def create(number: int) -> bool:
        try:
            Administration(target, timeout_s=6.0).create(EntityType.QUEUE, f"made-{number}", {})
        except (ServiceError, OSError):
            return False
        return True

    with ThreadPoolExecutor() as threads:
        tries = [threads.submit(create, number) for number in range(8)]
        is_made = any(each.result() for each in as_completed(tries))
        then()
        assert is_made
