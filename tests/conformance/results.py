"""What the conformance tests showed, and the page of it. A plugin of the top folder: workers run the tests, and the
page is written where all their results come together.

`--write-table` writes docs/compatibility.md from this run, if it was all of this folder and no worker was lost; with
`--brokers N` its section about so many broker processes, and nothing else of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.process_table import sections_of, with_section
from tests.conformance.table import SERVICES, Result, check_cell, page
from tests.conformance.ways import given_brokers
from tests.workers.notices import notice

FOLDER = Path(__file__).resolve().parent
_INSIDE = f"{FOLDER}{os.sep}"
PAGE = FOLDER.parents[1] / "docs/compatibility.md"
NOT_RUN = "clients that were NOT RUN, or not in all of their tests"
PROPERTY = "conformance"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-table", action="store_true", help="write docs/compatibility.md from this run")
    parser.addoption("--brokers", type=int, default=1, help="conformance tests on so many broker processes alone")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Where the test runs: put into its report what the table has to know."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]  # pluggy's own type
    if _is_of_this_folder(item) and (report.when == "call" or (report.when == "setup" and not report.passed)):
        report.user_properties.append((PROPERTY, _known_of(item)))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test with a client whose cell is in no table is told when it is collected, not at the end of a long run."""
    for item in items:
        if _is_of_this_folder(item):
            try:
                check_cell(_result_of(_known_of(item), "passed"))
            except ValueError as error:
                raise pytest.UsageError(f"{item.nodeid}: {error}") from None


def _is_of_this_folder(item: pytest.Item) -> bool:
    """Asked of each test three times and more, so by text: walking the parents of a path takes 20 times as long."""
    return str(item.path).startswith(_INSIDE)


def _known_of(item: pytest.Item) -> list[Any]:
    """What the table has to know of a test: its name, client, feature, and its checks by the marks of services."""
    numbers: dict[str, list[int]] = {}
    for service in SERVICES:
        for mark in item.iter_markers(service.mark):
            numbers.setdefault(service.mark, []).extend(mark.args)
    client, feature = item.get_closest_marker("client"), item.get_closest_marker("feature")
    return [item.name, client.args[0] if client else "", feature.args[0] if feature else "", numbers]


def _result_of(known: list[Any], outcome: str) -> Result:
    test, client, feature, numbers = known
    return Result(test, client, feature, outcome, {mark: tuple(those) for mark, those in numbers.items()})


@pytest.hookimpl
def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # a worker ends like a run of its own, and knows a part
        config.pluginmanager.register(Gathering(config), "conformance results")


class Gathering:
    """The results of a run, in the process that shows them: all workers report to it."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self.results: list[Result] = []
        self._lost_a_worker = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, known in report.user_properties:
            if name == PROPERTY:
                self.results.append(_result_of(known, report.outcome))  # type: ignore[arg-type]
                if report.skipped and self.results[-1].client:
                    notice(self._config, NOT_RUN, self.results[-1].client)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object | None) -> None:
        self._lost_a_worker = self._lost_a_worker or error is not None

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """The page, when it was asked for and this was all of it; else why not."""
        if self._config.getoption("--write-table"):
            part = self._part_of(terminalreporter)
            if not part:
                PAGE.write_text(self._page())
            terminalreporter.write_line(f"{PAGE.name} is NOT written: {part}" if part else f"{PAGE.name} is written")

    def _page(self) -> str:
        brokers, before = given_brokers(self._config), PAGE.read_text() if PAGE.exists() else page([])
        if brokers > 1:
            return with_section(before, brokers, self.results)
        made = page(self.results)
        return f"{made}\n{kept}" if (kept := sections_of(before)) else made

    def _part_of(self, reporter: pytest.TerminalReporter) -> str:
        """Why this run is not the whole of the folder; empty when it is."""
        for option in ("keyword", "markexpr", "deselect", "lf", "collectonly"):
            if self._config.getoption(option, default=None):
                return f"only a part was asked for ({option})"
        arguments = self._config.args
        asked = [(self._config.invocation_params.dir / each.split("::")[0]).resolve() for each in arguments]
        if not any(path in (FOLDER, *FOLDER.parents) for path in asked) or any("::" in each for each in arguments):
            return "only a part of the folder was asked for"
        if self._lost_a_worker:
            return "a worker was lost, and its results with it"
        session = reporter._session
        if session is None or session.shouldstop or session.shouldfail or reporter._keyboardinterrupt_memo is not None:
            return "the run was stopped"
        return ""
