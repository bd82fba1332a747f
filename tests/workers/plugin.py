"""The hooks of pytest and pytest-xdist that make -n NUMBER run by groups.py, have each worker collect what it may be
given, compile tests once, and show all notices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.workers.compiled import compile_share
from tests.workers.groups import computes, group_of, is_for_waiting, number_of
from tests.workers.notices import hand_over, show, take_over

ONLY_WAITING = "hubweir_only_waiting"  # in what the controller tells a worker


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from tests.workers.scheduling import GroupScheduling

    return GroupScheduling(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker for groups that wait to look for no test that computes: it is given few of the tests, and to find
    all others takes ten seconds of a processor. In the place of a dead worker it may be needed for any, and a run of
    chosen paths is short."""
    name, workers = node.gateway.id, node.workerinput["workercount"]
    everything = node.config.args_source is pytest.Config.ArgsSource.TESTPATHS
    node.workerinput[ONLY_WAITING] = everything and number_of(name) < workers and is_for_waiting(name, workers)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if not getattr(config, "workerinput", {}).get(ONLY_WAITING) or collection_path.is_dir():
        return None
    return computes(group_of(collection_path.relative_to(config.rootpath).as_posix())) or None


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
