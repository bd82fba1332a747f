"""A live namespace for the conformance tests.

Every test says which checks it belongs to (`@pytest.mark.eh` of event hubs, `@pytest.mark.sb` of queues and topics),
and in which client's row it counts (`@pytest.mark.client`, `@pytest.mark.feature`); results.py makes the tables.

Gateway and broker talk by calls, and logs lie in segment files. Tests marked `both_ways`, which together send every
command, run a second time with all commands as bytes on a socket pair; those of them that the official client does, a
third time on replicated logs, the second engine (testing/replicated_store.py). With --all every test does both.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.testing.replicated_store import ReplicatedStores
from hubweir.testing.running_namespace import RunningNamespace, running_namespace
from hubweir.testing.server_process import free_ports
from tests.conformance.raw_client import RawClient

# One address a test process: over TLS the Python client knows no port but 5671, and others may hold it elsewhere.
HOST = f"127.0.71.{os.getpid() % 250 + 2}"
CALLS, SOCKET, REPLICATED = "calls", "socket pair", "replicated logs"
HUBS = {"events": 4, "two": 2, "one": 1, "eight": 8, "many": 32}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "eh(*numbers): checks of the list that this test shows")
    config.addinivalue_line("markers", "sb(*numbers): checks of the list of queues and topics that this test shows")
    config.addinivalue_line("markers", "client(name): the client whose row this test counts in")
    config.addinivalue_line("markers", "feature(name): the column this test counts in")
    config.addinivalue_line("markers", "both_ways: runs by calls and over a socket pair, also without --all")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The hook is given the items of every folder that is collected: only those of this one have a way."""
    everything = config.getoption("--all", default=False)
    items[:] = [item for item in items if way_of(item) in (None, CALLS) or _is_wanted_again(item, everything)]


def way_of(item: pytest.Item) -> object:
    """How its namespace is reached, and on which engine; None: it has a namespace of its own."""
    callspec = getattr(item, "callspec", None)
    return None if callspec is None else callspec.params.get("doors")


def _is_wanted_again(item: pytest.Item, everything: bool) -> bool:
    """TLS ends before the broker begins: it is not run again for every way to the broker and its logs."""
    is_tls = getattr(item, "callspec").params.get("tls", False)  # noqa: B009 - only parametrized items have it
    is_few = item.get_closest_marker("both_ways") is not None
    if way_of(item) == REPLICATED:
        is_few = is_few and item.path.name.startswith("test_azure")
    return not is_tls and (everything or is_few)


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


@pytest.fixture(scope="session", params=[CALLS, SOCKET, REPLICATED])
def doors(request: pytest.FixtureRequest) -> Iterator[Doors]:
    """A namespace whose gateway reaches its broker by calls; one where every command crosses a socket; and one whose
    logs are replicated."""
    seam = "socket" if request.param == SOCKET else "call"
    engine = ReplicatedStores().open if request.param == REPLICATED else MessagingStore.open
    ports = (free_ports(1, HOST)[0], 5671)
    with running_namespace(open_store=engine, host=(HOST,), port=ports, broker_seam=seam) as namespace:
        for hub, count in HUBS.items():
            namespace.create_event_hub(hub, partition_count=count, consumer_groups=("second",))
        yield Doors(namespace, request.param)


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
