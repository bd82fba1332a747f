"""Collections of garbage pass over the tests themselves, which live as long as their process.

A worker holds all tests that it has collected and their modules: 20,000 tests, some million objects, half a second of
a full collection. A service thaws everything when it ends (GarbageCollector.stop), and hundreds of tests start one in
their own process. So what is there before the first test is frozen, and the collector of such a service thaws nothing
and freezes nothing: its full collection looks at what came since the file began. The collection behind each file does
so, too; it frees what the file's tests have lost, and freezes what stays. Broker processes and servers of their own
have no part in this. A test of the collector itself asks for `interpreters_own_collections` and has it as a new process
has.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Generator, Iterator
from typing import Any

import pytest

from hubweir.drivers import garbage_collector


class _GcOfServices:
    """The module gc, as a service's collector sees it here."""

    def __getattr__(self, name: str) -> Any:
        return getattr(gc, name)

    def freeze(self) -> None:
        """Not what a service has made: what is lost of it is to be found behind the file."""

    def unfreeze(self) -> None:
        """Not the tests."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Nothing of what is collected goes, so nothing is to be looked for in it meanwhile."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


class Frozen:
    """One object that is frozen with the tests. It is looked for where thawed ones are: a count of what is frozen walks
    over all of it, which takes a tenth of a second to a third, a thousand times."""


@pytest.fixture(scope="session", autouse=True)
def frozen_items(generator_of_hypothesis: None) -> Iterator[Frozen]:
    """One object that is frozen, behind the first draw of hypothesis, for which the collector finds the generator."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(garbage_collector, "gc", _GcOfServices())
        one = Frozen()
        gc.freeze()
        yield one


@pytest.fixture(autouse=True, scope="module")
def what_a_file_has_lost(frozen_items: Frozen) -> Iterator[None]:
    """It is freed behind its file: a service in this process collects seldom, so it would fill the memory."""
    yield
    try:
        check_frozen(frozen_items)
    finally:
        free_what_is_lost()


def check_frozen(one: Frozen) -> None:
    """Fail where a file has thawed what was frozen before it: a service that a test starts in this process looks at
    all tests then. Asked before what stays is frozen, which hides it.
    """
    if any(each is one for each in gc.get_objects()):
        pytest.fail("a test of this file calls gc.unfreeze(): it takes the mark own_interpreter, or freezes again")


def free_what_is_lost() -> None:
    """Free what knows itself in a circle, without the warnings of sockets that official clients forget in circles:
    another file's test would be blamed for them. What stays is frozen: it is some hundred objects a file, and what
    threads of simulated worlds hold that wait for a turn that never comes.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
    gc.freeze()
