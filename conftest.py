"""Two measures for the long tests: a twentieth of the way by default, all of it with --all.

A test that repeats something takes the fixture measure and asks it how often: measure(200) is 10 kills, or 200.
One that draws takes its seeds from first_seed on.
A test marked slow runs with --all only. The limit of time of each test is five times as long there.
How tests are spread over workers (-n NUMBER) stands in tests/workers.
No test is timed, so hypothesis has no deadline: a machine that is busy is no fault of what is tested. It tries a
quarter of its examples without --all, but for a test that names a number.
A test that plans faults of a disk in memory and meets none of them fails: tests/planned_faults.py.
So does one that leaves a file of such a disk open: tests/closed_files.py.
A test marked own_interpreter shares its process with no other test: tests/own_interpreter.py.
Collections of garbage pass over the tests that were collected: tests/frozen_items.py.
Services are forked from a process that has imported hubweir, but for --all: tests/fork_server.
"""

import os
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest_plugins = [
    "hubweir.testing.pytest_plugin",
    "tests.workers.plugin",
    "tests.conformance.results",
    "tests.planned_faults",
    "tests.closed_files",
    "tests.own_interpreter",
    "tests.frozen_items",
    "tests.fork_server.plugin",
]

SHORT_SHARE = 20  # the default run does one in so many
WHOLE_LIMITS = 5  # with --all a test may take so many times as long: most of what takes long there are its repetitions
# Where a test of hypothesis does not say itself how many it tries.
settings.register_profile("short", deadline=None, max_examples=25)
settings.register_profile("whole", deadline=None)
settings.load_profile("short")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="every test at full length (hours)")


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("whole" if config.getoption("--all") else "short")


@pytest.fixture(scope="session", autouse=True)
def generator_of_hypothesis() -> None:
    """A draw before any service freezes objects: at its first one, hypothesis asks the collector who knows its
    generator, and warns when nobody does; the collector does not look at what is frozen."""
    given(st.none())(lambda _: None)()


@pytest.fixture(scope="session")
def measure(request: pytest.FixtureRequest) -> Callable[[int], int]:
    """Return how many of count repetitions this run does: all, or a twentieth and at least one."""
    whole: bool = request.config.getoption("--all")
    return lambda count: count if whole else max(1, count // SHORT_SHARE)


@pytest.fixture(scope="session")
def first_seed() -> int:
    """Where seeds start: fresh ones in every run, or at HUBWEIR_FIRST_SEED to play a failure again."""
    given = os.environ.get("HUBWEIR_FIRST_SEED")
    return int(given) if given else int.from_bytes(os.urandom(4), "big")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--all"):
        usual_s = float(config.getini("timeout"))
        for item in items if config.getoption("timeout") is None else ():
            own = item.get_closest_marker("timeout")
            limit_s = WHOLE_LIMITS * (own.args[0] if own is not None else usual_s)
            item.add_marker(pytest.mark.timeout(limit_s), append=False)
        return
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.skip(reason="slow: runs with --all"))
