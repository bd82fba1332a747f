"""The collector's thresholds and freezing: how much a full collection looks at, and that nothing is lost by it."""

from __future__ import annotations

import gc
import weakref
from collections import deque
from collections.abc import Callable, Iterator

import pytest

from hubweir.drivers.garbage_collector import BEATS_PER_FREEZE, MUCH_MS, THRESHOLDS, GarbageCollector

OBJECTS = 100_000


class Thing:
    def __init__(self, known: object = None) -> None:
        self.known = known


pytestmark = [pytest.mark.own_interpreter, pytest.mark.usefixtures("interpreters_own_collections")]


@pytest.fixture
def collector() -> Iterator[GarbageCollector]:
    made = GarbageCollector()
    made.start()
    try:
        yield made
    finally:
        made.stop()


def looked_at_while_things_come() -> dict[int, list[int]]:
    """How many objects each collection looks at, by its generation, while OBJECTS come that stay."""
    seen: dict[int, list[int]] = {0: [], 1: [], 2: []}

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            oldest = info["generation"]
            seen[oldest].append(sum(len(gc.get_objects(generation=age)) for age in range(oldest + 1)))

    gc.callbacks.append(note)
    try:
        things = [Thing([]) for _ in range(OBJECTS)]
    finally:
        gc.callbacks.remove(note)
    assert len(things) == OBJECTS
    return seen


def test_no_collection_looks_at_more_than_what_came_since_the_one_before(collector: GarbageCollector) -> None:
    seen = looked_at_while_things_come()
    young, older, _ = THRESHOLDS
    assert len(seen[1]) > 10 and max(seen[0]) < 3 * young and max(seen[1]) < 3 * young * older and not seen[2]


def test_control_without_it_full_collections_look_at_everything() -> None:
    gc.freeze()  # a full one waits until a quarter is new, of what other tests have left, too
    gc.collect()
    assert gc.get_threshold() == (700, 10, 10) and max(looked_at_while_things_come()[2]) > OBJECTS


def most_to_look_at_while_things_come_and_go(beat: Callable[[], None]) -> int:
    """The most that a collection would have had to look at. As many go as come, so the interpreter counts none."""
    things = deque(Thing([]) for _ in range(OBJECTS // 2))
    gc.collect()
    most = 0
    for number in range(OBJECTS):
        things.append(Thing([]))
        things.popleft()
        if not number % 1000:
            most = max(most, len(gc.get_objects()))
            beat()
    return most


def test_beats_bound_what_comes_and_goes(collector: GarbageCollector) -> None:
    assert most_to_look_at_while_things_come_and_go(collector.beat) < 3 * BEATS_PER_FREEZE * 1000


def test_control_without_beats_all_that_is_under_way_is_looked_at(collector: GarbageCollector) -> None:
    assert most_to_look_at_while_things_come_and_go(lambda: None) > OBJECTS // 2


def test_one_beat_of_a_few_looks_at_all_that_is_not_frozen_and_freezes_it(collector: GarbageCollector) -> None:
    generations: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            generations.append(info["generation"])

    thing = Thing()
    thing.known = thing
    known = weakref.ref(thing)
    del thing
    gc.callbacks.append(note)
    try:
        for _ in range(2 * BEATS_PER_FREEZE):
            collector.beat()
    finally:
        gc.callbacks.remove(note)
    assert generations == 2 * ([0] * (BEATS_PER_FREEZE - 1) + [1]) and known() is None


@pytest.mark.parametrize(("took_ms", "is_frozen"), [(MUCH_MS - 0.1, False), (MUCH_MS + 0.1, True)])
def test_what_survived_a_long_young_collection_is_not_looked_at_again(took_ms: float, is_frozen: bool) -> None:
    """Many sends that wait for a slow disk: an older collection would look at those of four beats."""
    times = iter([0.0, 0.0])  # of collect_all at the start
    collector = GarbageCollector(clock=lambda: next(times))
    collector.start()
    gc.disable()
    try:
        things = [Thing([]) for _ in range(1000)]
        lost = Thing()
        lost.known = lost
        gone = weakref.ref(lost)
        del lost
        times = iter([0.0, took_ms / 1000])
        gc.collect(0)
        assert gone() is None, "it is looked at before it is frozen"
        assert len(things) == 1000 and (len(gc.get_objects()) < 1000) is is_frozen
    finally:
        gc.enable()
        times = iter([0.0] * 100)
        collector.stop()


def test_beats_do_nothing_while_collections_are_off(collector: GarbageCollector) -> None:
    gc.disable()
    try:
        thing = Thing()
        thing.known = thing
        known = weakref.ref(thing)
        del thing
        for _ in range(2 * BEATS_PER_FREEZE):
            collector.beat()
        assert known() is not None
    finally:
        gc.enable()


def test_what_is_frozen_is_freed_when_nobody_knows_it(collector: GarbageCollector) -> None:
    thing = Thing()
    known = weakref.ref(thing)
    gc.collect()
    frozen = gc.get_freeze_count()
    assert frozen and not any(each is thing for each in gc.get_objects())
    del thing
    assert known() is None and gc.get_freeze_count() < frozen


def test_a_circle_is_freed_by_the_next_collection_or_once_frozen_by_collecting_all(collector: GarbageCollector) -> None:
    for is_frozen in (False, True):
        thing = Thing()
        thing.known = thing
        known = weakref.ref(thing)
        if is_frozen:
            gc.collect()
        del thing
        gc.collect()
        assert (known() is not None) is is_frozen
        collector.collect_all()
        assert known() is None


def test_a_start_looks_at_what_came_and_at_nothing_that_is_frozen(collector: GarbageCollector) -> None:
    """Another service of the process would be held up."""
    known = []
    for _ in range(2):
        thing = Thing()
        thing.known = thing
        known.append(weakref.ref(thing))
        if len(known) == 1:
            gc.freeze()
        del thing
    second = GarbageCollector()
    second.start()
    second.stop()
    assert known[0]() is not None and known[1]() is None
    collector.collect_all()
    assert known[0]() is None


def test_an_end_leaves_the_process_as_it_was() -> None:
    before = gc.get_threshold(), gc.get_freeze_count(), list(gc.callbacks)
    first, second = GarbageCollector(), GarbageCollector()
    first.start()
    second.start()
    first.stop()
    assert gc.get_threshold() == THRESHOLDS
    second.stop()
    second.stop()
    assert (gc.get_threshold(), gc.get_freeze_count(), list(gc.callbacks)) == before


def test_long_collections_are_counted_and_those_that_hold_up_nobody_are_not() -> None:
    times = iter([0.0, 9.0])  # of collect_all at the start
    collector = GarbageCollector(clock=lambda: next(times))
    collector.start()
    try:
        assert (collector.long_count, collector.longest_ms) == (0, 0)
        gc.disable()
        for took, count, longest in ((0.005, 0, 5), (0.0061, 1, 7), (0.002, 1, 7), (0.3, 2, 300)):
            times = iter([0.0, took])
            gc.collect(0)
            assert (collector.long_count, collector.longest_ms) == (count, longest)
    finally:
        gc.enable()
        times = iter([0.0] * 100)
        collector.stop()
