"""The hooks of pytest and pytest-xdist that make -n NUMBER run by groups.py, compile tests once, show all notices."""

from __future__ import annotations

from typing import Any

import pytest

from tests.workers.compiled import compile_share
from tests.workers.notices import hand_over, show, take_over


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from tests.workers.scheduling import GroupScheduling

    return GroupScheduling(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    compile_share(session.config)


def pytest_sessionfinish(session: pytest.Session) -> None:
    hand_over(session.config)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object | None) -> None:
    """error: why a worker ended too early; then it has handed over nothing."""
    take_over(node.config, getattr(node, "workeroutput", None) or {})


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    show(config, terminalreporter)
