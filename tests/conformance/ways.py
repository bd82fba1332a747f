"""In which ways a test runs: what it is that stands behind its clients.

`doors` is one namespace that most tests share. In one process its gateway and broker talk by calls; by bytes on a
socket pair; and by calls on replicated logs, the second engine (testing/replicated_store.py). Or it is several broker
processes under a supervisor, where each connection may come to another process. Whatever else starts a service takes
`broker_count`: 1, or how many broker processes.

    every run       by calls, in one process; tests marked `both_ways` also over the socket pair, and those of them that
                    official clients do on replicated logs; checks of partitioned entities also on 3 broker processes
    --all           every test in every way
    --brokers N     every test on N broker processes, and in no other way

A test that looks into the service, or breaks it from inside, says so by the mark `one_process`; one that starts a
namespace without `broker_count` has it in this process, too. Broker processes are not for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hubweir.testing.replicated_store import ReplicatedStores
from hubweir.testing.server_process import ServerProcess

CALLS, SOCKET, REPLICATED = "calls", "socket pair", "replicated logs"
ONE_PROCESS = "one process"
BROKERS = 3
# Checks of queues and topics that run on broker processes in every run. 133 is long, and its count the keeper's alone.
PARTITIONED = frozenset(range(125, 137)) - {133}
_FOLDER = Path(__file__).resolve().parent


def several(count: int) -> str:
    """The way of so many broker processes."""
    return f"{count} broker processes"


def settings_of(way: str) -> dict[str, Any]:
    """With which settings running_namespace starts a namespace for a way."""
    if way == CALLS:
        return {}
    if way == SOCKET:
        return {"broker_seam": "socket"}
    if way == REPLICATED:
        return {"open_store": ReplicatedStores().open}
    return {"brokers": int(way.split()[0])}


@contextmanager
def server_process(data: Path, brokers: int, *, arguments: Sequence[str] = (), **more: Any) -> Iterator[ServerProcess]:
    """A server that is a process of its own, or a supervisor and so many broker processes, all gone at the end.

    arguments, more: as of ServerProcess.
    """
    with ServerProcess(data, arguments=(*arguments, "--brokers", str(brokers)), **more) as server:
        yield server


def given_brokers(config: pytest.Config) -> int:
    """What --brokers says; 1 without it."""
    return int(config.getoption("--brokers", default=1))


def parametrize(metafunc: pytest.Metafunc) -> None:
    """Give a test all ways that a run could want; `choose` leaves out those that this one does not."""
    given = given_brokers(metafunc.config)
    counts = {ONE_PROCESS: 1, several(BROKERS): BROKERS} if given == 1 else {several(given): given}
    if metafunc.definition.get_closest_marker("one_process") is not None:
        counts = {ONE_PROCESS: 1}
    if "doors" in metafunc.fixturenames:
        ways = [way for way in (CALLS, SOCKET, REPLICATED) if ONE_PROCESS in counts]
        ways += [way for way in counts if way != ONE_PROCESS]
        metafunc.parametrize("doors", ways, indirect=True, scope="session")
    elif "broker_count" in metafunc.fixturenames:
        metafunc.parametrize("broker_count", counts.values(), ids=counts, indirect=True, scope="session")


def choose(config: pytest.Config, items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Those that this run wants. Items of all folders come, and only those of this one have ways."""
    possible = [item for item in items if not _is_on_several(item) or _params_of(item).get("way", CALLS) == CALLS]
    if given_brokers(config) > 1:
        return [item for item in possible if _FOLDER not in item.path.parents or _is_on_several(item)]
    everything = bool(config.getoption("--all", default=False))
    return [item for item in possible if _is_wanted(item, is_whole=everything)]


def _is_wanted(item: pytest.Item, *, is_whole: bool) -> bool:
    if _is_on_several(item):
        numbers = {number for mark in item.iter_markers("sb") for number in mark.args}
        return is_whole or not PARTITIONED.isdisjoint(numbers)
    if (way := _params_of(item).get("doors", CALLS)) == CALLS:
        return True
    # TLS ends before the broker begins: it is not run again for every way to the broker and its logs.
    is_tls = _params_of(item).get("tls", False)
    is_few = item.get_closest_marker("both_ways") is not None
    if way == REPLICATED:
        is_few = is_few and item.path.name.startswith("test_azure")
    return not is_tls and (is_whole or is_few)


def _is_on_several(item: pytest.Item) -> bool:
    params = _params_of(item)
    return params.get("broker_count", 1) > 1 or params.get("doors", CALLS) not in (CALLS, SOCKET, REPLICATED)


def _params_of(item: pytest.Item) -> dict[str, Any]:
    callspec = getattr(item, "callspec", None)
    return {} if callspec is None else callspec.params
