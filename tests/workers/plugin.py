"""The hooks of pytest and pytest-xdist that make -n NUMBER run by groups.py and show the notices of all workers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.workers.notices import hand_over, show, take_over


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from tests.workers.scheduling import GroupScheduling

    return GroupScheduling(config, log)


def pytest_sessionfinish(session: pytest.Session) -> None:
    hand_over(session.config)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object | None) -> None:
    """error: why a worker ended too early; then it has handed over nothing."""
    take_over(node.config, getattr(node, "workeroutput", None) or {})


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    show(config, terminalreporter)
