"""T25: a queue against a small model of it, by whatever calls hypothesis thinks of; a failure is shrunk to few of them.

The model is a list of messages with their states. There are no faults here, so each answer is known beforehand; crashes
and failures are test_worlds.py and the simulated histories.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from hubweir.kernels.queue_contract import LOCKED
from hubweir.queue.fragment_core import FragmentCore
from hubweir.queue.fragment_settings import FragmentSettings
from hubweir.queue.message_table import MessageTable
from hubweir.queue.settle_outcome import LOCK_LOST, SETTLED, SettleOutcome
from hubweir.queue.sub_queue import SubQueue
from hubweir.queue.tests.conftest import DELETE, QueueBench
from hubweir.testing.simulated_env import SimulatedEnv

LOCK_MS, MOST = 5_000, 3
# Each call is given so long, and needs less.
CALL_MS = 50


@dataclass
class Known:
    """A message of the model. state: waiting, deferred, dead or gone. until_ms: of its lock."""

    number: int
    state: str = "waiting"
    deliveries: int = 0
    token: bytes = b""
    until_ms: int = -1


class QueueMachine(RuleBasedStateMachine):
    """The queue, and the model beside it."""

    def __init__(self) -> None:
        super().__init__()
        fragment_settings = FragmentSettings(lock_duration_ms=LOCK_MS, max_delivery_count=MOST)
        self.bench = QueueBench(fragment_settings, env=SimulatedEnv(7, slowest_ms=5))
        self.known: list[Known] = []
        self.old_tokens: list[bytes] = []

    def now(self) -> int:
        return self.bench.env.monotonic_ms()

    def expire(self) -> None:
        for each in self.known:
            if each.token and each.until_ms <= self.now():
                self.old_tokens.append(each.token)
                each.token, each.until_ms = b"", -1
                self.failed(each)

    def failed(self, each: Known) -> None:
        """A delivery has failed; it was counted when it began."""
        if each.state in ("waiting", "deferred") and each.deliveries >= MOST:
            each.state = "dead"

    def ready(self, state: str) -> list[Known]:
        self.expire()
        return [each for each in self.known if each.state == state and not each.token]

    def locked(self) -> list[Known]:
        self.expire()
        return [each for each in self.known if each.token]

    @rule(count=st.integers(1, 4))
    def send(self, count: int) -> None:
        self.known += [Known(number) for number in self.bench.send(*["body"] * count)]

    @rule(count=st.integers(1, 3), is_dead=st.booleans())
    def receive(self, count: int, is_dead: bool) -> None:
        expected = self.ready("dead" if is_dead else "waiting")[:count]
        if not expected:
            return
        got = self.bench.receive(self.bench.receiver(SubQueue.DEAD_LETTERS if is_dead else SubQueue.MAIN), count)
        assert [each.number for each in got] == [each.number for each in expected]
        for each, known in zip(got, expected, strict=True):
            assert each.deliveries == known.deliveries
            known.token, known.until_ms = each.token, self.now() - self.bench.now_ms() + each.locked_until_ms
            known.deliveries += not is_dead

    @rule()
    def take(self) -> None:
        expected = self.ready("waiting")[:1]
        if expected:
            (got,) = self.bench.receive(self.bench.receiver(mode=DELETE), 1)
            assert got.number == expected[0].number
            expected[0].state = "gone"

    @precondition(lambda self: self.locked())
    @rule(place=st.integers(0, 20), outcome=st.sampled_from(SettleOutcome))
    def settle(self, place: int, outcome: SettleOutcome) -> None:
        locked = self.locked()
        each = locked[place % len(locked)]
        assert self.bench.settle(each.token, outcome) == [SETTLED]
        self.old_tokens.append(each.token)
        each.token, each.until_ms = b"", -1
        is_dead = each.state == "dead"
        if outcome is SettleOutcome.COMPLETE:
            each.state = "gone"
        elif outcome is SettleOutcome.ABANDON:
            self.failed(each)
        elif not is_dead:
            each.deliveries -= outcome in (SettleOutcome.RELEASE, SettleOutcome.DEFER, SettleOutcome.DEAD_LETTER)
            each.state = {SettleOutcome.DEFER: "deferred", SettleOutcome.DEAD_LETTER: "dead"}.get(outcome, each.state)
        elif outcome is SettleOutcome.DEFER:
            each.state = "dead and deferred"

    @precondition(lambda self: self.locked())
    @rule(place=st.integers(0, 20))
    def renew(self, place: int) -> None:
        locked = self.locked()
        each = locked[place % len(locked)]
        assert any(self.bench.fragment.renew(each.token, self.bench.times()))
        each.until_ms = self.now() + LOCK_MS

    @precondition(lambda self: self.old_tokens)
    @rule(place=st.integers(0, 20), outcome=st.sampled_from(SettleOutcome))
    def settle_what_is_over(self, place: int, outcome: SettleOutcome) -> None:
        token = self.old_tokens[place % len(self.old_tokens)]
        assert not any(self.bench.fragment.renew(token, self.bench.times()))
        assert self.bench.settle(token, outcome) == [LOCK_LOST]

    @rule()
    def take_a_deferred_one(self) -> None:
        for each in self.ready("deferred")[:1]:
            (got,) = self.bench.deferred(each.number)
            assert got.deliveries == each.deliveries
            each.token, each.until_ms = got.token, self.now() - self.bench.now_ms() + got.locked_until_ms
            each.deliveries += 1

    @rule(ms=st.sampled_from([10, 1_000, LOCK_MS]))
    def pass_time(self, ms: int) -> None:
        self.bench.run_for(ms)
        self.expire()
        self.bench.run_for(CALL_MS)

    @rule()
    def start_again(self) -> None:
        self.bench.run_for(CALL_MS)  # so that counts are durable
        self.expire()
        self.bench.restart()
        for each in self.known:
            if each.token:
                self.old_tokens.append(each.token)
                each.token, each.until_ms = b"", -1
                self.failed(each)
        self.bench.run_for(CALL_MS)

    @invariant()
    def counts_are_those_of_the_model(self) -> None:
        self.expire()
        self.bench.run_for(CALL_MS)
        self.expire()
        counts, states = self.bench.fragment.counts(), [each.state for each in self.known]
        assert counts.active == states.count("waiting")
        assert counts.deferred == states.count("deferred")
        assert counts.dead_lettered == states.count("dead") + states.count("dead and deferred")


def play(examples: int, *, seeded: bool = False) -> None:
    """seeded: the same every time, and what fails is not made smaller."""
    run_state_machine_as_test(
        QueueMachine,
        settings=settings(
            max_examples=examples, stateful_step_count=40, deadline=None, derandomize=seeded, database=None,
            suppress_health_check=list(HealthCheck), phases=[Phase.generate] if seeded else list(Phase),
        ),
    )  # fmt: skip


def test_a_queue_does_what_its_model_does(measure: Callable[[int], int]) -> None:
    play(measure(600))


def test_messages_that_are_delivered_too_often_are_found_by_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FragmentCore, "dead_letter_over", lambda self, over: None)
    with pytest.raises(AssertionError):
        play(100, seeded=True)


def test_a_lock_that_does_not_keep_others_out_is_found_by_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    give = MessageTable.give

    def unmarked(self, counts, last, *, marks, **named):  # type: ignore[no-untyped-def]
        give(self, counts, last, marks=marks & ~LOCKED if counts[0] == 3 else marks, **named)

    monkeypatch.setattr(MessageTable, "give", unmarked)
    with pytest.raises(AssertionError):
        play(400, seeded=True)
