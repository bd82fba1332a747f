"""Transactions by seed, over one log and over two: machines that crash on their own, and words that are late or lost.

A transaction completes a message of each log and sends one. Where its client was told that it is committed, all of
that is done; where it was told that it is rolled back, nothing is; where nobody told it, one of the two. (Promise P12)

Long because a history is one thing: what clients and machines do, what is told, and what must hold of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

import pytest

from hubweir.errors import HubweirError, ServiceError, StoreError
from hubweir.messaging_store.log import Refused
from hubweir.queue.fragment import Effects, NumberRange, ReceivedMessages
from hubweir.queue.fragment_settings import FragmentSettings
from hubweir.queue.logged_transactions import LoggedTransactions
from hubweir.queue.operation import DECIDED, PREPARED, Operation
from hubweir.queue.settle_outcome import SettleOutcome
from hubweir.queue.tests.conftest import Got, QueueBench, message, opened, run_of
from hubweir.queue.transaction import Part, TransactedSettlement, commit_parts
from hubweir.queue.transaction_decisions import Fate, TransactionDecisions
from hubweir.testing.memory_faults import Fault
from hubweir.testing.simulated_env import SimulatedEnv

COORDINATOR, PARTICIPANT = range(2)
HOUR_MS = 3_600_000
Commit = Callable[[QueueBench, list[Part], Callable[[Refused | None], None]], None]


def append_parts(bench: QueueBench, parts: list[Part], on_done: Callable[[Refused | None], None]) -> None:
    """As the owner does it."""
    commit_parts(bench.fragment.core, parts, bench.times(), on_done)


@dataclass
class Done:
    """A transaction as its client knows it. completed: a message of each log, sent: to the coordinator's.

    is_committed: None while nobody said. is_over: nothing is decided by its client any more.
    """

    transaction: bytes
    completed: tuple[str, ...]
    sent: str
    is_committed: bool | None = None
    is_over: bool = False


@dataclass
class History:
    """One seed. words: steps of transactions that are on their way, each for the lives of both machines. fails: whether
    files fail, too."""

    seed: int
    commit: Commit = append_parts
    fails: bool = True
    all: list[Done] = field(default_factory=list)
    words: list[tuple[list[int], Callable[[], None]]] = field(default_factory=list)
    lives: list[int] = field(default_factory=lambda: [0, 0])
    held: list[dict[str, Got]] = field(default_factory=lambda: [{}, {}])
    sent: int = 0
    stored: list[set[str]] = field(default_factory=lambda: [set(), set()])

    def __post_init__(self) -> None:
        self.rng = Random(f"transaction {self.seed}")
        settings = FragmentSettings(lock_duration_ms=HOUR_MS, max_delivery_count=1_000)
        self.benches = [QueueBench(settings, SimulatedEnv(2 * self.seed + side)) for side in range(2)]
        self._upkeep()

    def _upkeep(self) -> None:
        for bench in self.benches:
            bench.fragment.upkeep.snapshot_records = self.rng.choice([5, 10_000])
            bench.fragment.upkeep.slack_bytes = self.rng.choice([-(1 << 30), 50_000])

    def run(self, steps: int = 60) -> None:
        choices = [
            (self.fill, 4), (self.begin, 12), (self.arrive, 24), (self.wait, 14), (self.ask, 4), (self.maintain, 2),
            (self.crash, 3), (self.lose, 1), (self.fail, 2 * self.fails),
        ]  # fmt: skip
        self.fill()
        for _ in range(steps):
            (step,) = self.rng.choices([each for each, _ in choices], [weight for _, weight in choices])
            step()
        self.finish()

    # Steps

    def wait(self) -> None:
        for bench in self.benches:
            bench.run_for(self.rng.choice([0, 3, 60, 1_500]))

    def fill(self) -> None:
        """Messages come to both logs and are locked, as far as the logs take them."""
        for side, bench in enumerate(self.benches):
            if bench.fragment.transactions.opened_in_doubt:
                continue
            texts = [f"{side}.{self.sent}.{place}" for place in range(3)]
            if isinstance(bench.enqueue(*map(message, texts)), NumberRange):
                self.stored[side].update(texts)
            got = {each.body.decode(): each for each in self._received(bench)}
            # One that a transaction had is no other one's: so whoever completed it is known.
            tried = {text for one in self.all for text in one.completed}
            self.held[side] |= {text: each for text, each in got.items() if text in self.stored[side] - tried}
        self.sent += 1

    def _received(self, bench: QueueBench) -> list[Got]:
        """What there is, locked; nothing where it cannot be read now."""
        answers: list[Any] = []
        receiver = bench.receiver()
        bench.fragment.receive(receiver, max_count=100, max_bytes=1 << 20, on_done=answers.append)
        bench.run_for(50)
        bench.fragment.cancel_receive(receiver)
        while not answers:
            bench.run_for(1_000)
        return opened(answers[0]) if isinstance(answers[0], ReceivedMessages) else []

    def begin(self) -> None:
        """A client discharges a transaction: over both logs, or over the coordinator's alone."""
        if any(bench.fragment.transactions.opened_in_doubt for bench in self.benches) or not all(self.held):
            return
        is_wide = self.rng.random() < 0.7
        number = len(self.all)
        sides = (COORDINATOR, PARTICIPANT) if is_wide else (COORDINATOR,)
        got = [self.held[side].pop(self.rng.choice(sorted(self.held[side]))) for side in sides]
        texts = tuple(each.body.decode() for each in got)
        one = Done(number.to_bytes(16, "big"), texts, f"t{number}")
        self.all.append(one)
        if not is_wide:
            self._decide(one, got[0], ())
            return
        self.benches[COORDINATOR].fragment.decisions.begin(one.transaction, "a gateway")
        self._later(partial(self._prepare, one, got))

    def _later(self, step: Callable[[], None]) -> None:
        self.words.append((list(self.lives), step))

    def _prepare(self, one: Done, got: list[Got]) -> None:
        bench = self.benches[PARTICIPANT]
        log_id = self.benches[COORDINATOR].log.log_id

        def prepared(refused: Refused | None) -> None:
            if refused is None:
                self._later(partial(self._decide, one, got[0], ("participant",)))
            else:
                self._later(partial(self._give_up, one))

        try:
            effects = Effects([completes(got[1])])
            part = bench.fragment.prepare(one.transaction, log_id, effects, bench.times())
        except ServiceError:
            self._give_up(one)
            return
        self.commit(bench, [part], prepared)

    def _give_up(self, one: Done) -> None:
        """The client hears that it is rolled back once the coordinator's log says so."""
        one.is_over = True
        if self.benches[COORDINATOR].fragment.decisions.fate(one.transaction) is Fate.ROLLED_BACK:
            one.is_committed = False

    def _decide(self, one: Done, got: Got, logs: tuple[str, ...]) -> None:
        bench = self.benches[COORDINATOR]
        one.is_over = True
        parts: list[Part] = []

        def decided(refused: Refused | None) -> None:
            if refused is None or refused.known:
                one.is_committed = refused is None
            if refused is None and logs:
                self._later(partial(self._end, one.transaction, is_committed=True))

        try:
            if logs:
                parts.append(bench.fragment.decisions.decide(one.transaction, logs))
            effects = Effects([completes(got)], run=run_of(message(one.sent)), messages=1)
            parts.append(bench.fragment.transact(effects, bench.times()))
        except ServiceError as error:
            for part in parts:
                part.on_done(Refused(StoreError(error.text)))
            one.is_committed = False
            return
        life = self.lives[COORDINATOR]
        self.commit(bench, parts, lambda refused: decided(refused) if life == self.lives[COORDINATOR] else None)

    def _end(self, transaction: bytes, *, is_committed: bool) -> None:
        """The participant hears it; when its log says so, too, the coordinator may forget it."""

        def ended(refused: Refused | None) -> None:
            if refused is None and is_committed:
                self._later(
                    lambda: self.benches[COORDINATOR].fragment.decisions.forget(transaction, lambda refused: None)
                )

        bench = self.benches[PARTICIPANT]
        bench.fragment.end_transaction(transaction, is_committed=is_committed, times=bench.times(), on_done=ended)

    def arrive(self) -> None:
        """One word arrives, not always the oldest; who crashed hears nothing of an earlier life."""
        if self.words:
            lives, step = self.words.pop(self.rng.randrange(len(self.words)))
            if lives == self.lives:
                step()

    def ask(self) -> None:
        """The participant asks what became of what is in doubt, and the coordinator says it again."""
        coordinator, participant = (bench.fragment for bench in self.benches)
        for transaction in list(participant.transactions.in_doubt):
            fate = coordinator.decisions.fate(transaction)
            if fate is not Fate.OPEN:
                self._end(transaction, is_committed=fate is Fate.COMMITTED)

    def maintain(self) -> None:
        for bench in self.benches:
            bench.fragment.maintain(bench.times())
            bench.run_for(20)

    def fail(self) -> None:
        bench = self.rng.choice(self.benches)
        bench.env.files.plan(self.rng.choice([Fault.SYNC_EIO, Fault.EIO, Fault.ENOSPC]), self.rng.choice([1, 3]))

    def lose(self) -> None:
        self.words.clear()

    def crash(self) -> None:
        side = self.rng.randrange(2)
        self._restart(side, power_cut=self.rng.random() < 0.6)
        for one in self.all:
            one.is_over = True
        self._upkeep()

    def _restart(self, side: int, *, power_cut: bool) -> None:
        self.lives[side] += 1
        self.held[side] = {}
        self.benches[side].env.files.heal()
        self.benches[side].restart(power_cut=power_cut)

    # The end

    def finish(self) -> None:
        for bench in self.benches:
            bench.env.files.heal()
            bench.run_for(40_000)
        self.words.clear()
        for _ in range(3):
            for _ in range(3):
                self.ask()
                for bench in self.benches:
                    bench.run_for(3_000)
            self.check()
            for side in range(2):
                self._restart(side, power_cut=True)

    def check(self) -> None:
        """Atomicity, and conservation of what no transaction completed."""
        assert not self.benches[PARTICIPANT].fragment.transactions.in_doubt, "a transaction stays in doubt"
        there = [Counter(each.body.decode() for each in bench.peek()) for bench in self.benches]
        completed = {text for one in self.all for text in one.completed}
        for side in range(2):
            lost = self.stored[side] - completed - there[side].keys()
            assert not lost, f"{lost} are lost"
            assert max(there[side].values(), default=1) == 1, "a message is there twice"
        for one in self.all:
            done = [not there[side][text] for side, text in enumerate(one.completed)]
            done.append(bool(there[COORDINATOR][one.sent]))
            name = f"transaction {one.sent[1:]}, over {len(one.completed)} logs,"
            assert len(set(done)) == 1, f"{name} is done in part: {done}"
            assert one.is_committed in (None, done[0]), f"{name} was answered {one.is_committed} and is {done[0]}"


def completes(got: Got) -> TransactedSettlement:
    return TransactedSettlement("", got.token, SettleOutcome.COMPLETE)


@pytest.mark.parametrize("part", range(5))
def test_a_transaction_is_done_whole_or_not_at_all(measure: Callable[[int], int], first_seed: int, part: int) -> None:
    for seed in range(first_seed + part, first_seed + measure(5_000), 5):
        play(seed)


def play(seed: int, commit: Commit = append_parts, *, fails: bool = True) -> History:
    history = History(seed, commit, fails)
    try:
        history.run()
    except (AssertionError, HubweirError) as fault:
        raise AssertionError(f"seed {seed}, HUBWEIR_FIRST_SEED={seed} plays it again: {fault}") from fault
    return history


def test_histories_come_to_every_end() -> None:
    ends = {(len(one.completed), one.is_committed) for seed in range(30) for one in play(seed).all}
    assert ends == {(logs, told) for logs in (1, 2) for told in (True, False, None)}


def finds(commit: Commit = append_parts) -> str:
    """What the first history says that shows a planted defect."""
    for seed in range(150):
        try:
            play(seed, commit, fails=False)
        except AssertionError as difference:
            return str(difference)
    pytest.fail("150 histories found nothing")


def test_histories_find_a_commit_of_two_appends() -> None:
    def one_by_one(bench: QueueBench, parts: list[Part], on_done: Callable[[Refused | None], None]) -> None:
        def first_done(refused: Refused | None) -> None:
            if refused is None and parts[1:]:
                append_parts(bench, parts[1:], on_done)
            else:
                on_done(refused)

        append_parts(bench, parts[:1], first_done)

    assert "is done in part" in finds(one_by_one)


def test_histories_find_a_decision_that_a_start_forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    say = LoggedTransactions.say

    def forgetful(self: LoggedTransactions, operation: Operation) -> list[Operation]:
        found = say(self, operation)
        if operation.code == DECIDED:
            self.decided.clear()
        return found

    monkeypatch.setattr(LoggedTransactions, "say", forgetful)
    assert "is done in part" in finds()


def test_histories_find_a_participant_that_does_not_wait_for_the_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    say = LoggedTransactions.say

    def hasty(self: LoggedTransactions, operation: Operation) -> list[Operation]:
        if operation.code == PREPARED:
            return []
        return say(self, operation)

    monkeypatch.setattr(LoggedTransactions, "say", hasty)
    assert "is done in part" in finds()


def test_histories_find_an_open_decision_that_is_called_rolled_back(monkeypatch: pytest.MonkeyPatch) -> None:
    fate = TransactionDecisions.fate

    def hasty(self: TransactionDecisions, transaction: bytes) -> Fate:
        found = fate(self, transaction)
        return Fate.ROLLED_BACK if found is Fate.OPEN else found

    monkeypatch.setattr(TransactionDecisions, "fate", hasty)
    assert "is done in part" in finds()
