from typing import Any

import pytest

from hubweir.broker.commands import CreatePartition
from hubweir.broker.timers import JUMP_MS, SWEEP_MS, RetentionSweep, TrustedClock
from hubweir.messaging_store.log import Durability

HOUR_MS = 3_600_000


def test_every_partition_is_swept_once_a_sweep(bench: Any) -> None:
    for name in ("b", "c"):
        bench.ask(CreatePartition(name, "orders", "1", Durability.DURABLE, HOUR_MS))
    bench.env.pass_time(3 * SWEEP_MS)
    assert [len(log.expired) for log in bench.store.logs.values()] == [3, 3, 3]


def test_a_clock_that_jumps_ahead_removes_nothing(bench: Any, caplog: Any) -> None:
    bench.env.pass_time(SWEEP_MS)
    before = bench.log.expired[-1][0]
    bench.env.wall_ms += 30 * 24 * HOUR_MS
    bench.env.pass_time(2 * SWEEP_MS)
    assert bench.log.expired[-1] == (before + 2 * SWEEP_MS, HOUR_MS)
    assert caplog.text.count("the clock jumped ahead") == 1


def test_small_steps_and_steps_back_are_taken(bench: Any) -> None:
    clock = TrustedClock(bench.env)
    bench.env.wall_ms += JUMP_MS
    assert clock.now_ms() == bench.env.wall_ms
    bench.env.wall_ms -= HOUR_MS
    assert clock.now_ms() == bench.env.wall_ms


def test_a_sweep_that_ends_in_a_fault_comes_again(bench: Any) -> None:
    times: list[int] = []

    def visit(now_ms: int) -> bool:
        times.append(now_ms)
        raise ZeroDivisionError("planted")

    sweep = RetentionSweep(bench.env, visit)
    sweep.start()
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            bench.env.pass_time(SWEEP_MS)
    assert len(times) == 3
