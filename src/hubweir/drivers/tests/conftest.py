"""Every driver test runs on the loop of the standard library and, where it exists, on uvloop."""

import functools
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from hubweir.testing.event_loops import LOOPS, run_on


@pytest.fixture(params=sorted(LOOPS))
def run(request: pytest.FixtureRequest) -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """Run a coroutine on a fresh loop, 20 s at most; a callback that fails fails the test."""
    return functools.partial(run_on, request.param)
