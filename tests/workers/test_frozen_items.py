"""A service in the process of a test looks at no test when it starts; what is left in circles is found all the same."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest

from hubweir.drivers.garbage_collector import BEATS_PER_FREEZE, GarbageCollector
from tests.frozen_items import Frozen, check_frozen, free_what_is_lost, pytest_collection
from tests.own_interpreter import outcomes_apart

ROOT = Path(__file__).resolve().parents[2]
# A socket that is lost in a circle, while nothing is looked for by itself.
FILES = {
    "pytest.ini": """
[pytest]
filterwarnings = error
""",
    "conftest.py": """
import gc, pytest
pytest_plugins = ["tests.frozen_items"]

@pytest.fixture(scope="session")
def generator_of_hypothesis(): pass

@pytest.fixture(scope="session")
def lost():
    gc.disable()
    return []
""",
    "test_first.py": """
import socket, weakref

class Circle:
    def __init__(self): self.itself, self.socket = self, socket.socket()

def test_loses(lost): lost.append(weakref.ref(Circle()))
def test_comes_later(lost): assert lost[0]() is not None
""",
    "test_next.py": """
def test_of_the_next_file(lost): assert lost[0]() is None
""",
    "test_thaws.py": """
import gc
def test_thaws(): gc.unfreeze()
""",
    "test_thaws_not.py": """
import gc
def test_is_frozen(): assert gc.get_freeze_count()
""",
}


class Circle:
    def __init__(self) -> None:
        self.itself = self


def is_looked_at(thing: object) -> bool:
    return any(each is thing for each in gc.get_objects())


def test_a_services_collector_passes_over_the_tests_from_its_start_to_its_end(request: pytest.FixtureRequest) -> None:
    item, collector = request.session.items[0], GarbageCollector()
    assert not is_looked_at(item)
    collector.start()
    try:
        assert not is_looked_at(item)
        collector.collect_all()
        collector.beat()
        assert not is_looked_at(item)
    finally:
        collector.stop()
    assert not is_looked_at(item)


def test_control_a_thaw_has_collections_look_at_the_tests(request: pytest.FixtureRequest) -> None:
    gc.unfreeze()
    try:
        assert is_looked_at(request.session.items[0])
    finally:
        gc.freeze()


@pytest.mark.own_interpreter  # a collection of all tests of a worker that are thawed takes seconds
def test_a_file_that_thaws_the_tests_is_told_and_they_are_frozen_again(frozen_items: Frozen) -> None:
    check_frozen(frozen_items)
    gc.unfreeze()
    with pytest.raises(pytest.fail.Exception, match="unfreeze"):
        check_frozen(frozen_items)
    free_what_is_lost()
    check_frozen(frozen_items)


def test_a_services_collector_frees_what_is_lost_in_a_circle() -> None:
    collector = GarbageCollector()
    collector.start()
    try:
        known = weakref.ref(Circle())
        collector.collect_all()
        assert known() is None
    finally:
        collector.stop()


@pytest.mark.parametrize("is_served", [False, True])
def test_what_is_lost_in_a_circle_is_freed_behind_a_file_whether_a_service_ran_or_not(is_served: bool) -> None:
    collector = GarbageCollector()
    if is_served:
        collector.start()
    circle = Circle()
    known = weakref.ref(circle)
    if is_served:
        for _ in range(2 * BEATS_PER_FREEZE):
            collector.beat()
        collector.collect_all()
        collector.stop()
    gc.collect()
    del circle
    kept = Circle()
    free_what_is_lost()
    assert known() is None and not is_looked_at(kept)


def test_behind_a_file_what_it_has_lost_is_freed_without_blame_and_a_thaw_is_told(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    outcomes, output = outcomes_apart(ROOT, str(tmp_path))
    freed = {"test_loses": "passed", "test_comes_later": "passed", "test_of_the_next_file": "passed"}
    assert outcomes == {**freed, "test_thaws": "error", "test_is_frozen": "passed"}, output


def test_nothing_is_looked_for_while_tests_are_collected_and_all_is_again_behind_it() -> None:
    collection = pytest_collection()
    next(collection)
    try:
        assert not gc.isenabled()
    finally:
        with pytest.raises(StopIteration) as ended:
            collection.send("collected")
    assert gc.isenabled() and ended.value.value == "collected"


def test_all_is_looked_for_again_behind_a_collection_that_fails() -> None:
    collection = pytest_collection()
    next(collection)
    with pytest.raises(ImportError):
        collection.throw(ImportError())
    assert gc.isenabled()
