"""throttle_lines.py: one line when somebody is over its units, one when that is over, whatever happens between."""

from __future__ import annotations

import logging

import pytest

from hubweir.broker.throttle_lines import QUIET_MS, ThrottleLines
from hubweir.service_log import THROTTLED, THROTTLED_OVER, Line
from hubweir.testing.simulated_env import SimulatedEnv
from hubweir.throughput_unit.throughput_unit import capacity_of


@pytest.fixture(autouse=True)
def everything_is_said(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


def told(caplog: pytest.LogCaptureFixture) -> list[Line]:
    return [record.msg for record in caplog.records if isinstance(record.msg, Line)]


def test_a_flood_is_two_lines_that_count_it(caplog: pytest.LogCaptureFixture) -> None:
    env = SimulatedEnv(1)
    throttled = ThrottleLines(env, THROTTLED, THROTTLED_OVER, namespace="shop")
    for _ in range(100):
        throttled.refused("over the units")
        throttled.waits(2)
        env.run_for(QUIET_MS // 2)
    [began] = told(caplog)
    assert began.kind is THROTTLED and str(began) == "namespace shop is throttled: over the units"
    env.run_for(QUIET_MS // 2 - 1)
    assert len(told(caplog)) == 1
    env.run_for(1)
    over = told(caplog)[-1]
    assert over.kind is THROTTLED_OVER and len(told(caplog)) == 2
    assert over.fields == {"namespace": "shop", "seconds": 99 * QUIET_MS / 2_000, "refused": 100, "waited": 100}
    env.run()
    assert len(told(caplog)) == 2, "it is over once"


def test_reads_that_wait_say_what_the_units_let_out(caplog: pytest.LogCaptureFixture) -> None:
    throttled = ThrottleLines(SimulatedEnv(1), THROTTLED, THROTTLED_OVER, namespace="shop")
    throttled.waits(3)
    [began] = told(caplog)
    rate = capacity_of(3).egress
    assert str(rate.bytes_per_second) in str(began) and str(rate.events_per_second) in str(began)
    assert "readers wait" in str(began)


def test_the_next_time_begins_and_counts_anew(caplog: pytest.LogCaptureFixture) -> None:
    env = SimulatedEnv(1)
    throttled = ThrottleLines(env, THROTTLED, THROTTLED_OVER, namespace="shop")
    throttled.refused("first")
    env.run_for(2 * QUIET_MS)
    throttled.waits(1)
    env.run_for(2 * QUIET_MS)
    assert [line.kind for line in told(caplog)] == [THROTTLED, THROTTLED_OVER] * 2
    first, second = (line.fields for line in told(caplog) if line.kind is THROTTLED_OVER)
    assert (first["refused"], first["waited"], second["refused"], second["waited"]) == (1, 0, 0, 1)


def test_a_service_that_stops_says_nothing_any_more(caplog: pytest.LogCaptureFixture) -> None:
    env = SimulatedEnv(1)
    throttled = ThrottleLines(env, THROTTLED, THROTTLED_OVER, namespace="shop")
    throttled.stop()
    throttled.refused("over the units")
    throttled.stop()
    env.run()
    assert len(told(caplog)) == 1
