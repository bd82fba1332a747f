"""Topics by seed: sends, receipts, crashes and failures, and what each subscription must have had in the end.

- conservation: what was accepted is in every subscription that it belongs to, once, until it was settled there;
- all or nothing: a message that nobody answered for is with all its subscriptions, or with none;
- settled for good: what was settled never comes back;
- immutability: a number of a subscription is one message's for ever.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from hubweir.errors import CorruptStore, StoreError
from hubweir.messaging_store.log import Appended, Refused
from hubweir.queue.fragment import NumberRange, ReceivedMessages
from hubweir.queue.settle_outcome import SettleOutcome
from hubweir.queue.sub_queue import ReceiveMode
from hubweir.queue.tests.conftest import DELETE, Got, message, opened, run_of
from hubweir.testing.memory_faults import Fault
from hubweir.testing.simulated_env import SimulatedEnv
from hubweir.topic.fan_out import FanOut, _copied
from hubweir.topic.tests.topic_bench import TopicBench, sql

NAMES = ("all", "even", "acts", "sessions")


@dataclass
class History:
    """One seed. What a test knows of a message is its text, and whether an action changed the copy.

    unknown: nobody answered for their send. maybe_done: nobody answered for their settlement; "*": any may be gone.
    """

    seed: int
    topic: TopicBench = field(init=False)
    accepted: list[str] = field(default_factory=list)
    unknown: set[str] = field(default_factory=set)
    done: dict[str, set[str]] = field(default_factory=lambda: {name: set() for name in NAMES})
    maybe_done: dict[str, set[str]] = field(default_factory=lambda: {name: set() for name in NAMES})
    numbers: dict[tuple[str, int], tuple[str, bool]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rng = Random(f"topic {self.seed}")
        env = SimulatedEnv(self.seed, interleaved=self.rng.choice([0.0, 0.1]))
        self.topic = TopicBench(env=env)
        self.topic.subscribe("all")
        self.topic.subscribe("even", rules=[sql("number % 2 = 0")])
        self.topic.subscribe(
            "acts", rules=[sql("number % 3 = 0", "SET third = 'yes'"), sql("number % 2 = 1", name="o")]
        )
        self.topic.subscribe("sessions", requires_session=True)
        self._upkeep()

    def _upkeep(self) -> None:
        self.topic.topic.upkeep.snapshot_records = self.rng.choice([5, 40, 10_000])
        self.topic.topic.upkeep.slack_bytes = self.rng.choice([-(1 << 30), 50_000])

    def run(self, steps: int = 40) -> None:
        choices = [(self.send, 8), (self.take, 6), (self.wait, 5), (self.maintain, 2), (self.crash, 2), (self.fail, 1)]
        for _ in range(steps):
            (step,) = self.rng.choices([each for each, _ in choices], [weight for _, weight in choices])
            step()
        self.topic.env.files.heal()
        for _ in range(2):
            self.topic.run_for(10_000)
            self.check()
            self.topic.restart()

    def send(self) -> None:
        texts = [f"{len(self.accepted) + len(self.unknown)}.{place}" for place in range(self.rng.choice([1, 2, 7]))]
        texts = [f"{self.seed}-{self.rng.getrandbits(40)}-{text}" for text in texts]
        messages = [
            message(text, session=self.rng.choice("xy"), properties={"number": sum(map(ord, text))}) for text in texts
        ]
        self.unknown.update(texts)

        def done(outcome: object) -> None:
            if isinstance(outcome, NumberRange):
                self.accepted += texts
                self.unknown.difference_update(texts)
            elif isinstance(outcome, Refused) and outcome.known:
                self.unknown.difference_update(texts)

        try:
            self.topic.fragment.enqueue(run_of(*messages), len(texts), self.topic.times(), done)
        except StoreError:
            self.unknown.difference_update(texts)

    def take(self) -> None:
        """Receive and delete from one subscription, or complete under lock."""
        name = self.rng.choice(["all", "even", "acts"])
        bench = self.topic.of(name)
        receiver = bench.receiver(mode=DELETE) if self.rng.random() < 0.4 else bench.receiver()
        answers = list[Any]()
        bench.fragment.receive(receiver, max_count=self.rng.choice([1, 5]), max_bytes=1 << 20, on_done=answers.append)
        self.topic.run_for(30)
        bench.fragment.cancel_receive(receiver)
        self.topic.run_for(30)
        if not answers or not isinstance(answers[0], ReceivedMessages):
            self.maybe_done[name] |= {"*"}  # it may have taken something
            return
        got = opened(answers[0])
        self._note(name, got)
        texts = {self._key(each) for each in got}
        if receiver.mode is ReceiveMode.RECEIVE_AND_DELETE:
            self.done[name] |= texts
            return
        self.maybe_done[name] |= texts

        def settled(codes: object) -> None:
            if isinstance(codes, bytes):
                self.done[name] |= {self._key(each) for each, code in zip(got, codes, strict=True) if not code}

        bench.fragment.settle(b"".join(each.token for each in got), SettleOutcome.COMPLETE, self.topic.times(), settled)

    def _key(self, got: Got) -> str:
        return f"{got.body.decode()}|{'third' in (got.properties or {})}"

    def _note(self, name: str, got: list[Got]) -> None:
        """A number is one message's for ever."""
        for each in got:
            said = self.numbers.setdefault(
                (name, each.number), (each.body.decode(), "third" in (each.properties or {}))
            )
            assert said == (each.body.decode(), "third" in (each.properties or {})), (name, each.number, said)

    def wait(self) -> None:
        self.topic.run_for(self.rng.choice([0, 1, 20, 1_500]))

    def maintain(self) -> None:
        self.topic.topic.maintain(self.topic.times())

    def crash(self) -> None:
        self.topic.env.files.heal()
        self.topic.restart(power_cut=self.rng.random() < 0.6)
        self._upkeep()

    def fail(self) -> None:
        self.topic.env.files.plan(self.rng.choice([Fault.SYNC_EIO, Fault.EIO, Fault.ENOSPC]), self.rng.choice([1, 3]))

    def expected(self, name: str, text: str) -> list[str]:
        number = sum(map(ord, text))
        plain, third = f"{text}|False", f"{text}|True"
        if name == "even":
            return [plain] if number % 2 == 0 else []
        if name == "acts":
            return [*([third] if number % 3 == 0 else []), *([plain] if number % 2 == 1 else [])]
        return [plain]

    def check(self) -> None:
        assert self.topic.fragment.counts().active == 0
        for name in NAMES:
            found = self.topic.of(name).peek()
            self._note(name, found)
            keys = [self._key(each) for each in found]
            assert len(set(keys)) == len(keys), f"{name} has a message twice"
            for text in self.accepted:
                for key in self.expected(name, text):
                    is_there, is_done = key in keys, key in self.done[name]
                    may_be_gone = key in self.maybe_done[name] or "*" in self.maybe_done[name]
                    assert not (is_there and is_done), f"{key} is in {name}, and was settled for good"
                    assert is_there or is_done or may_be_gone, f"{name} lost {key}"
            allowed = {key for text in [*self.accepted, *self.unknown] for key in self.expected(name, text)}
            assert set(keys) <= allowed, f"{name} has what was refused, or does not belong there"
            for text in self.unknown:  # whole with its subscriptions, or nowhere
                if name == "sessions":
                    is_there = f"{text}|False" in keys
                    in_all = f"{text}|False" in [self._key(each) for each in self.topic.of("all").peek()]
                    was_taken = f"{text}|False" in self.done["all"] | self.maybe_done["all"]
                    assert is_there == in_all or was_taken or "*" in self.maybe_done["all"], text


def forgets_one(counts: Mapping[int, array[int]]) -> list[bytes]:
    """A planted defect: of several subscriptions that get a message, one gets nothing."""
    numbers = sorted(counts)
    return _copied({number: counts[number] for number in (numbers[:-1] if len(numbers) > 1 else numbers)})


def takes_a_refusal_for_done(self: FanOut, counts: Any, run: Any, numbers: Any, outcome: Any) -> None:
    """A planted defect: copies that the log refused are there until the next start."""
    COPIED(self, counts, run, numbers, Appended(0, 0, 0, 0, 0) if isinstance(outcome, Refused) else outcome)


COPIED = FanOut._copied


@pytest.mark.parametrize(
    ("place", "defect"),
    [("_copied", forgets_one), ("FanOut._copied", takes_a_refusal_for_done)],
    ids=["forgets", "refusals"],
)
def test_a_planted_defect_is_found_by_a_history(
    monkeypatch: pytest.MonkeyPatch, place: str, defect: Callable[..., Any]
) -> None:
    monkeypatch.setattr(f"hubweir.topic.fan_out.{place}", defect)
    found = 0
    for seed in range(30):
        try:
            History(seed).run()
        except (AssertionError, CorruptStore):
            found += 1
            break
    assert found


@pytest.mark.parametrize("seed", range(30))
def test_an_accepted_message_is_in_every_subscription_it_belongs_to_through_crashes(seed: int) -> None:
    History(seed).run()


@pytest.mark.parametrize("seed", range(30, 50))
def test_so_it_is_where_the_copies_of_a_message_are_made_by_several_chains(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr("hubweir.topic.fan_out.COPIES", 1 + seed % 3)
    History(seed).run()
