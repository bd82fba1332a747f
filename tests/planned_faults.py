"""A test that plans faults of a disk in memory and meets none of them has not tried what it says: it fails.

The seeds and cases of one test function count together, at the end of their file: a single history may end before its
fault. One case alone is not held to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from hubweir.testing.memory_faults import Fault, Plan
from hubweir.testing.memory_files import MemoryFiles

_made: dict[str, list[Plan]] = {}  # function -> its plans
_cases: Counter[str] = Counter()  # function -> how many of its cases ran; nothing for one without cases


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Note what the test plans."""
    function = item.nodeid.partition("[")[0]
    _cases[function] += "[" in item.nodeid
    plan = MemoryFiles.plan

    def noted(self: MemoryFiles, fault: Fault, nth: int = 1, **how: Any) -> Plan:
        made = plan(self, fault, nth, **how)
        _made.setdefault(function, []).append(made)
        return made

    MemoryFiles.plan = noted  # type: ignore[method-assign]
    yield
    MemoryFiles.plan = plan  # type: ignore[method-assign]


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Behind the last test of a file: hold each function to its plans."""
    if nextitem is not None and nextitem.path == item.path:
        return
    missed = missed_by_all(_made, _cases)
    _made.clear()
    _cases.clear()
    assert not missed, f"faults were planned and none was met: {', '.join(missed)}"


def missed_by_all(made: dict[str, list[Plan]], cases: Counter[str]) -> list[str]:
    """The functions that met none of their plans, but for those of which one case ran alone."""
    met = {function for function, plans in made.items() if any(plan.fired for plan in plans)}
    return [function for function in made if function not in met and cases[function] != 1]
