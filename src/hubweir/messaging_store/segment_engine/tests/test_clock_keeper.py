"""clock_keeper.py: what a store knows of the time outlives its process."""

from __future__ import annotations

from typing import Any

from hubweir.messaging_store.disk.clock_file import load_clock
from hubweir.messaging_store.disk.layout import CLOCK_NAME
from hubweir.messaging_store.segment_engine.clock_keeper import CLOCK_SAVE_MS
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.messaging_store.trusted_clock import HOUR_MS
from hubweir.testing.memory_faults import Fault
from hubweir.testing.simulated_env import SimulatedEnv

DAY_MS = 24 * HOUR_MS


def test_the_next_process_goes_on_with_the_time_of_the_one_before(bench: Any) -> None:
    start_ms = bench.env.now_ms()
    bench.store.keep_clock()
    bench.env.run_for(HOUR_MS)
    bench.store.keep_clock()
    bench.env.run_for(1000)
    bench.env.crash(power_cut=True)
    bench.env.jump(DAY_MS)
    bench.env = bench.env.restart()
    bench.open_store()
    assert bench.store.clock.now_ms() == start_ms + HOUR_MS
    assert bench.store.clock.stamp_ms() == bench.env.now_ms()


def test_the_clock_is_saved_when_a_store_is_made_and_then_once_a_minute(bench: Any) -> None:
    files = bench.env.files

    def saved() -> int:
        state = load_clock(files, "store-0")
        assert state is not None
        return state.passed_ms

    start_ms = saved()
    times = []
    for _ in range(12):
        bench.env.run_for(CLOCK_SAVE_MS // 4)
        bench.store.keep_clock()
        bench.env.run_for(100)
        times.append((saved() - start_ms) // 10_000)
    assert times == [1, 1, 1, 1, 7, 7, 7, 7, 13, 13, 13, 13]


def test_a_damaged_clock_is_told_and_the_wall_clock_believed(bench: Any) -> None:
    bench.env.crash()
    bench.env.files.bytes_of(f"store-0/{CLOCK_NAME}")[-1] ^= 1
    bench.env.jump(DAY_MS)
    bench.env = bench.env.restart()
    bench.store = MessagingStore.open(bench.env, "store-0")
    assert bench.store.clock.now_ms() == bench.env.now_ms()
    assert any("CLOCK is damaged" in str(alarm) for alarm in bench.store.alarms.current())


def test_a_clock_that_cannot_be_saved_is_tried_again(bench: Any, caplog: Any) -> None:
    bench.env.run_for(2 * CLOCK_SAVE_MS)
    bench.env.files.plan(Fault.EIO, forever=True)
    bench.store.keep_clock()
    bench.env.run_for(100)
    assert "cannot be written" in caplog.text
    bench.env.files.heal()
    bench.env.run_for(CLOCK_SAVE_MS)
    bench.store.keep_clock()
    bench.env.run_for(100)
    state = load_clock(bench.env.files, "store-0")
    assert state is not None and state.passed_ms == bench.env.now_ms() - 100


def test_a_store_without_retention_keeps_no_time() -> None:
    env = SimulatedEnv()
    store = MessagingStore.open(env, "catalog", has_retention=False)
    assert not env.files.exists(f"catalog/{CLOCK_NAME}")
    env.run_for(DAY_MS)
    assert store.clock.now_ms() == env.now_ms()
