"""A service in the process of a test looks at no test when it starts; what is left in circles is found all the same."""

from __future__ import annotations

import gc
import sys
import weakref
from types import ModuleType

import pytest

from hubweir.drivers.garbage_collector import GarbageCollector
from tests.frozen_items import collect_everything, uses


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


def test_a_circle_that_was_frozen_is_freed_when_everything_is_collected() -> None:
    known = weakref.ref(Circle())
    gc.freeze()
    gc.collect()
    assert known() is not None
    collect_everything()
    assert known() is None and gc.get_freeze_count()


def test_who_uses_a_package_is_known_by_what_it_has_or_by_whom_it_has_it_from(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("azure.client", "helper", "first", "second", "other")
    client, helper, first, second, other = (ModuleType(name) for name in names)
    for module in (client, helper, first, second, other):
        monkeypatch.setitem(sys.modules, module.__name__, module)

    def made_in(module: ModuleType) -> type:
        return type("Made", (), {"__module__": module.__name__})

    first.Client = made_in(client)  # type: ignore[attr-defined]
    helper.client = client  # type: ignore[attr-defined]
    second.help = made_in(helper)  # type: ignore[attr-defined]
    other.Own = made_in(other)  # type: ignore[attr-defined]
    assert [uses(module, "azure.") for module in (first, helper, second, other)] == [True, True, True, False]
