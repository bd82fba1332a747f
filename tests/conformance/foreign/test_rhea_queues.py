"""rhea on queues and topics, of which the library knows nothing: every check of rhea-queues/main.mjs is a test."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conformance.foreign.checks import LIMIT_S, parameters_of
from tests.conformance.foreign.program_run import ProgramRun
from tests.conformance.foreign.queue_checks import CHECKS, WIRE_CHECKS
from tests.conformance.foreign.toolchain import Program
from tests.conformance.foreign.topic_checks import TOPIC_CHECKS

PROGRAM = Program(
    name="rhea-queues",
    tools=("node", "npm"),
    pins=("package.json", "package-lock.json"),
    sources=("main.mjs", "queues.mjs", "../rhea/amqp.mjs", "../javascript/checks.mjs"),
    fetch=("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"),
    run=("node", "main.mjs"),
    uses="queues",
)
# What belongs to a client that is made for queues: how it waits, retries, fills a batch, copies a message.
ABSENT = {
    "connects_over_plain_tcp",
    "message_sent_again_is_a_new_one",
    "batch_limit_is_a_quarter_mebibyte",
    "empty_queue_returns_in_time",
    "unknown_lock_token_is_not_retried",
}
TOPICS = (
    "subscriptions_get_what_their_rules_let_through",
    "subscriptions_settle_apart",
    "topic_cannot_be_received_from",
)
OFFERED = {**CHECKS, **WIRE_CHECKS, **{name: TOPIC_CHECKS[name] for name in TOPICS}}


@pytest.mark.timeout(LIMIT_S)
@pytest.mark.parametrize("name", parameters_of("rhea, JavaScript", OFFERED.keys() - ABSENT, OFFERED))
def test_rhea_on_queues(name: str, ran: Callable[[Program], ProgramRun]) -> None:
    ran(PROGRAM).judge(name)
