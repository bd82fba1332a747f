"""Faults that a test orders: how often they strike, and what they do to runs and answers."""

from typing import Any

import pytest

from hubweir.broker.commands.command import Answer, Command, OnAnswer
from hubweir.broker.commands.process import AskCounters, Done, Refusal
from hubweir.broker.commands.testcontrol import FaultRates, OrderedFaults
from hubweir.errors import SERVER_BUSY
from hubweir.gateway.append_queue import DeliveryRange, PendingAppend, Submission, Taker
from hubweir.gateway.faults import BUSY, FaultKind, Faults
from hubweir.testing.simulated_env import SimulatedEnv


class Broker:
    """Answers at once."""

    def __init__(self) -> None:
        self.commands: list[Command] = []

    def submit(self, command: Command, on_answer: OnAnswer) -> None:
        self.commands.append(command)
        on_answer(Done())


class Waits:
    """A link that waits for its deliveries."""

    def __init__(self) -> None:
        self.heard: list[Answer] = []

    def answered(self, submission: Submission, answer: Answer) -> None:
        self.heard.append(answer)


def append(broker: Taker, command: AskCounters, pending: PendingAppend) -> None:
    broker.submit(command, pending.answered)


def sent(faults: Faults, times: int = 1) -> tuple[Broker, Waits]:
    broker, waits = Broker(), Waits()
    for number in range(times):
        submission = Submission(waits, DeliveryRange(number, number), deliveries=1, size_bytes=1, settled=False)
        faults.around(append)(broker, AskCounters(), PendingAppend([submission]))
    return broker, waits


def ordered(env: SimulatedEnv | None = None, index: int = 0, **rates: Any) -> Faults:
    return Faults(OrderedFaults(1, FaultRates(**rates)), env or SimulatedEnv(), index)


def struck(
    seed: int, rate: float, fault: FaultKind, draws: int = 1_000, *, index: int = 0, **others: float
) -> list[bool]:
    faults = ordered(index=index, **{fault.value: rate}, **others, seed=seed)
    return [faults.strikes(fault) for _ in range(draws)]


@pytest.mark.parametrize("fault", FaultKind)
def test_a_fault_strikes_by_its_rate_and_no_other_does(fault: FaultKind) -> None:
    faults = ordered(**{fault.value: 0.2}, seed=1)
    for _ in range(1_000):
        for each in FaultKind:
            faults.strikes(each)
    assert set(faults.struck) == {fault} and 150 < faults.struck[fault] < 250
    assert all(struck(1, 1, fault)) and not any(struck(1, 0, fault))


def test_a_seed_repeats_the_draws_whatever_other_faults_do() -> None:
    first = struck(7, 0.5, FaultKind.DROP)
    assert first == struck(7, 0.5, FaultKind.DROP, delay=0.5, detach=1)
    assert first != struck(8, 0.5, FaultKind.DROP)
    assert first != struck(7, 0.5, FaultKind.DETACH), "each kind draws for itself"
    assert first != struck(7, 0.5, FaultKind.DROP, index=1), "so does each process"


def test_a_busy_run_is_refused_and_its_broker_never_hears_of_it() -> None:
    broker, waits = sent(ordered(server_busy=1), 2)
    assert broker.commands == [] and waits.heard == [BUSY, BUSY]
    assert isinstance(BUSY, Refusal) and BUSY.known and BUSY.condition is SERVER_BUSY


def test_a_delayed_answer_comes_when_its_time_has_passed() -> None:
    env = SimulatedEnv()
    broker, waits = sent(ordered(env, delay=1, delay_ms=500))
    assert len(broker.commands) == 1, "it is stored at once"
    env.run_for(499)
    assert waits.heard == []
    env.run_for(1)
    assert waits.heard == [Done()]


def test_without_a_fault_everything_is_as_without_faults() -> None:
    broker, waits = sent(ordered(detach=1, drop=1), 3)
    assert len(broker.commands) == 3 and waits.heard == [Done()] * 3
