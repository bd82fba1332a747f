"""Namespaces that are made and deleted while the service runs, by official clients, on one process and on several.

Each connection comes to any process, so what the keeper answered must be so everywhere. The service is a process of its
own, killed without a warning, and started again on the same data.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from azure.servicebus import ServiceBusClient, ServiceBusMessage

from hubweir.client.administration import Administration
from hubweir.client.atom_documents import EntityType
from hubweir.errors import ServiceError
from hubweir.namespace.connection_string import ConnectionString
from hubweir.namespace.secret import Secret
from hubweir.testing.server_process import ServerProcess
from tests.conformance.conftest import HOST
from tests.conformance.ways import server_process

pytestmark = [pytest.mark.conformance]

LOOKS = 12  # connections, so that each of three processes is met


@pytest.fixture(params=[1, 3], ids=["one process", "three processes"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ServerProcess]:
    with server_process(tmp_path / "data", request.param, host=HOST) as process:
        yield process


def root(server: ServerProcess) -> ConnectionString:
    return ConnectionString.parse(server.connection_string())


def own(server: ServerProcess, key: str) -> ConnectionString:
    return replace(root(server), key=Secret(key))


def test_every_process_knows_a_namespace_when_its_making_is_answered(server: ServerProcess) -> None:
    admin = Administration(root(server))
    for number in range(3):
        made = admin.create_namespace(f"made{number}")
        there = own(server, made["key"])
        Administration(there).create(EntityType.QUEUE, "orders", {})
        for _ in range(LOOKS):
            assert Administration(there).namespace().members["Name"] == made["name"]
        with ServiceBusClient.from_connection_string(there.format()) as client:
            with client.get_queue_sender("orders") as sender:
                sender.send_messages(ServiceBusMessage(made["name"]))
            with client.get_queue_receiver("orders", max_wait_time=10) as receiver:
                (message,) = receiver.receive_messages(max_message_count=1)
                assert str(message) == made["name"]
                receiver.complete_message(message)
    admin.delete_namespace("made1")
    for _ in range(LOOKS):
        assert [each["name"] for each in admin.namespaces()] == ["hubweir", "made0", "made2"]
    with pytest.raises(ServiceError, match="InvalidSignature"):
        Administration(own(server, "nobody's key")).namespace()


def test_a_kill_loses_no_namespace_that_was_answered_and_brings_none_back(server: ServerProcess) -> None:
    admin = Administration(root(server))
    kept, gone = admin.create_namespace("kept"), admin.create_namespace("gone")
    Administration(own(server, kept["key"])).create(EntityType.QUEUE, "orders", {})
    admin.delete_namespace("gone")
    server.kill_supervisor()
    server.start()
    assert [each["name"] for each in admin.namespaces()] == ["hubweir", "kept"]
    queues = Administration(own(server, kept["key"])).list(EntityType.QUEUE)
    assert [each.name for each in queues] == ["orders"]
    with pytest.raises(ServiceError, match="InvalidSignature"):
        Administration(own(server, gone["key"])).namespace()
    # What is made next reaches processes that lived on, and those that were started again.
    again = made_when_the_keeper_is_back(admin, "gone")
    for _ in range(LOOKS):
        assert Administration(own(server, again["key"])).namespace().members["Name"] == "gone"


def made_when_the_keeper_is_back(admin: Administration, name: str) -> dict[str, Any]:
    """Processes that lived on connect to a new keeper in a moment; until then nothing is made, which they say."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return admin.create_namespace(name)
        except ServiceError as refusal:
            assert "The keeper of the catalog is away: nothing was changed" in refusal.text
            assert time.monotonic() < deadline
            time.sleep(0.05)
