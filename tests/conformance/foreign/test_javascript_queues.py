"""The official JavaScript client of queues, unmodified: every check of javascript-queues/main.mjs is a test."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conformance.foreign.checks import LIMIT_S, parameters_of
from tests.conformance.foreign.program_run import ProgramRun
from tests.conformance.foreign.queue_checks import CHECKS
from tests.conformance.foreign.toolchain import Program

# A token that it did not receive cannot be given to this client.
ABSENT = {"unknown_lock_token_is_not_retried"}
PROGRAM = Program(
    name="javascript-queues",
    tools=("node", "npm"),
    pins=("package.json", "package-lock.json"),
    sources=("main.mjs", "queues.mjs", "../javascript/checks.mjs"),
    fetch=("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"),
    run=("node", "main.mjs"),
    uses="queues",
)


@pytest.mark.timeout(LIMIT_S)
@pytest.mark.parametrize("name", parameters_of("@azure/service-bus, JavaScript", CHECKS.keys() - ABSENT, CHECKS))
def test_azure_service_bus_for_javascript(name: str, ran: Callable[[Program], ProgramRun]) -> None:
    ran(PROGRAM).judge(name)
