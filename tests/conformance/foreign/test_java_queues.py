"""The official Java client of queues and topics, unmodified: every check of java-queues/*.java is a test."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conformance.foreign.checks import LIMIT_S, parameters_of
from tests.conformance.foreign.program_run import ProgramRun
from tests.conformance.foreign.queue_checks import CHECKS, PARTITION_CHECKS, TRANSACTION_CHECKS
from tests.conformance.foreign.toolchain import HERE, QUICK_JAVA, Program
from tests.conformance.foreign.topic_checks import TOPIC_CHECKS

OFFERED = {**CHECKS, **PARTITION_CHECKS, **TOPIC_CHECKS, **TRANSACTION_CHECKS}
SOURCES = tuple(sorted(path.name for path in (HERE / "java-queues").glob("*.java")))
PROGRAM = Program(
    name="java-queues",
    tools=("java", "javac", "keytool", "mvn"),
    pins=("pom.xml",),
    sources=(*SOURCES, "../java/Checks.java", "../java/run.sh"),
    fetch=("mvn", "-q", "-B", "-Dmaven.repo.local=repository", "dependency:copy-dependencies"),
    build=("javac", "-encoding", "UTF-8", "-cp", "libraries/*", "-d", "classes", "Checks.java", *SOURCES),
    run=("sh", "run.sh"),
    environment={"JAVA_TOOL_OPTIONS": QUICK_JAVA},
    uses="queues",
)
# What the client does not offer, what it wraps in errors of its own without a reason, or what nobody asked it yet.
ABSENT = {
    "client_goes_on_behind_a_restart",
    "without_a_free_session_the_wait_is_a_timeout",
    "settles_through_another_client",
    "unknown_lock_token_is_not_retried",
    "wrong_kind_of_receiver_is_refused",
    "queue_without_receives_is_disabled",
    "topic_cannot_be_received_from",
    # Not written: the program shows less of administration than those of JavaScript and Go.
    "counts_of_a_subscription_are_told",
    "rule_keeps_filter_action_and_parameters",
    "lists_come_in_pages_in_order",
}


@pytest.mark.timeout(LIMIT_S)
@pytest.mark.parametrize("name", parameters_of("azure-messaging-servicebus, Java", OFFERED.keys() - ABSENT, OFFERED))
def test_azure_messaging_servicebus_for_java(name: str, ran: Callable[[Program], ProgramRun]) -> None:
    ran(PROGRAM).judge(name)
