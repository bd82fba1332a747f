"""counters.py: sums and gauges by name."""

from __future__ import annotations

from hubweir.counters import Counters, GaugeShare
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.messaging_store.tests.batches import sealed
from hubweir.testing.answers import made_log
from hubweir.testing.simulated_env import SimulatedEnv


def test_an_unknown_name_reads_as_zero_and_is_not_told_by_a_snapshot() -> None:
    counters = Counters()
    assert counters["log.syncs"] == 0 and counters.snapshot() == {}


def test_counters_grow_and_gauges_are_set() -> None:
    counters = Counters()
    counters["log.syncs"] += 1
    counters["log.syncs"] += 2
    for value in (7, 3):
        counters["broker.readers"] = value
    assert counters.snapshot() == {"broker.readers": 3, "log.syncs": 3}
    assert list(counters.snapshot()) == ["broker.readers", "log.syncs"]


def test_a_snapshot_stays_as_it_was() -> None:
    counters = Counters()
    counters["a"] += 1
    before = counters.snapshot()
    counters["a"] += 1
    assert before == {"a": 1}


def test_counters_that_have_counted_nothing_yet_are_used_all_the_same() -> None:
    """Empty ones are no missing ones: a store counts on those that it was given."""
    counters, env = Counters(), SimulatedEnv(1)
    log = made_log(env, MessagingStore.open(env, "store-0", counters=counters), "ab" * 16)
    log.append(sealed(b"one"), now_ms=env.now_ms(), on_done=lambda outcome: None)
    env.run_for(100)
    assert counters["log.appends"] == 1


def test_a_gauge_of_several_is_the_sum_of_what_they_say_now() -> None:
    counters = Counters()
    one, other = GaugeShare(counters, "broker.readers"), GaugeShare(counters, "broker.readers")
    one.set(3)
    other.set(4)
    one.set(1)
    assert counters["broker.readers"] == 5
    other.set(0)
    assert counters["broker.readers"] == 1
