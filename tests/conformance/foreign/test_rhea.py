"""rhea, an AMQP 1.0 library that knows nothing of event hubs: every check of rhea/main.mjs is a test."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conformance.foreign.checks import CHECKS, LIMIT_S, parameters_of
from tests.conformance.foreign.program_run import ProgramRun
from tests.conformance.foreign.toolchain import Program

PROGRAM = Program(
    name="rhea",
    tools=("node", "npm"),
    pins=("package.json", "package-lock.json"),
    sources=("main.mjs", "amqp.mjs", "soak.mjs", "../javascript/checks.mjs", "../javascript/soaking.mjs"),
    fetch=("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"),
    run=("node", "main.mjs"),
    soak=("node", "soak.mjs"),
)
# What it shows no better than the clients that are made for it, or what is no matter of the protocol.
ABSENT = {
    "connects_over_websocket",
    "shared_access_signature_instead_of_a_key",
    "sends_to_the_partition_it_names",
    "quarter_mebibyte_event_arrives",
    "without_key_every_partition_is_used",
    "single_and_batch_of_a_key_share_a_partition",
    "receives_beyond_the_first_credit",
    "higher_owner_level_takes_over",
    "lower_owner_level_is_refused",
    "last_enqueued_event_is_tracked",
    "idempotent_producer_sends_once",
}


@pytest.mark.timeout(LIMIT_S)
@pytest.mark.parametrize("name", parameters_of("rhea, JavaScript", CHECKS.keys() - ABSENT))
def test_rhea(name: str, ran: Callable[[Program], ProgramRun]) -> None:
    ran(PROGRAM).judge(name)
