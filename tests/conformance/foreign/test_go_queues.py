"""The official Go client of queues and topics, unmodified: every check of go-queues/*.go is a test."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conformance.foreign.checks import LIMIT_S, parameters_of
from tests.conformance.foreign.program_run import ProgramRun
from tests.conformance.foreign.queue_checks import CHECKS, PARTITION_CHECKS
from tests.conformance.foreign.toolchain import Program
from tests.conformance.foreign.topic_checks import TOPIC_CHECKS

OFFERED = {**CHECKS, **PARTITION_CHECKS, **TOPIC_CHECKS}
PROGRAM = Program(
    name="go-queues",
    tools=("go",),
    pins=("go.mod", "go.sum"),
    sources=("main.go", "sending.go", "receiving.go", "sessions.go", "topics.go", "administration.go"),
    fetch=("go", "mod", "download"),
    build=("go", "build", "-o", "checks", "."),
    run=("./checks",),
    # -modcacherw: a cache that can be deleted like any folder.
    environment={"GOMODCACHE": "{folder}/modules", "GOFLAGS": "-modcacherw -mod=readonly", "GOTOOLCHAIN": "local"},
    uses="queues",
)
# The client leaves the opening of WebSockets to the application, and does not tell how large a batch may be.
# It changes rules over HTTPS alone, and cannot say how long it waits for a session. Nobody asked it yet to go on behind
# a restart.
ABSENT = {
    "connects_over_websocket",
    "batch_limit_is_a_quarter_mebibyte",
    "rules_come_and_go_over_amqp",
    "client_goes_on_behind_a_restart",
    "without_a_free_session_the_wait_is_a_timeout",
}


@pytest.mark.timeout(LIMIT_S)
@pytest.mark.parametrize("name", parameters_of("azservicebus, Go", OFFERED.keys() - ABSENT, OFFERED))
def test_azservicebus_for_go(name: str, ran: Callable[[Program], ProgramRun]) -> None:
    ran(PROGRAM).judge(name)
