"""The official JavaScript client of queues at a service whose disk fails for a moment: it sends again by itself."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace

import pytest
from azure.servicebus import ServiceBusClient

from hubweir.testing.running_namespace import running_namespace
from tests.conformance.foreign.checks import LIMIT_S
from tests.conformance.foreign.test_javascript_queues import PROGRAM
from tests.conformance.foreign.toolchain import NotRun, prepare
from tests.conformance.servicebus_python import is_empty, receive_one
from tests.conformance.troubled_disk import busy_until_told, troubled

RUN_S = 60
PATIENT = replace(PROGRAM, sources=(*PROGRAM.sources, "patient.mjs"), run=("node", "patient.mjs"))


@pytest.mark.conformance
@pytest.mark.sb(157)
@pytest.mark.client("@azure/service-bus, JavaScript")
@pytest.mark.feature("errors")
@pytest.mark.timeout(LIMIT_S)
def test_a_send_that_is_told_to_wait_is_sent_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The service runs in this process, which the client of another does not share: so its disk can fail when asked."""
    try:
        prepare(PATIENT, lambda line: None)
    except NotRun as error:
        pytest.skip(f"NOT RUN: {error}")
    with running_namespace() as namespace, troubled(monkeypatch) as disk:
        namespace.create_queue("orders")
        text = namespace.connection_string()
        with busy_until_told(namespace, disk, caplog):
            environment = PATIENT.environ({"HUBWEIR_PLAIN": text, "HUBWEIR_TLS": text, "HUBWEIR_WRONG_KEY": text})
            done = subprocess.run(
                PATIENT.run, cwd=PATIENT.folder, env=environment, capture_output=True, text=True, timeout=RUN_S
            )
        said = json.loads(done.stdout)
        assert (done.returncode, said["ok"]) == (0, True), said["detail"]
        with ServiceBusClient.from_connection_string(text) as reader, reader.get_queue_receiver("orders") as receiver:
            assert "patient" in str(receive_one(receiver))
            assert is_empty(receiver)
