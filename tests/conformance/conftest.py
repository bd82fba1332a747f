"""A live namespace for the conformance tests, and the table of what they showed.

`--write-table` writes docs/compatibility.md from this run. Every test says which checks of the list it belongs to
(`@pytest.mark.eh`), and in which client's row it counts (`@pytest.mark.client`, `@pytest.mark.feature`).
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hubweir.testing.running_namespace import RunningNamespace, running_namespace
from hubweir.testing.server_process import free_ports
from tests.conformance.raw_client import RawClient
from tests.conformance.socket_pair import SocketPairBroker
from tests.conformance.table import Result, page

PAGE = Path(__file__).resolve().parents[2] / "docs/compatibility.md"
# One address a test process: over TLS the Python client knows no port but 5671, and others may hold it elsewhere.
HOST = f"127.0.71.{os.getpid() % 250 + 2}"
HUBS = {"events": 4, "two": 2, "one": 1, "eight": 8, "many": 32}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-table", action="store_true", help="write docs/compatibility.md from this run")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "eh(*numbers): checks of the list that this test shows")
    config.addinivalue_line("markers", "client(name): the client whose row this test counts in")
    config.addinivalue_line("markers", "feature(name): the column this test counts in")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """TLS ends before the broker begins: it is not run again for every way to the broker."""
    items[:] = [item for item in items if not ("tls" in item.name and "socket pair" in item.name)]


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
        return RawClient((self.host, self.port))

    def raw_tls(self) -> RawClient:
        return RawClient((self.host, self.port), tls=ssl.create_default_context(cafile=self.ca_file))

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


@pytest.fixture(scope="session", params=["calls", "socket pair"])
def doors(request: pytest.FixtureRequest) -> Iterator[Doors]:
    """A namespace whose gateway reaches its broker by calls, then one where every command crosses a socket."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "socket pair":
            patch.setattr("hubweir.launcher.InProcessBroker", SocketPairBroker)
        # The standard loop: closing uvloop's from another thread than it ran on does not always come back.
        with running_namespace(host=(HOST,), port=(free_ports(1, HOST)[0], 5671)) as namespace:
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


_RESULTS: list[Result] = []


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]  # pluggy's own type
    if report.when == "call" or (report.when == "setup" and not report.passed):
        numbers = tuple(number for mark in item.iter_markers("eh") for number in mark.args)
        client, feature = item.get_closest_marker("client"), item.get_closest_marker("feature")
        _RESULTS.append(
            Result(
                name=item.name,
                numbers=numbers,
                client="" if client is None else client.args[0],
                feature="" if feature is None else feature.args[0],
                outcome=report.outcome,
            )
        )


def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.config.getoption("--write-table"):
        PAGE.write_text(page(_RESULTS))
