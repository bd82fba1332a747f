"""A namespace as a Config.json, and what differs from it: documents alone, without the commands around them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest

from hubweir.cli.live_namespace import Document, _hub, differences, live_document, messaging_namespace
from hubweir.client.authorization_rules import AuthorizationRules
from hubweir.client.connection import Connection
from hubweir.client.entity_info import HubInfo
from hubweir.client.management import Management
from hubweir.config.emulator_entities import EmulatorConfig
from hubweir.config.tests.emulator_texts import parse_emulator_file
from hubweir.namespace.capture_description import CaptureDescription
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.running_namespace import RunningNamespace, running_namespace

ALL = ("Listen", "Send", "Manage")


@pytest.fixture(scope="module")
def furnished() -> Iterator[RunningNamespace]:
    """A namespace with everything that a Config.json can name."""

    async def furnish(text: str) -> None:
        connection = await Connection.open(ConnectionString.parse(text))
        rules = AuthorizationRules(connection)
        await rules.create_rule("operator", ALL)
        await rules.create_rule("device", ("Send",), "filmed")
        await Management(connection).change_namespace(throughput_units=2, maximum_throughput_units=5)
        await connection.close()

    with running_namespace() as running:
        capture = CaptureDescription(enabled=True, interval_s=60, container="films")
        running.create_event_hub("filmed", partition_count=2, consumer_groups=("billing",), capture=capture)
        running.create_event_hub("plain", retention_ms=5_400_000)  # an hour and a half
        asyncio.run(furnish(running.connection_string()))
        yield running


def document_of(running: RunningNamespace, *, with_keys: bool = False) -> Document:
    async def ask() -> Document:
        connection = await Connection.open(ConnectionString.parse(running.connection_string()))
        try:
            return await live_document(connection, with_keys=with_keys, tell=pytest.fail)
        finally:
            await connection.close()

    return asyncio.run(ask())


def read(document: Document) -> EmulatorConfig:
    return parse_emulator_file(json.dumps(document).encode(), file="live")


def space_of(document: Document) -> Document:
    (space,) = document["UserConfig"]["NamespaceConfig"]  # type: ignore[index]
    assert isinstance(space, dict)
    return space


def test_the_document_is_a_config_file_without_warnings_and_differs_from_nothing(furnished: RunningNamespace) -> None:
    document = document_of(furnished)
    found = read(document)
    assert found.warnings == () and differences(found, document) == []
    (space,) = found.namespaces
    assert (space.throughput_units, space.maximum_throughput_units) == (2, 5)
    assert [rule.name for rule in space.rules] == ["operator"], "the rule of the settings is no business of a file"
    filmed, plain = sorted(space.hubs, key=lambda hub: hub.name)
    assert (filmed.partition_count, filmed.consumer_groups) == (2, ("billing",))
    assert filmed.capture is not None and plain.capture is None
    assert (filmed.capture.enabled, filmed.capture.interval_s, filmed.capture.blob_container) == (True, 60, "films")
    assert plain.retention_ms == 7_200_000, "hours are whole: rounded up, so that nothing goes earlier"


def test_what_only_a_newer_service_says_of_capture_is_left_out_with_a_line() -> None:
    told: list[str] = []
    place = CaptureDescription().destination.value
    capture = {"enabled": True, "interval_s": 60, "destination": place, "codec": "zstd", "colour": "red"}
    hub = HubInfo("films", 0, ("0",), (), None, None, capture=capture)
    document = _hub(hub, told.append)["CaptureDescription"]
    assert isinstance(document, dict) and document["IntervalInSeconds"] == 60
    (line,) = told
    assert "event hub films" in line and "codec, colour" in line


def test_keys_are_shown_only_when_they_are_asked_for(furnished: RunningNamespace) -> None:
    assert 'Key"' not in json.dumps(document_of(furnished))
    rules = space_of(document_of(furnished, with_keys=True))["AuthorizationRules"]
    (rule,) = rules  # type: ignore[misc]
    assert len(rule["PrimaryKey"]) > 20 and rule["PrimaryKey"] != rule["SecondaryKey"]


def test_each_member_of_capture_that_a_start_would_change_has_its_line(furnished: RunningNamespace) -> None:
    document = document_of(furnished)
    wanted = document_of(furnished)
    hubs = {hub["Name"]: hub for hub in space_of(wanted)["Entities"]}  # type: ignore[attr-defined]
    hubs["filmed"]["CaptureDescription"] = {"Enabled": True, "SkipEmptyArchives": True}
    hubs["plain"]["CaptureDescription"] = {"Enabled": False}  # what it has, never having been set
    of = "~ event hub filmed: CaptureDescription"
    assert differences(read(wanted), document) == [
        f"{of}.IntervalInSeconds is 300 in the files, 60 in the namespace",
        f"{of}.SkipEmptyArchives is true in the files, false in the namespace",
        f'{of}.Destination.BlobContainer is "" in the files, "films" in the namespace',
    ]
    del hubs["filmed"]["CaptureDescription"]
    assert differences(read(wanted), document) == [], "what a file does not say is no difference"


def test_a_file_of_other_namespaces_is_compared_with_its_first_one(furnished: RunningNamespace) -> None:
    document = document_of(furnished)
    own = space_of(document)
    other = {"Name": "second", "Entities": []}
    both = {"UserConfig": {"NamespaceConfig": [other, own]}}
    assert differences(read(both), document) == ["+ namespace second"]
    alone = differences(read({"UserConfig": {"NamespaceConfig": [other]}}), document)
    assert alone[0] == '~ namespace hubweir: Name is "second" in the files, "hubweir" in the namespace'
    assert {"- event hub filmed", "- event hub plain"} <= set(alone)
    queues = {"UserConfig": {"Namespaces": [{"Queues": [{"Name": "q"}]}]}}
    assert differences(read(queues), document) == [], "a file of queues says nothing of event hubs"
    found = messaging_namespace(read(queues), document)
    assert found is not None and found.name == "sbemulatorns"
    assert messaging_namespace(read(both), document) is None
