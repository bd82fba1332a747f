"""The official JavaScript client, unmodified: every check of javascript/main.mjs is a test."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conformance.foreign.checks import CHECKS, LIMIT_S, WIRE_ONLY, parameters_of
from tests.conformance.foreign.program_run import ProgramRun
from tests.conformance.foreign.toolchain import Program

PROGRAM = Program(
    name="javascript",
    tools=("node", "npm"),
    pins=("package.json", "package-lock.json"),
    sources=("checks.mjs", "hub.mjs", "main.mjs", "soaking.mjs", "soak.mjs"),
    fetch=("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"),
    run=("node", "main.mjs"),
    soak=("node", "soak.mjs"),
)


@pytest.mark.timeout(LIMIT_S)
@pytest.mark.parametrize("name", parameters_of("@azure/event-hubs, JavaScript", CHECKS.keys() - WIRE_ONLY))
def test_azure_event_hubs_for_javascript(name: str, ran: Callable[[Program], ProgramRun]) -> None:
    ran(PROGRAM).judge(name)
