"""A live namespace for the conformance tests.

Every test says which checks it belongs to (`@pytest.mark.eh` of event hubs, `@pytest.mark.sb` of queues and topics),
and in which client's row it counts (`@pytest.mark.client`, `@pytest.mark.feature`); results.py makes the tables.

In which ways it runs, in this process and as several broker processes, is ways.py.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from hubweir.testing.running_namespace import RunningNamespace, running_namespace
from tests.conformance import ways
from tests.conformance.raw_client import RawClient

Serve = Callable[..., AbstractContextManager[RunningNamespace]]

# One address a test process: over TLS the Python client knows no port but 5671, and others may hold it elsewhere.
HOST = f"127.0.71.{os.getpid() % 250 + 2}"
HUBS = {"events": 4, "two": 2, "one": 1, "eight": 8, "many": 32}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "eh(*numbers): checks of the list that this test shows")
    config.addinivalue_line("markers", "sb(*numbers): checks of the list of queues and topics that this test shows")
    config.addinivalue_line("markers", "client(name): the client whose row this test counts in")
    config.addinivalue_line("markers", "feature(name): the column this test counts in")
    config.addinivalue_line("markers", "both_ways: runs by calls and over a socket pair, also without --all")
    config.addinivalue_line("markers", "one_process(why): is not for a service of several broker processes")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    ways.parametrize(metafunc)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items[:] = ways.choose(config, items)


@pytest.fixture(scope="session")
def broker_count(request: pytest.FixtureRequest) -> int:
    """How many broker processes the service of a test has; with 1 it is one process."""
    return int(request.param)


@pytest.fixture(scope="session")
def serve(broker_count: int) -> Serve:
    """What starts namespaces of a test's own, with the settings of running_namespace."""
    return partial(running_namespace, brokers=broker_count)


@dataclass
class Doors:
    """Where clients find the namespace."""

    namespace: RunningNamespace
    way: str

    @property
    def host(self) -> str:
        return self.namespace.host

    @property
    def port(self) -> int:
        return self.namespace.port

    @property
    def ca_file(self) -> str:
        assert self.namespace.ca_file is not None
        return str(self.namespace.ca_file)

    def raw(self) -> RawClient:
        """A scripted client, connected and silent."""
        return RawClient.connect((self.host, self.port))

    def raw_tls(self) -> RawClient:
        return RawClient.connect((self.host, self.port), tls=ssl.create_default_context(cafile=self.ca_file))

    def connection_string(
        self,
        *,
        tls: bool = False,
        rule: str = "RootManageSharedAccessKey",
        key: str = "SAS_KEY_VALUE",
        host: str = "",
    ) -> str:
        where = host or (self.host if tls else f"{self.host}:{self.port}")
        flag = "" if tls else "UseDevelopmentEmulator=true;"
        return f"Endpoint=sb://{where};SharedAccessKeyName={rule};SharedAccessKey={key};{flag}"


@pytest.fixture(scope="session")
def doors(request: pytest.FixtureRequest) -> Iterator[Doors]:
    """The namespace that most tests share, in one of the ways."""
    way: str = request.param
    with running_namespace(host=(HOST,), port=(0, 5671), **ways.settings_of(way)) as namespace:
        for hub, count in HUBS.items():
            namespace.create_event_hub(hub, partition_count=count, consumer_groups=("second",))
        yield Doors(namespace, way)


@pytest.fixture
def hub(doors: Doors, request: pytest.FixtureRequest) -> Iterator[str]:
    """A fresh hub of four partitions for one test."""
    name = f"hub-{abs(hash(request.node.nodeid)) % 10**10}"
    doors.namespace.create_event_hub(name, partition_count=4, consumer_groups=("second",))
    yield name
    doors.namespace.delete_event_hub(name)


@pytest.fixture
def make_queue(doors: Doors, request: pytest.FixtureRequest) -> Iterator[Callable[..., str]]:
    """Makes queues for one test, with the settings of RunningNamespace.create_queue, and returns their names."""
    made: list[str] = []

    def make(**settings: Any) -> str:
        name = f"queue-{abs(hash(request.node.nodeid)) % 10**10}-{len(made)}"
        doors.namespace.create_queue(name, **settings)
        made.append(name)
        return name

    yield make
    for name in made:
        doors.namespace.delete_queue(name)


@pytest.fixture
def queue(make_queue: Callable[..., str]) -> str:
    """A fresh queue for one test, with all settings as a new queue has them."""
    return make_queue()
