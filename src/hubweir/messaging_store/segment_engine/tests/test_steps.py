from __future__ import annotations

import pytest

from hubweir.counters import Counters
from hubweir.env import Lane
from hubweir.messaging_store.segment_engine.steps import Steps
from hubweir.testing.simulated_env import SimulatedEnv


class Planted(Exception):
    pass


def fail(*given: object) -> None:
    raise Planted


def made() -> tuple[SimulatedEnv, Steps, list[Exception], Counters]:
    env, counters, faults = SimulatedEnv(1), Counters(), []
    steps = Steps(env, "log", counters)
    steps.on_fault = faults.append
    return env, steps, faults, counters


def test_whatever_escapes_from_a_step_is_counted_told_and_goes_no_further() -> None:
    env, steps, faults, counters = made()
    steps.run(lambda: fail())
    steps.soon(lambda: fail())
    steps.later(5, lambda: fail())
    steps.away(Lane.READS, lambda: 1, fail)
    steps.write_away(lambda: 1, fail)
    env.run()
    assert [type(fault) for fault in faults] == [Planted] * 5 and counters["log.faults"] == 5


def test_whoever_stops_the_log_for_a_fault_finds_it_counted() -> None:
    _, steps, _, counters = made()
    counted: list[int] = []
    steps.on_fault = lambda fault: counted.append(counters["log.faults"])
    steps.run(lambda: fail())
    assert counted == [1]


def test_a_call_that_could_not_be_handed_over_is_not_waited_for() -> None:
    env, steps, _, _ = made()
    env.offload = fail  # type: ignore[method-assign]
    with pytest.raises(Planted):
        steps.write_away(lambda: 1, fail)
    said: list[str] = []
    steps.when_written(lambda: said.append("quiet"))
    env.run()
    assert said == ["quiet"]


def test_what_the_call_away_raises_is_in_the_result_that_its_step_gets() -> None:
    env, steps, faults, _ = made()
    steps.away(Lane.READS, fail, lambda result: result.value())
    env.run()
    assert [type(fault) for fault in faults] == [Planted]


def test_when_written_waits_for_every_call_that_uses_the_file_and_never_answers_inside() -> None:
    env, steps, _, _ = made()
    said: list[str] = []
    steps.write_away(lambda: said.append("wrote"), lambda result: said.append("first"))
    steps.write_away(lambda: said.append("wrote"), fail)
    steps.when_written(lambda: said.append("quiet"))
    assert said == []
    env.run()
    assert said[-1] == "quiet" and len(said) == 4
    steps.when_written(lambda: said.append("again"))
    assert said[-1] == "quiet"
    env.turn()
    assert said[-1] == "again"
