"""Collections of garbage pass over the tests themselves, which live as long as their process.

A worker holds all tests that it has collected and their modules: 20,000 tests, some million objects, half a second of
a full collection. A service has everything collected once when it starts (GarbageCollector.collect_all), and hundreds
of tests start one in their own process. So what is there before the first test is frozen, and the collector of such a
service thaws nothing: what it froze itself stays frozen, too. Broker processes and servers of their own have no part in
this. A test of the collector itself asks for `interpreters_own_collections` and has it as a new process has. All is
thawed and looked at behind a file that uses official clients, which leave circles, and behind each thirtieth other.
"""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Iterator
from itertools import count
from types import ModuleType
from typing import Any

import pytest

from hubweir.drivers import garbage_collector

# Of those that use no official client.
FILES_A_COLLECTION = 30
_files = count(1)


class _Frost:
    """The module gc, as a service's collector sees it here."""

    def __getattr__(self, name: str) -> Any:
        return getattr(gc, name)

    def unfreeze(self) -> None:
        pass


@pytest.fixture(scope="session", autouse=True)
def frozen_items(generator_of_hypothesis: None) -> Iterator[None]:
    """Behind the first draw of hypothesis, which asks the collector who knows what."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(garbage_collector, "gc", _Frost())
        gc.freeze()
        yield


@pytest.fixture(autouse=True, scope="module")
def what_official_clients_leave(request: pytest.FixtureRequest) -> Iterator[None]:
    """Sockets that official clients forget in cycles are collected behind their own file, without their warnings.

    A service in this process collects seldom, so another file's test would be blamed for them. Behind some of the other
    files, too, or what services have frozen and tests have lost would fill the memory.
    """
    yield
    if uses(request.module, "azure.") or next(_files) % FILES_A_COLLECTION == 0:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            collect_everything()


def collect_everything() -> None:
    """Free what knows itself in a circle, frozen or not; then all is frozen again."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def uses(module: ModuleType, package: str) -> bool:
    """Whether a module has something of a package, or of a module that has."""
    near = [sys.modules[name] for name in _owners(module) if name in sys.modules]
    return any(name.startswith(package) for each in (module, *near) for name in _owners(each))


def _owners(module: ModuleType) -> set[str]:
    """The modules that what a module knows comes from."""
    return {str(getattr(each, "__module__", None) or getattr(each, "__name__", "")) for each in vars(module).values()}
