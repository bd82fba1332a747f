"""The official JavaScript client of queues at services of two kinds more: one whose disk fails for a moment, so that it
sends again by itself, and one on the standard port."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace

import pytest
from azure.servicebus import ServiceBusClient

from hubweir.testing.running_namespace import running_namespace
from tests.conformance.conftest import HOST, Serve
from tests.conformance.foreign.checks import LIMIT_S
from tests.conformance.foreign.test_javascript_queues import PROGRAM
from tests.conformance.foreign.toolchain import NotRun, prepare
from tests.conformance.servicebus_python import is_empty, receive_one
from tests.conformance.troubled_disk import busy_until_told, troubled

RUN_S = 60
PATIENT = replace(PROGRAM, sources=(*PROGRAM.sources, "patient.mjs"), run=("node", "patient.mjs"))
pytestmark = [
    pytest.mark.conformance,
    pytest.mark.client("@azure/service-bus, JavaScript"),
    pytest.mark.timeout(LIMIT_S),
]


def send_one(text: str) -> None:
    """Let the program send one message to the queue `orders`."""
    try:
        prepare(PATIENT, lambda line: None)
    except NotRun as error:
        pytest.skip(f"NOT RUN: {error}")
    environment = PATIENT.environ(dict.fromkeys(("HUBWEIR_PLAIN", "HUBWEIR_TLS", "HUBWEIR_WRONG_KEY"), text))
    done = subprocess.run(
        PATIENT.run, cwd=PATIENT.folder, env=environment, capture_output=True, text=True, timeout=RUN_S
    )
    said = json.loads(done.stdout)
    assert (done.returncode, said["ok"]) == (0, True), said["detail"]


def is_there_once(text: str) -> bool:
    with ServiceBusClient.from_connection_string(text) as reader, reader.get_queue_receiver("orders") as receiver:
        return "patient" in str(receive_one(receiver)) and is_empty(receiver)


@pytest.mark.sb(157)
@pytest.mark.feature("errors")
def test_a_send_that_is_told_to_wait_is_sent_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The service runs in this process, which the client of another does not share: so its disk can fail when asked."""
    with running_namespace() as namespace, troubled(monkeypatch) as disk:
        namespace.create_queue("orders")
        text = namespace.connection_string()
        with busy_until_told(namespace, disk, caplog):
            send_one(text)
        assert is_there_once(text)


@pytest.mark.sb(5)
@pytest.mark.feature("connect")
def test_without_a_port_in_its_string_the_client_uses_5672(serve: Serve) -> None:
    with serve(host=(HOST,), port=(5672,)) as namespace:
        namespace.create_queue("orders")
        text = namespace.connection_string().replace(":5672", "")
        assert f"Endpoint=sb://{HOST};" in text
        send_one(text)
        assert is_there_once(text)
