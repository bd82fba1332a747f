"""Forwarding by seed: two machines that crash on their own, and movers whose words are late, lost or said twice.

A message whose send was answered is in one place, once: with the source, with the destination, in the transfer dead
letters, or received. One that nobody answered for is there once, or nowhere. (Promise P13)
"""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from hubweir.errors import ServiceError
from hubweir.messaging_store.log import Refused
from hubweir.queue.forwarding import Forwarding
from hubweir.queue.fragment import NumberRange, OpenTransfer, ReceivedMessages, TransferEnd
from hubweir.queue.fragment_settings import FragmentSettings
from hubweir.queue.sub_queue import SubQueue
from hubweir.queue.tests.conftest import DELETE, QueueBench, message, opened, run_of
from hubweir.queue.transfer_intake import TransferIntake
from hubweir.queue.transfers import Transfers
from hubweir.testing.memory_faults import Fault
from hubweir.testing.simulated_env import SimulatedEnv

NAME = b"source/0"


@dataclass
class History:
    """One seed. offers, answers: on their way; of a source that crashed, offers arrive all the same.

    is_calm: nothing crashes or fails, and more offers are questions.
    """

    seed: int
    is_calm: bool = False
    offers: list[tuple[OpenTransfer, bool]] = field(default_factory=list)
    answers: list[tuple[OpenTransfer, TransferEnd]] = field(default_factory=list)
    accepted: set[str] = field(default_factory=set)
    unknown: set[str] = field(default_factory=set)
    received: Counter[str] = field(default_factory=Counter)
    lives: list[int] = field(default_factory=lambda: [0, 0])
    sent: int = 0

    def __post_init__(self) -> None:
        self.rng = Random(f"forward {self.seed}")
        wide = FragmentSettings(max_size_bytes=self.rng.choice([None, 3_000]))
        self.source = QueueBench(FragmentSettings(), SimulatedEnv(2 * self.seed))
        self.destination = QueueBench(wide, SimulatedEnv(2 * self.seed + 1))
        self._upkeep()

    def _upkeep(self) -> None:
        for bench in (self.source, self.destination):
            bench.fragment.upkeep.snapshot_records = self.rng.choice([5, 10_000])
            bench.fragment.upkeep.slack_bytes = self.rng.choice([-(1 << 30), 50_000])

    def run(self, steps: int = 70) -> None:
        choices = [
            (self.send, 6), (self.take, 10), (self.arrive, 10), (self.hear, 10), (self.receive, 2), (self.maintain, 1),
            (self.wait, 12), (self.crash, 2), (self.fail, 1), (self.lose, 1),
        ]  # fmt: skip
        if self.is_calm:
            choices = choices[:-3]
        for _ in range(steps):
            (step,) = self.rng.choices([each for each, _ in choices], [weight for _, weight in choices])
            step()
        self.finish()

    # Steps

    def wait(self) -> None:
        for bench in (self.source, self.destination):
            bench.run_for(self.rng.choice([0, 5, 60, 60, 1_500]))

    def send(self) -> None:
        texts = [f"{self.sent}.{place}" for place in range(self.rng.choice([1, 2, 6]))]
        self.sent += 1
        self.unknown.update(texts)

        def done(outcome: object) -> None:
            if isinstance(outcome, NumberRange):
                self.accepted.update(texts)
                self.unknown.difference_update(texts)
            elif isinstance(outcome, Refused) and outcome.known:
                self.unknown.difference_update(texts)

        run = run_of(*(message(each + "|" + "x" * 100) for each in texts))
        self.source.fragment.enqueue(run, len(texts), self.source.times(), done)

    def take(self) -> None:
        life = self.lives[0]

        def taken(answer: object) -> None:
            if isinstance(answer, OpenTransfer) and answer.number and self.lives[0] == life:
                self.offers.append((answer, self.rng.random() < (0.5 if self.is_calm else 0.25)))

        self.source.fragment.take_transfer(SubQueue.MAIN, b"there", taken)

    def arrive(self) -> None:
        """One offer arrives, not always the oldest; it may arrive again."""
        if not self.offers:
            return
        place = self.rng.randrange(len(self.offers))
        transfer, asks = self.offers[place] if self.rng.random() < 0.2 else self.offers.pop(place)
        lives, nothing = list(self.lives), array("q")

        def told(answer: object) -> None:
            if lives != self.lives:
                return  # an end of the way is another process now
            how = self._end_of(answer)
            if how is not None:
                self.answers.append((transfer, how))

        try:
            self.destination.fragment.store_transfer(
                NAME, transfer.attempt, transfer.number, bytearray() if asks else bytearray(transfer.run),
                nothing if asks else transfer.firsts, nothing if asks else transfer.ends_ms,
                self.destination.times(), told,
            )  # fmt: skip
        except ServiceError as error:
            told(error)

    def _end_of(self, answer: object) -> TransferEnd | None:
        if answer is True:
            return TransferEnd.STORED
        if answer is False:
            return self.rng.choice([TransferEnd.REFUSED, TransferEnd.RETURNED])
        if isinstance(answer, ServiceError) and "may hold" in answer.text:
            return TransferEnd.RETURNED
        return None

    def hear(self) -> None:
        """One answer comes to the source."""
        if self.answers:
            transfer, how = self.answers.pop(self.rng.randrange(len(self.answers)))
            try:
                self.source.fragment.end_transfer(
                    SubQueue.MAIN, transfer.number, transfer.attempt, how, lambda answer: None, reason="no"
                )
            except ServiceError:
                return

    def lose(self) -> None:
        self.offers.clear()
        self.answers.clear()

    def receive(self) -> None:
        receiver, life = self.destination.receiver(mode=DELETE), self.lives[1]

        def got(answer: Any) -> None:
            if isinstance(answer, ReceivedMessages) and life == self.lives[1]:
                self._note(answer)

        self.destination.fragment.receive(receiver, max_count=3, max_bytes=1 << 20, on_done=got)
        self.destination.run_for(60)
        self.destination.fragment.cancel_receive(receiver)
        self.destination.env.files.heal()
        self.destination.run_for(5_000)  # so that what becomes of it is known

    def _note(self, answer: ReceivedMessages) -> None:
        self.received.update(each.body.split(b"|")[0].decode() for each in opened(answer))

    def maintain(self) -> None:
        for bench in (self.source, self.destination):
            bench.fragment.maintain(bench.times())
            bench.run_for(20)

    def fail(self) -> None:
        bench = self.rng.choice([self.source, self.destination])
        bench.env.files.plan(self.rng.choice([Fault.SYNC_EIO, Fault.EIO, Fault.ENOSPC]), self.rng.choice([1, 3]))

    def crash(self) -> None:
        side = self.rng.randrange(2)
        bench = (self.source, self.destination)[side]
        self.lives[side] += 1
        bench.env.files.heal()
        bench.restart(power_cut=self.rng.random() < 0.6)
        self.answers.clear()
        if side == 1:
            self.offers.clear()  # what is on its way to a process ends with it; what a process sent goes on
        self._upkeep()

    # The end

    def finish(self) -> None:
        for bench in (self.source, self.destination):
            bench.env.files.heal()
            bench.run_for(10_000)
        self.lose()
        for _ in range(3):
            self.take()
            self.source.run_for(2_000)
            for transfer, _ in self.offers[-1:]:
                self.offers = [(transfer, False)]
                self.arrive()
            self.destination.run_for(2_000)
            self.offers.clear()
            while self.answers:
                self.hear()
            self.source.run_for(2_000)
        for _ in range(2):
            self.check()
            self.source.restart()
            self.destination.restart()

    def check(self) -> None:
        there = Counter(self.received)
        source, destination = self.source, self.destination
        for bench, sub_queue in (
            (source, SubQueue.MAIN), (source, SubQueue.TRANSFER_DEAD_LETTERS), (destination, SubQueue.MAIN),
        ):  # fmt: skip
            there.update(each.body.split(b"|")[0].decode() for each in bench.peek(sub_queue=sub_queue))
        twice = {text for text, many in there.items() if many > 1}
        assert not twice, f"{twice} are there twice"
        assert not self.accepted - there.keys(), f"{self.accepted - there.keys()} are lost"
        assert there.keys() <= self.accepted | self.unknown


@pytest.mark.parametrize("seed", range(40))
def test_nothing_is_lost_and_nothing_is_there_twice(seed: int) -> None:
    History(seed, is_calm=seed % 4 == 0).run()


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 1_000, 100))
def test_nothing_is_lost_and_nothing_is_there_twice_in_many_more(first: int) -> None:
    for seed in range(1_000 + first, 1_100 + first):
        History(seed).run()


def finds_it(seeds: int = 60) -> bool:
    for seed in range(seeds):
        try:
            History(seed, is_calm=True).run(150)
        except AssertionError:
            return True
    return False


def test_histories_find_a_destination_that_stores_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    def expect(self: Transfers, operation: Any) -> None:
        self._is_new, self._arriving, self._arrived = True, operation, 0

    monkeypatch.setattr(Transfers, "expect", expect)
    assert finds_it()


def test_histories_find_a_destination_that_hears_earlier_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    store = TransferIntake.store

    def forgetful(self: TransferIntake, *said: Any) -> None:
        self._heard.clear()
        store(self, *said)

    monkeypatch.setattr(TransferIntake, "store", forgetful)
    assert finds_it()


def test_histories_find_a_source_that_believes_a_word_about_an_earlier_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    end = Forwarding.end

    def trusting(self: Forwarding, sub_queue: SubQueue, number: int, attempt: int, *more: Any) -> None:
        end(self, sub_queue, number, self._given.get(sub_queue, attempt), *more)

    monkeypatch.setattr(Forwarding, "end", trusting)
    assert finds_it()
