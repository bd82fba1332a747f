"""The official clients' looks come soon in a run without --all, and nothing else of them is another."""

from __future__ import annotations

import asyncio
import importlib
from types import SimpleNamespace
from typing import Any

import azure.eventhub.aio  # as when tests are collected: waits are made short behind that
import azure.servicebus.aio  # noqa: F401
import pytest
from azure.servicebus._pyamqp.client import AMQPClient

from tests.impatient_clients import AS_MADE, LOOK_S, WAITING, ShortSleeps, are_as_made, impatient, waiting_methods

WAITS = """
def makes(start):
    def waits(looks, seconds=1, *, more=2):
        for look in range(looks):
            time.sleep(seconds)
        return start + more, time.time()
    return waits
"""


def waiting(slept: list[float]) -> Any:
    """A function with a closure and defaults, in a module whose time notes what is slept."""
    module: dict[str, Any] = {"time": SimpleNamespace(sleep=slept.append, time=lambda: 7.0)}
    exec(WAITS, module)
    return module["makes"](40)


def test_sleeps_between_looks_are_short_and_all_else_is_the_same() -> None:
    slept: list[float] = []
    waits = waiting(slept)
    assert impatient(waits)(3) == (42, 7.0)
    assert impatient(waits)(1, LOOK_S / 2, more=0) == (40, 7.0)
    assert slept == [LOOK_S, LOOK_S, LOOK_S, LOOK_S / 2]
    slept.clear()
    assert waits(2) == (42, 7.0)
    assert slept == [1, 1]


def test_a_coroutine_sleeps_as_shortly_and_returns_what_it_was_given() -> None:
    async def looks() -> Any:
        return await asyncio.sleep(3600, result="looked")

    assert asyncio.run(impatient(looks)()) == "looked"


def test_a_method_that_does_not_sleep_is_told() -> None:
    with pytest.raises(AssertionError, match="does not sleep"):
        impatient(lambda: 1)


def test_every_method_that_waits_is_there_and_waits_as_this_run_says(request: pytest.FixtureRequest) -> None:
    """Those of modules that another file's tests import, too, when these are collected."""
    for package, modules in WAITING.items():
        for module in modules:
            importlib.import_module(f"{package}.{module}")
    methods = [getattr(owner, name) for owner, name in waiting_methods()]
    assert len(methods) == 2 * 10 + 5 + 4
    for method in methods:
        impatient(method)
    if are_as_made(request.config, request.path):
        assert not any(isinstance(each, ShortSleeps) for method in methods for each in method.__globals__.values())


def test_a_client_that_closes_is_not_kept_waiting(request: pytest.FixtureRequest) -> None:
    is_short = isinstance(AMQPClient._keep_alive.__globals__["time"], ShortSleeps)
    assert is_short is not are_as_made(request.config, request.path)


def test_the_clients_of_crash_tests_wait_as_they_were_made(request: pytest.FixtureRequest) -> None:
    assert are_as_made(request.config, AS_MADE / "test_kill.py")
    assert are_as_made(request.config, AS_MADE.parent / "conformance/test_ways.py") is bool(
        request.config.getoption("--all") or request.config.getoption("--write-table")
    )
