"""The official Go client, unmodified: every check of go/*.go is a test."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conformance.foreign.checks import CHECKS, LIMIT_S, WIRE_ONLY, parameters_of
from tests.conformance.foreign.program_run import ProgramRun
from tests.conformance.foreign.toolchain import Program

PROGRAM = Program(
    name="go",
    tools=("go",),
    pins=("go.mod", "go.sum"),
    sources=("main.go", "events.go", "connecting.go", "sending.go", "receiving.go", "errors.go", "soak.go"),
    fetch=("go", "mod", "download"),
    build=("go", "build", "-o", "checks", "."),
    run=("./checks",),
    soak=("./checks", "soak"),
    # -modcacherw: a cache that can be deleted like any folder.
    environment={"GOMODCACHE": "{folder}/modules", "GOFLAGS": "-modcacherw -mod=readonly", "GOTOOLCHAIN": "local"},
)
# What the client does not offer: it does not track the last event, has no idempotent producer, and leaves the
# opening of WebSockets to the application.
ABSENT = {"last_enqueued_event_is_tracked", "idempotent_producer_sends_once", "connects_over_websocket"}


@pytest.mark.timeout(LIMIT_S)
@pytest.mark.parametrize("name", parameters_of("azeventhubs, Go", CHECKS.keys() - WIRE_ONLY - ABSENT))
def test_azeventhubs_for_go(name: str, ran: Callable[[Program], ProgramRun]) -> None:
    ran(PROGRAM).judge(name)
