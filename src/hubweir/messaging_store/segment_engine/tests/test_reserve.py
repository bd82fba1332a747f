from __future__ import annotations

import errno
from dataclasses import replace

import pytest

from hubweir.alarms import RESERVE_USED, Alarms
from hubweir.counters import Counters
from hubweir.errors import DiskFull
from hubweir.messaging_store.log import Appended, Durability
from hubweir.messaging_store.segment_engine.log_state import LogSettings
from hubweir.messaging_store.segment_engine.reserve import RESERVE_BYTES, Reserve
from hubweir.testing.memory_faults import Fault
from hubweir.testing.simulated_env import SimulatedEnv

PATH = "store-0/RESERVE"


def fill(bench) -> None:
    """No byte is free."""
    files = bench.env.files
    files.capacity_bytes -= files.free_bytes()


def is_told(alarms: Alarms) -> bool:
    return any(alarm.kind is RESERVE_USED for alarm in alarms.current())


@pytest.mark.parametrize("durability", Durability)
@pytest.mark.parametrize("power_cut", [False, True])
def test_a_store_on_a_full_disk_opens_and_is_read(make_bench, durability: Durability, power_cut: bool) -> None:
    bench = make_bench(durability=durability)
    bench.append(b"kept", wait_ms=500)
    bench.env.crash(power_cut=power_cut)
    bench.env = bench.env.restart()
    fill(bench)
    bench.open()
    assert bench.everything() == {0: b"kept"} and bench.store.writer_epoch == 2
    assert PATH not in bench.env.files.paths() and is_told(bench.store.alarms)
    bench.env.files.capacity_bytes += 3 * RESERVE_BYTES
    bench.env.run_for(40_000)
    assert bench.env.files.size_of(PATH) == RESERVE_BYTES and not is_told(bench.store.alarms)


def test_a_reserve_that_is_there_counts_however_full_the_disk_is(bench) -> None:
    """Taken for gone, it would not be given up when a delete needs it."""
    bench.env.run_for(1_000)
    assert PATH in bench.env.files.paths()
    fill(bench)
    alarms = Alarms(bench.env, Counters())
    reserve = Reserve(bench.env, "store-0", Counters(), alarms, "store store-0")
    reserve.is_there = False
    reserve.make()
    assert reserve.is_there


def test_retention_gets_its_new_segment_on_a_full_disk(bench) -> None:
    bench.append(b"a")
    fill(bench)
    bench.env.files.capacity_bytes -= 2 << 20  # what the segment gives back is gone at once
    bench.log._commit.roll()
    bench.env.run_for(2000)
    assert bench.counters.get("store.reserve_used") == 1
    bench.reopen(power_cut=True)
    assert bench.everything() == {0: b"a"}


@pytest.mark.parametrize("uses_reserve", [True, False])
def test_the_log_that_deletes_are_in_goes_on_where_others_are_refused(make_bench, uses_reserve: bool) -> None:
    bench = make_bench(settings=replace(LogSettings(), uses_reserve=uses_reserve))
    bench.append(b"a")
    fill(bench)
    bench.append(bytes(2 << 20))
    assert isinstance(bench.outcomes[-1], Appended) is uses_reserve
    if uses_reserve:
        bench.append(bytes(4 << 20))
        assert isinstance(bench.outcomes[-1].error, DiskFull)
        bench.append(b"small")
        assert isinstance(bench.outcomes[-1], Appended)


def test_a_failed_sync_on_a_full_disk_is_repaired(bench) -> None:
    bench.append(b"kept")
    fill(bench)
    bench.env.files.plan(Fault.SYNC_EIO)
    bench.append(b"refused", wait_ms=300)
    assert bench.outcomes[-1].known and bench.log.lease.writer_epoch == 2


def test_a_disk_too_small_for_a_reserve_has_none() -> None:
    env = SimulatedEnv(1)
    env.files.make_folder("store-0")
    env.files.capacity_bytes = 2 * RESERVE_BYTES - 1
    alarms = Alarms(env, Counters())
    reserve = Reserve(env, "store-0", Counters(), alarms, "store store-0")
    reserve.make()
    reserve.watch()
    assert not reserve.is_there and env.files.paths() == [] and is_told(alarms)


def test_a_call_that_fails_for_another_reason_leaves_it_alone(bench) -> None:
    def broken() -> None:
        raise OSError(errno.EIO, "broken")

    with pytest.raises(OSError):
        bench.store._reserve.use_for(broken)
    assert bench.store._reserve.is_there and PATH in bench.env.files.paths()


def test_what_a_crash_left_of_it_is_filled_up(bench) -> None:
    bench.env.files.set_bytes(PATH, bytes(100))
    bench.reopen()
    assert bench.env.files.size_of(PATH) == RESERVE_BYTES


def test_a_closed_store_looks_no_more(bench) -> None:
    fill(bench)
    bench.store._reserve.use_for(lambda: bench.env.files.paths())
    bench.env.files.remove(PATH)
    bench.store._reserve.is_there = False
    bench.store._reserve.watch()
    bench.store.close(lambda: None)
    bench.env.run()
    assert bench.env.monotonic_ms() < 1_000_000 and PATH not in bench.env.files.paths()


def test_the_space_of_the_reserve_is_there_also_where_it_is_free_only_behind_a_sync(bench) -> None:
    bench.append(b"a")
    files = bench.env.files
    files.frees_at_sync = True
    fill(bench)
    bench.env.files.capacity_bytes -= 2 << 20  # what the segment gives back is gone at once
    bench.log._commit.roll()
    bench.env.run_for(2000)
    assert bench.counters.get("store.reserve_used") == 1 and len(bench.segments()) == 2
