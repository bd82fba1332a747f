"""The official Java client, unmodified: every check of java/*.java is a test."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conformance.foreign.checks import CHECKS, LIMIT_S, WIRE_ONLY, parameters_of
from tests.conformance.foreign.program_run import ProgramRun
from tests.conformance.foreign.toolchain import HERE, QUICK_JAVA, Program

SOURCES = tuple(sorted(path.name for path in (HERE / "java").glob("*.java")))
PROGRAM = Program(
    name="java",
    tools=("java", "javac", "keytool", "mvn"),
    pins=("pom.xml",),
    sources=(*SOURCES, "run.sh"),
    fetch=("mvn", "-q", "-B", "-Dmaven.repo.local=repository", "dependency:copy-dependencies"),
    build=("javac", "-encoding", "UTF-8", "-cp", "libraries/*", "-d", "classes", *SOURCES),
    run=("sh", "run.sh"),
    environment={"JAVA_TOOL_OPTIONS": QUICK_JAVA},
    soak=("sh", "run.sh", "soak"),
)
# What the client does not offer: an inclusive offset, and idempotent producers.
ABSENT = {"receives_at_offset", "idempotent_producer_sends_once"}


@pytest.mark.timeout(LIMIT_S)
@pytest.mark.parametrize("name", parameters_of("azure-messaging-eventhubs, Java", CHECKS.keys() - WIRE_ONLY - ABSENT))
def test_azure_messaging_eventhubs_for_java(name: str, ran: Callable[[Program], ProgramRun]) -> None:
    ran(PROGRAM).judge(name)
