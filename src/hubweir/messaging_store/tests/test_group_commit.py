from __future__ import annotations

import pytest

from hubweir.errors import LogOffline, OutOfFiles
from hubweir.messaging_store.log import Durability
from hubweir.messaging_store.log_state import LogSettings
from hubweir.testing.memory_files import Fault


def test_one_sync_serves_every_append_of_a_turn(bench) -> None:
    bench.append(b"makes the segment")
    before = bench.counters.get("log.syncs")
    for number in range(10):
        bench.append(b"%d" % number, wait_ms=0)
    bench.env.run_for(50)
    assert len(bench.outcomes) == 11 and bench.counters.get("log.syncs") == before + 1


def test_what_comes_during_a_round_is_the_next_round(bench) -> None:
    bench.append(b"makes the segment")
    before = bench.counters.get("log.syncs")
    bench.append(b"a", wait_ms=0)
    bench.env.turn()
    for _ in range(5):
        bench.append(b"b", wait_ms=0)
        bench.env.turn()
    bench.env.run_for(100)
    assert len(bench.outcomes) == 7 and bench.counters.get("log.syncs") == before + 2


def test_a_segment_rolls_by_size(bench) -> None:
    for number in range(30):
        bench.append(b"%d" % number * 200)
    sizes = [bench.env.files.open(f"store-0/logs/{bench.log.log_id}/{name}").size() for name in bench.segments()]
    assert len(sizes) >= 3 and all(size <= 4000 for size in sizes[:-1])


def test_a_run_larger_than_a_segment_is_still_stored(bench) -> None:
    bench.append(b"x" * 9000)
    bench.append(b"y")
    assert bench.everything() == {0: b"x" * 9000, 1: b"y"} and len(bench.segments()) == 2


def test_a_segment_rolls_by_age(bench) -> None:
    bench.log.set_roll_age(1000)
    bench.append(b"a")
    bench.append(b"b")
    bench.env.run_for(2000)
    bench.append(b"c")
    assert len(bench.segments()) == 2


def test_a_relaxed_log_syncs_after_50_ms(relaxed) -> None:
    relaxed.append(b"makes the segment")
    relaxed.append(b"a", wait_ms=0)
    relaxed.env.run_for(40)
    assert relaxed.log._state.synced.index == 1
    relaxed.env.run_for(60)
    assert relaxed.log._state.synced.index == 2


def test_a_relaxed_log_syncs_early_when_much_is_unsynced(relaxed) -> None:
    relaxed.append(b"makes the segment")
    relaxed.append(b"a" * 1100, wait_ms=0)
    relaxed.env.run_for(41)
    assert relaxed.log._state.synced.index == 2


def test_too_much_unsynced_waits_for_the_sync(make_bench) -> None:
    settings = LogSettings(relaxed_sync_bytes=10**9, relaxed_sync_ms=10**6, relaxed_unsynced_bytes=2000)
    bench = make_bench(durability=Durability.RELAXED, settings=settings)
    bench.append(b"makes the segment")
    bench.append(b"a" * 1500, wait_ms=0)
    bench.env.turn()
    bench.append(b"b" * 1500, wait_ms=0)
    bench.env.turn()
    assert bench.log.bounds.next_index == 2
    bench.env.run_for(50)
    assert bench.log.bounds.next_index == 3 and bench.log._state.synced.index == 3


def test_the_queue_has_a_bound(make_bench, make_events) -> None:
    bench = make_bench(settings=LogSettings(queue_bytes=1000))
    bench.append(b"a" * 600, wait_ms=0)
    with pytest.raises(LogOffline, match="wait for the disk"):
        bench.append(b"b" * 600)
    bench.env.run_for(100)
    assert bench.append(b"c").first_index == 1


def test_a_refused_roll_on_a_full_disk_does_not_go_round(bench) -> None:
    bench.append(b"a")
    bench.env.files.capacity_bytes = 0
    bench.log._commit.roll()
    calls = bench.env.files.calls
    bench.env.run_for(10_000)
    assert bench.env.files.calls - calls < 40


@pytest.mark.parametrize("durability", Durability)
def test_a_clean_close_leaves_a_clean_log(make_bench, durability: Durability) -> None:
    bench = make_bench(durability=durability)
    for number in range(5):
        bench.append(b"%d" % number, wait_ms=0)
    bench.reopen(close=True, power_cut=True)
    assert len(bench.outcomes) == 5 and bench.log.bounds.next_index == 5 and not bench.store.alarms


def test_closing_an_offline_log_ends(bench) -> None:
    bench.append(b"a")
    bench.log._state.offline = "for the test"
    bench.log._commit.roll()
    closed: list[bool] = []
    bench.log.close(lambda: closed.append(True))
    bench.env.run_for(1000)
    assert closed == [True]


@pytest.mark.parametrize("durability", Durability)
def test_without_file_descriptors_sends_are_refused_and_the_log_heals_by_itself(make_bench, durability) -> None:
    bench = make_bench(durability=durability)
    bench.append(b"kept")
    bench.log._commit.roll()
    bench.env.files.plan(bench.env.files.calls + 1, Fault.EMFILE, forever=True)
    bench.append(b"refused", wait_ms=400)
    refused = bench.outcomes[-1]
    assert isinstance(refused.error, OutOfFiles) and refused.known and "ulimit" in str(refused.error)
    bench.env.files.heal()
    assert bench.append(b"after").first_index == 1 and bench.log.lease.writer_epoch == 1
    assert not bench.store.alarms and bench.counters.get("log.failed_syncs") == 0
    bench.reopen(power_cut=durability is Durability.DURABLE)
    assert list(bench.everything().values()) == [b"kept", b"after"]
