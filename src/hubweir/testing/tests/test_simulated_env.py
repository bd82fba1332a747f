from __future__ import annotations

import pytest

from hubweir.env import Lane
from hubweir.testing.simulated_env import SimulatedEnv


def history(seed: int) -> tuple[list[int], str]:
    """Ten offloaded calls and three timers; the order in which they end, and the trace."""
    env, order = SimulatedEnv(seed), []
    for number in range(10):
        env.offload(Lane.READS, lambda number=number: number, lambda result: order.append(result.value()))
    for number in (100, 101, 102):
        env.call_later(number - 95, lambda number=number: order.append(number))
    env.run()
    return order, env.trace.hexdigest()


def test_a_seed_is_a_history() -> None:
    assert history(1) == history(1)
    assert len({tuple(history(seed)[0]) for seed in range(10)}) == 10


def test_timers_fire_at_their_time_and_time_passes_at_once() -> None:
    env, fired = SimulatedEnv(), []
    env.call_later(5000, lambda: fired.append(env.monotonic_ms()))
    cancelled = env.call_later(10, lambda: fired.append(-1))
    cancelled.cancel()
    env.run_for(4999)
    assert fired == [] and env.monotonic_ms() == 4999
    env.run_for(1)
    assert fired == [5000]


def test_a_turn_takes_no_time() -> None:
    env, called = SimulatedEnv(), []
    env.call_soon(lambda: called.append(1))
    env.call_later(1, lambda: called.append(2))
    env.turn()
    assert called == [1] and env.monotonic_ms() == 0


def test_an_offloaded_error_comes_out_where_the_value_is_wanted() -> None:
    env, results = SimulatedEnv(), []
    env.offload(Lane.READS, lambda: 1 // 0, results.append)
    env.run()
    with pytest.raises(ZeroDivisionError):
        results[0].value()


def test_a_stalled_lane_waits_and_others_do_not() -> None:
    env, order = SimulatedEnv(), []
    env.stall(Lane.READS)
    for lane in (Lane.READS, Lane.WRITES):
        env.offload(lane, lambda lane=lane: lane, lambda result: order.append(result.value()))
    env.run_for(1000)
    assert order == [Lane.WRITES] and env.stalled_calls(Lane.READS) == 1
    env.go_on(Lane.READS)
    env.run()
    assert order == [Lane.WRITES, Lane.READS]


def test_nothing_happens_after_a_crash() -> None:
    env, happened = SimulatedEnv(), []
    env.call_soon(lambda: happened.append(1))
    env.call_later(1, lambda: happened.append(2))
    env.offload(Lane.READS, lambda: happened.append(3), lambda result: happened.append(4))
    env.crash()
    env.call_soon(lambda: happened.append(5))
    env.run()
    assert happened == []


def test_a_restart_is_later_on_the_same_disk() -> None:
    env = SimulatedEnv()
    env.run_for(100)
    env.files.open("f", create=True).write(0, [b"kept by the page cache"])
    env.crash()
    again = env.restart()
    assert again.now_ms() > env.now_ms() - 100 and again.files.bytes_of("f") == b"kept by the page cache"


def test_the_wall_clock_jumps_and_the_monotonic_one_does_not() -> None:
    env = SimulatedEnv()
    before = env.now_ms(), env.monotonic_ms()
    env.jump(-5000)
    assert (env.now_ms(), env.monotonic_ms()) == (before[0] - 5000, before[1])


def test_ids_and_secrets_come_from_the_seed() -> None:
    assert SimulatedEnv(1).new_id() == SimulatedEnv(1).new_id() != SimulatedEnv(2).new_id()
    assert len(SimulatedEnv().new_id()) == 32 and len(SimulatedEnv().random_bytes(5)) == 5


def test_fault_points_count_and_raise_what_was_planted() -> None:
    env = SimulatedEnv()
    env.fault("log.before_round")
    env.faults["log.before_round"] = OSError("planted")
    with pytest.raises(OSError, match="planted"):
        env.fault("log.before_round")
    assert env.fault_hits == {"log.before_round": 2}


def test_what_happens_next_is_told_and_a_cancelled_timer_too() -> None:
    env = SimulatedEnv(1)
    assert env.next_ms() is None
    env.call_later(30, lambda: env.call_soon(lambda: None))
    env.call_later(20, lambda: None).cancel()
    assert env.next_ms() == 20  # time passes there, and nothing else does
    env.run(20)
    assert env.next_ms() == 30
    env.call_soon(lambda: None)
    assert env.next_ms() == 20
    env.run(None)
    assert env.next_ms() is None


def test_a_process_that_was_stopped_is_late_and_its_clocks_are_not() -> None:
    env, rang = SimulatedEnv(1, monotonic_ms=500), []
    before_ms = env.now_ms()
    env.call_later(10, lambda: rang.append(env.monotonic_ms()))
    env.pass_over(900)
    assert (env.monotonic_ms(), env.now_ms() - before_ms, rang) == (900, 400, [])
    env.turn()
    assert rang == [900]
