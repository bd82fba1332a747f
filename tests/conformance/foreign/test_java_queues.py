"""The official Java client of queues, unmodified: every check of java-queues/*.java is a test."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conformance.foreign.checks import LIMIT_S, parameters_of
from tests.conformance.foreign.program_run import ProgramRun
from tests.conformance.foreign.queue_checks import CHECKS
from tests.conformance.foreign.toolchain import HERE, Program

SOURCES = tuple(sorted(path.name for path in (HERE / "java-queues").glob("*.java")))
PROGRAM = Program(
    name="java-queues",
    tools=("java", "javac", "keytool", "mvn"),
    pins=("pom.xml",),
    sources=(*SOURCES, "../java/Checks.java", "../java/run.sh"),
    fetch=("mvn", "-q", "-B", "-Dmaven.repo.local=repository", "dependency:copy-dependencies"),
    build=("javac", "-encoding", "UTF-8", "-cp", "libraries/*", "-d", "classes", "Checks.java", *SOURCES),
    run=("sh", "run.sh"),
    uses="queues",
)
# What the client does not offer, or what it wraps in errors of its own without a reason.
ABSENT = {
    "settles_through_another_client",
    "unknown_lock_token_is_not_retried",
    "wrong_kind_of_receiver_is_refused",
}


@pytest.mark.timeout(LIMIT_S)
@pytest.mark.parametrize("name", parameters_of("azure-messaging-servicebus, Java", CHECKS.keys() - ABSENT, CHECKS))
def test_azure_messaging_servicebus_for_java(name: str, ran: Callable[[Program], ProgramRun]) -> None:
    ran(PROGRAM).judge(name)
