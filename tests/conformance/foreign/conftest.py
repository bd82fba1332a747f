"""One run a program and session: its checks are tests, its server and its waits are shared."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conformance.foreign.program_run import ProgramRun, run_program
from tests.conformance.foreign.toolchain import Program


@pytest.fixture(scope="session")
def ran(request: pytest.FixtureRequest, broker_count: int) -> Callable[[Program], ProgramRun]:
    """Run a program the first time it is asked for, and keep what it said. It does the checks that this session has."""
    runs: dict[str, ProgramRun] = {}
    reporter = request.config.pluginmanager.get_plugin("terminalreporter")

    def tell(line: str) -> None:
        if reporter is not None:
            reporter.ensure_newline()
            reporter.write_line(line)

    def once(program: Program) -> ProgramRun:
        if program.name not in runs:
            runs[program.name] = run_program(
                program, tell, broker_count, _wanted(request.session, program, broker_count)
            )
        return runs[program.name]

    return once


def _wanted(session: pytest.Session, program: Program, broker_count: int) -> set[str]:
    """The names of the checks of a program that are tests of this session, on so many broker processes."""
    items = (item for item in session.items if isinstance(item, pytest.Function) and hasattr(item, "callspec"))
    params = (item.callspec.params for item in items if getattr(item.module, "PROGRAM", None) is program)
    return {each["name"] for each in params if "name" in each and each["broker_count"] == broker_count}
