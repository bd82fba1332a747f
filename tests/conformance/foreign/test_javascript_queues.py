"""The official JavaScript client of queues and topics, unmodified: every check of javascript-queues/ is a test."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conformance.foreign.checks import LIMIT_S, parameters_of
from tests.conformance.foreign.program_run import ProgramRun
from tests.conformance.foreign.queue_checks import CHECKS, PARTITION_CHECKS
from tests.conformance.foreign.toolchain import Program
from tests.conformance.foreign.topic_checks import TOPIC_CHECKS

OFFERED = {**CHECKS, **PARTITION_CHECKS, **TOPIC_CHECKS}
# A token that it did not receive cannot be given to this client.
ABSENT = {"unknown_lock_token_is_not_retried"}
PROGRAM = Program(
    name="javascript-queues",
    tools=("node", "npm"),
    pins=("package.json", "package-lock.json"),
    sources=("main.mjs", "queues.mjs", "topics.mjs", "administration.mjs", "../javascript/checks.mjs"),
    fetch=("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"),
    run=("node", "main.mjs"),
    uses="queues",
)


@pytest.mark.timeout(LIMIT_S)
@pytest.mark.parametrize("name", parameters_of("@azure/service-bus, JavaScript", OFFERED.keys() - ABSENT, OFFERED))
def test_azure_service_bus_for_javascript(name: str, ran: Callable[[Program], ProgramRun]) -> None:
    ran(PROGRAM).judge(name)
