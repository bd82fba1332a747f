from __future__ import annotations

import errno
from dataclasses import replace

import pytest

from hubweir.alarms import RESERVE_USED, Alarms
from hubweir.counters import Counters
from hubweir.env import Lane
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
    assert bench.counters["store.reserve_used"] == 1
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


class Alone:
    """A reserve on a disk of its own, what is told of it, and when its file is asked for."""

    def __init__(self, free_bytes: int = 2 * RESERVE_BYTES, seed: int = 1) -> None:
        self.env = SimulatedEnv(seed, slowest_ms=0)
        self.env.files.make_folder("store-0")
        self.env.files.capacity_bytes = free_bytes
        self.alarms, self.counters = Alarms(self.env, Counters()), Counters()
        self.reserve = Reserve(self.env, "store-0", self.counters, self.alarms, "store store-0")

    def looks(self, for_ms: int) -> list[int]:
        """When it looks for space in this time, from now on."""
        begun, looked, free_bytes = self.env.monotonic_ms(), list[int](), self.env.files.free_bytes

        def look() -> int:
            looked.append(self.env.monotonic_ms() - begun)
            return free_bytes()

        self.env.files.free_bytes = look  # type: ignore[method-assign]
        self.env.run_for(for_ms)
        self.env.files.free_bytes = free_bytes  # type: ignore[method-assign]
        return looked


@pytest.mark.parametrize(
    "error", [OSError(errno.EIO, "broken"), OSError(errno.ENOSPC, "full"), DiskFull("full")], ids=str
)
@pytest.mark.parametrize("is_there", [True, False])
def test_a_call_is_run_again_only_when_space_was_given_up_for_it(error: Exception, is_there: bool) -> None:
    alone, calls = Alone(), list[bool]()
    if is_there:
        alone.reserve.make()

    def fails() -> None:
        calls.append(alone.env.files.exists(PATH))
        raise error

    with pytest.raises(type(error)) as raised:
        alone.reserve.use_for(fails)
    assert raised.value is error
    is_given_up = is_there and getattr(error, "errno", errno.ENOSPC) == errno.ENOSPC
    assert calls == [is_there, False][: 1 + is_given_up]
    assert alone.counters["store.reserve_used"] == is_given_up
    assert alone.reserve.is_there == alone.env.files.exists(PATH) == (is_there and not is_given_up)


def test_a_reserve_that_cannot_be_removed_is_not_given_up() -> None:
    alone, calls = Alone(), list[int]()
    alone.reserve.make()
    alone.env.files.plan(Fault.EIO, call="remove")

    def full() -> None:
        calls.append(1)
        raise DiskFull("full")

    with pytest.raises(DiskFull):
        alone.reserve.use_for(full)
    assert calls == [1] and alone.reserve.is_there and alone.counters["store.reserve_used"] == 0


@pytest.mark.parametrize("lacking", [0, 1])
def test_it_is_set_aside_when_twice_its_size_is_free(lacking: int) -> None:
    alone = Alone(2 * RESERVE_BYTES - lacking)
    alone.reserve.make()
    assert alone.reserve.is_there == alone.env.files.exists(PATH) == (not lacking)


@pytest.mark.parametrize("seed", range(8))
def test_it_is_there_behind_a_power_cut_and_not_made_again_where_it_is_whole(seed: int) -> None:
    alone = Alone(3 * RESERVE_BYTES, seed)
    alone.env.files.sync_folder("")
    alone.reserve.make()
    alone.env.files.power_cut()
    assert alone.env.files.size_of(PATH) == RESERVE_BYTES
    alone.env.files.call_names = []
    alone.reserve.make()
    assert alone.env.files.call_names == ["open"] and alone.reserve.is_there


def test_space_is_looked_for_ever_more_seldom_and_soon_again_the_next_time() -> None:
    alone = Alone(0)
    for _ in range(2):
        for _ in range(3):
            alone.reserve.watch()
        assert is_told(alone.alarms)
        assert alone.looks(92_000) == [1_000, 3_000, 7_000, 15_000, 31_000, 61_000, 91_000]
        alone.env.files.capacity_bytes = 3 * RESERVE_BYTES
        assert set(alone.looks(60_000)) == {29_000} and not is_told(alone.alarms) and alone.reserve.is_there
        assert alone.looks(60_000) == []
        alone.env.files.capacity_bytes = 0
        with pytest.raises(DiskFull):
            alone.reserve.use_for(lambda: full())


def full() -> None:
    raise DiskFull("full")


def test_one_look_at_a_time_is_under_way() -> None:
    alone = Alone(0)
    alone.reserve.watch()
    alone.env.stall(Lane.MAINTENANCE)
    for _ in range(10):
        alone.env.run_for(1_000)
        alone.reserve.watch()
    assert alone.env.stalled_calls(Lane.MAINTENANCE) == 1
    alone.env.files.capacity_bytes = 3 * RESERVE_BYTES
    alone.env.go_on(Lane.MAINTENANCE)
    alone.env.run_for(1)
    assert alone.reserve.is_there and not is_told(alone.alarms)


def test_a_look_that_ends_in_a_fault_of_the_service_is_told_and_not_the_last_one(monkeypatch) -> None:
    alone = Alone(0)
    alone.reserve.watch()
    with monkeypatch.context() as patch:
        patch.setattr(alone.env.files, "free_bytes", lambda: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            alone.env.run_for(1_000)
    alone.env.files.capacity_bytes = 3 * RESERVE_BYTES
    alone.reserve.watch()
    alone.env.run_for(2_000)
    assert alone.reserve.is_there and not is_told(alone.alarms)


@pytest.mark.parametrize("is_looking", [True, False])
def test_a_reserve_that_was_stopped_looks_no_more_tells_no_more_and_makes_nothing(is_looking: bool) -> None:
    alone = Alone(0)
    alone.reserve.watch()
    alone.env.stall(Lane.MAINTENANCE)
    if is_looking:
        alone.env.run_for(1_000)
    alone.reserve.stop()
    alone.env.run_for(10_000)
    assert alone.env.stalled_calls(Lane.MAINTENANCE) == is_looking
    alone.env.files.capacity_bytes = 3 * RESERVE_BYTES
    alone.env.go_on(Lane.MAINTENANCE)
    alone.alarms.end(RESERVE_USED, "store store-0")
    assert alone.looks(100_000) == []
    alone.reserve.watch()
    alone.reserve.make()
    assert alone.looks(100_000) == [] and not is_told(alone.alarms) and not alone.env.files.exists(PATH)


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
    assert bench.counters["store.reserve_used"] == 1 and len(bench.segments()) == 2
