"""The profile and the limits of conftest.py hold in whatever process runs tests."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

ROOT = Path(__file__).parents[2]
USUAL_S, OWN_S = 100.0, 7.0


class Asked:
    """Stands for the configuration of a run with --all."""

    def __init__(self, timeout: float | None = None) -> None:
        self._options = {"--all": True, "timeout": timeout}

    def getoption(self, name: str) -> object:
        return self._options[name]

    def getini(self, name: str) -> str:
        return {"timeout": str(USUAL_S)}[name]


def limit_of(request: pytest.FixtureRequest, asked: Asked, *markers: pytest.MarkDecorator) -> Any:
    """The limit of a test with these markers, in seconds; None: it has the usual one."""
    test = pytest.Function.from_parent(request.node.parent, name="test_no_property_is_timed")
    for marker in markers:
        test.add_marker(marker)
    conftest: Any = request.config.pluginmanager.get_plugin(str(ROOT / "conftest.py"))
    conftest.pytest_collection_modifyitems(asked, [test])
    found = test.get_closest_marker("timeout")
    return None if found is None else found.args[0]


def test_no_property_is_timed() -> None:
    assert settings().deadline is None
    assert settings(max_examples=2).deadline is None


def test_with_all_each_test_may_take_five_times_as_long(request: pytest.FixtureRequest) -> None:
    assert limit_of(request, Asked()) == 5 * USUAL_S
    assert limit_of(request, Asked(), pytest.mark.timeout(OWN_S)) == 5 * OWN_S


def test_a_limit_that_the_command_line_gives_stays(request: pytest.FixtureRequest) -> None:
    assert limit_of(request, Asked(timeout=3.0)) is None
