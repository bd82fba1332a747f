"""Settings that are read anew while a service runs: what changes, what stays and is told, what is refused."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hubweir.cli.given_settings import configured
from hubweir.client.administration import Administration
from hubweir.client.atom_documents import EntityType
from hubweir.config.settings import DEVELOPMENT_KEY
from hubweir.errors import ServiceError
from hubweir.namespace.connection_string import ConnectionString
from hubweir.namespace.secret import Secret
from hubweir.service.running_settings import RunningSettings
from hubweir.testing.running_namespace import RunningNamespace, running_namespace


class Sources:
    """A TOML file and a Config.json that a service was started with."""

    def __init__(self, folder: Path) -> None:
        self.file, self.config = folder / "hubweir.toml", folder / "Config.json"
        self.folder = folder
        self.queues("orders")
        self.say()

    def say(self, **settings: Any) -> None:
        """The settings file says these, and which Config.json is read."""
        said = {"emulator_config": [str(self.config)], "data": str(self.folder / "data"), "port": [0], **settings}
        self.file.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in said.items()))

    def queues(self, *names: str, name: str = "shop", **more: Any) -> None:
        """The Config.json has a namespace with these queues."""
        space = {"Name": name, "Queues": [{"Name": each} for each in names], **more}
        self.config.write_text(json.dumps({"UserConfig": {"Namespaces": [space]}}))

    def given(self) -> Any:
        return configured({}, {}, self.file)


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    return Sources(tmp_path)


Read = Callable[[], list[str]]


@pytest.fixture(params=[1, 3], ids=["one process", "three processes"])
def running(request: pytest.FixtureRequest, sources: Sources) -> Iterator[RunningNamespace]:
    settings, said = sources.given()
    with running_namespace(
        said=said, data=settings.data, emulator_config=settings.emulator_config, brokers=request.param
    ) as started:
        yield started


@pytest.fixture
def read(running: RunningNamespace, sources: Sources, caplog: pytest.LogCaptureFixture) -> Iterator[Read]:
    """Has it read everything anew, and returns the lines that the log says of it."""
    again = _on_loop(running, lambda: RunningSettings(running.parts, _as_started(running, sources)))

    def lines() -> list[str]:
        caplog.clear()
        with caplog.at_level(logging.INFO, "hubweir"):
            running.run(again._read())
        return [str(record.msg) for record in caplog.records if getattr(record.msg, "kind", None) is not None
                and record.msg.kind.name == "read-again" and "the certificate" not in str(record.msg)]  # fmt: skip

    yield lines
    running.run(again.stop())


def _as_started(running: RunningNamespace, sources: Sources) -> Callable[[], Any]:
    def given() -> Any:
        settings, said = sources.given()
        known = running.parts.settings
        return replace(settings, brokers=known.brokers), said

    return given


def _on_loop(running: RunningNamespace, make: Callable[[], Any]) -> Any:
    async def made() -> Any:
        return make()

    return running.run(made())


def administration(running: RunningNamespace, key: str = DEVELOPMENT_KEY) -> Administration:
    target = ConnectionString.parse(running.connection_string())
    return Administration(replace(target, key=Secret(key)))


def queues(running: RunningNamespace, key: str = DEVELOPMENT_KEY) -> list[str]:
    return sorted(each.name for each in administration(running, key).list(EntityType.QUEUE))


def test_nothing_is_said_where_nothing_is_said_otherwise(running: RunningNamespace, read: Read) -> None:
    assert queues(running) == ["orders"]
    assert read() == []


def test_entities_of_a_config_json_are_made_and_nothing_is_removed(
    running: RunningNamespace, sources: Sources, read: Read
) -> None:
    sources.queues("returns")
    (line,) = read()
    assert line.startswith("namespace shop: its Config.json was read again")
    assert queues(running) == ["orders", "returns"]
    assert read() == []


def test_a_key_and_units_change_at_once_and_the_key_before_ends(
    running: RunningNamespace, sources: Sources, read: Read
) -> None:
    sources.say(key="another key", throughput_units=3, maximum_throughput_units=7)
    key, units = read()
    assert "namespace shop: the primary key of its rule RootManageSharedAccessKey became" in key
    assert units == "namespace shop: its throughput units became 3, auto-inflate to 7"
    assert "another key" not in key
    deadline = time.monotonic() + 30
    for _ in range(12):
        assert queues(running, "another key") == ["orders"] and time.monotonic() < deadline
    with pytest.raises(ServiceError, match="InvalidSignature"):
        queues(running)
    assert running.parts.connection_string().count("another key") == 1
    sources.say(key="another key", throughput_units=3, maximum_throughput_units=9)
    assert read() == ["namespace shop: its throughput units became 3, auto-inflate to 9"]


def test_what_cannot_change_is_told_with_what_is_said_and_stays(
    running: RunningNamespace, sources: Sources, read: Read
) -> None:
    sources.queues("orders", name="boutique", Hostnames=["boutique.example"])
    sources.say(profile="standard", idle_timeout_ms=9_000, log_level="warning")
    try:
        lines = read()
    finally:
        logging.getLogger("hubweir").setLevel(logging.NOTSET)
    assert "setting log_level: became warning" in lines
    assert "setting idle_timeout_ms: stays 240000 until the next start; said is 9000" in lines
    assert "namespace shop: its name stays shop until the next start; said is boutique" in lines
    assert "namespace shop: its profile stays development until the next start; said is standard" in lines
    assert "namespace shop: its host names stay none until the next start; said is boutique.example" in lines
    assert running.parts.settings.log_level == "warning" and running.parts.settings.idle_timeout_ms == 240_000


def test_a_namespace_that_is_new_is_made_and_served_by_every_process(
    running: RunningNamespace, sources: Sources, read: Read
) -> None:
    sources.say(further_namespace=["annex=annex.example"])
    assert read() == ["namespace annex: is new"]
    for _ in range(12):
        assert [each["name"] for each in administration(running).namespaces()] == ["shop", "annex"]
    assert read() == []


@pytest.mark.parametrize(
    ("file", "says"),
    [("no such setting = 1", "the settings: stay as they were"), ('colour = "red"', "which is no setting"),
     ('log_level = "loud"', "'loud'"), ('emulator_config = ["none.json"]', "cannot be read")],
)  # fmt: skip
def test_what_is_not_legal_changes_nothing_and_is_told_once(
    running: RunningNamespace, sources: Sources, read: Read, file: str, says: str
) -> None:
    before = running.parts.settings
    sources.file.write_text(f"{file}\nthroughput_units = 5\n")
    (line,) = read()
    assert says in line
    assert running.parts.settings == before
    assert administration(running).find_namespace("shop")["throughput_units"] == 0


def test_what_the_namespace_refuses_is_told_with_its_place(
    running: RunningNamespace, sources: Sources, read: Read
) -> None:
    sources.queues("orders", "new", AuthorizationRules=[])
    sources.say(throughput_units=41)
    lines = read()
    assert any(
        "its throughput units stay as they were: Namespace 'shop': 41 throughput units" in each for each in lines
    )
    assert queues(running) == ["new", "orders"], "the rest of it is taken"


def test_a_config_json_may_be_a_text(tmp_path: Path) -> None:
    document = {"UserConfig": {"Namespaces": [{"Name": "inline", "Queues": [{"Name": "orders"}]}]}}
    environment = {"HUBWEIR_EMULATOR_CONFIG_TEXT": json.dumps(document), "HUBWEIR_DATA": str(tmp_path / "data")}
    settings, said = configured({}, environment, None)
    assert "orders" not in repr(settings)
    with running_namespace(said=said, data=settings.data) as running:
        assert queues(running) == ["orders"]
        assert running.parts.gateway.settings.namespace == "inline"
