"""A test fails that leaves a file of a disk in memory open which nobody can use any more: a descriptor has leaked.

That is told at the end of the test, for every disk that was made for it, fixtures included. What may stay open says
MemoryFiles.left_open. A control arm is not held to it: a mistake is planted there.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakSet

import pytest

from hubweir.testing.memory_files import MemoryFiles

CONTROL_ARMS = "test_control_"
_made: WeakSet[MemoryFiles] = WeakSet()  # since the last look
_make = MemoryFiles.__init__


def _noted(self: MemoryFiles, *arguments: Any, **settings: Any) -> None:
    _make(self, *arguments, **settings)
    _made.add(self)


def pytest_configure() -> None:
    MemoryFiles.__init__ = _noted  # type: ignore[method-assign]


def pytest_unconfigure() -> None:
    MemoryFiles.__init__ = _make  # type: ignore[method-assign]


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Behind the test's own fixtures."""
    left = sorted({path for files in _made for path in files.left_open()})
    _made.clear()
    assert not left or item.name.startswith(CONTROL_ARMS), f"{item.name} leaves files open: {', '.join(left)}"
