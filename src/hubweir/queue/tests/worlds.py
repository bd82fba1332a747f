"""Worlds by seed: clients that send, receive and settle, a fragment that crashes and fails, and what must hold.

A world knows only what its clients were told. It checks with every answer, and at the end over all that is left:

- conservation: what was accepted is in exactly one place, once, until it was settled, received and deleted, or could
  expire; what was refused is nowhere; of what was never answered a send is there whole, or not at all;
- settled for good: what a settlement was answered for never comes back;
- lock exclusivity: nobody gets a message while another one's lock of it holds, and a token settles only then;
- immutability: a sequence number is one message's for ever, and rises in the order of sends;
- delivery counts: never more than deliveries, and exactly those where nothing crashed;
- order: what is ready comes by its sequence numbers.

Long because a world is one thing: what it does, what it is told, and what it makes of that.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from hubweir.errors import ServiceError
from hubweir.messaging_store.log import Refused
from hubweir.queue.fragment import FragmentReceiver, NumberRange, ReceivedMessages
from hubweir.queue.fragment_settings import FragmentSettings
from hubweir.queue.settle_outcome import SETTLED, SettleOutcome
from hubweir.queue.sub_queue import ReceiveMode, SubQueue
from hubweir.queue.tests.conftest import DELETE, PEEK_LOCK, Got, QueueBench, message, opened, run_of
from hubweir.testing.memory_faults import Fault
from hubweir.testing.simulated_env import SimulatedEnv

LOCK_MS = 5_000


# A delivery counts when it failed: not when its receiver put the message aside, or gave it back.
NOT_COUNTED = (SettleOutcome.DEFER, SettleOutcome.DEAD_LETTER, SettleOutcome.RELEASE)


@dataclass
class Sent:
    """A message as the world knows it. accepted: None while nobody said. gone: for certain; may_be_gone: perhaps."""

    body: str
    group: int
    ttl_ms: int | None
    accepted: bool | None = None
    gone: bool = False
    may_be_gone: bool = False
    deferred: bool = False
    dead: bool = False
    number: int | None = None
    scheduled: bool = False
    token: bytes = b""
    locked_until_ms: int = -1  # monotonic; -1: nobody has it
    is_asked_for: bool = False  # as a deferred one, and not answered
    settling: SettleOutcome | None = None
    most_deliveries: int = 0
    least_deliveries: int = 0


@dataclass
class World:
    """One seed."""

    seed: int
    fails: bool = True  # whether files fail, too
    bench: QueueBench = field(init=False)
    sent: dict[str, Sent] = field(default_factory=dict)
    groups: dict[int, list[Sent]] = field(default_factory=dict)
    numbers: dict[int, str] = field(default_factory=dict)
    receivers: list[FragmentReceiver] = field(default_factory=list)
    waiting: dict[FragmentReceiver, Any] = field(default_factory=dict)
    life: int = 0
    faults: list[Exception] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = Random(f"world {self.seed}")
        settings = FragmentSettings(
            lock_duration_ms=LOCK_MS,
            max_delivery_count=self.rng.choice([2, 3, 1_000]),
            default_ttl_ms=self.rng.choice([None, 30_000]),
            dead_letters_on_expiry=self.rng.random() < 0.5,
        )
        env = SimulatedEnv(self.seed, interleaved=self.rng.choice([0.0, 0.1]))
        self.bench = QueueBench(settings, env=env, late_ms=self.rng.choice([0, 0, 400]))
        self._opened()

    def _opened(self) -> None:
        upkeep = self.bench.fragment.upkeep
        upkeep.snapshot_records = self.rng.choice([5, 40, 10_000])
        upkeep.slack_bytes = self.rng.choice([-(1 << 30), 50_000])
        self.receivers = [self.bench.receiver() for _ in range(3)]
        self.receivers += [self.bench.receiver(mode=DELETE), self.bench.receiver(SubQueue.DEAD_LETTERS)]
        self.waiting = {}

    # Steps

    def run(self, steps: int = 60) -> None:
        choices = [
            (self.send, 8), (self.receive, 10), (self.settle, 10), (self.pass_time, 6), (self.take_deferred, 2),
            (self.renew, 2), (self.peek, 2), (self.maintain, 3), (self.crash, 1), (self.fail, 1),
            (self.let_locks_end, 1),
        ]  # fmt: skip
        for _ in range(steps):
            (step,) = self.rng.choices([each for each, _ in choices], [weight for _, weight in choices])
            step()
            self._raise_faults()
        self.finish()
        self._raise_faults()

    def _raise_faults(self) -> None:
        """A fault in an answer stops the log, and is not raised by it."""
        if self.faults:
            raise self.faults[0]

    def _noting(self, answered: Callable[[Any], None]) -> Callable[[Any], None]:
        """The same; nothing of an earlier process may answer, and its faults are kept."""
        life = self.life

        def called(answer: Any) -> None:
            try:
                assert life == self.life, "a process that is gone answers"
                answered(answer)
            except Exception as fault:
                self.faults.append(fault)
                raise

        return called

    def send(self) -> None:
        group = len(self.groups)
        some = []
        for place in range(self.rng.choice([1, 1, 3, 20])):
            ttl_ms = self.rng.choice([None, None, None, 2_000, 20_000])
            sent = Sent(f"{group}.{place}", group, ttl_ms, scheduled=self.rng.random() < 0.15)
            self.sent[sent.body] = sent
            some.append(sent)
        self.groups[group] = some
        at_ms = self.bench.now_ms() + self.rng.randrange(1, 8_000)
        run = run_of(
            *(
                message(
                    each.body + "|" + "x" * self.rng.choice([0, 100, 3_000]),
                    ttl_ms=each.ttl_ms,
                    scheduled_ms=at_ms if each.scheduled else None,
                )
                for each in some
            ),
            size=self.rng.choice([1, 7, 100]),
        )

        def answered(answer: NumberRange | Refused | ServiceError) -> None:
            if isinstance(answer, NumberRange):
                assert answer.next_number - answer.first_number == len(some)
                for place, each in enumerate(some):
                    each.accepted = True
                    self._is(answer.first_number + place, each)
            elif isinstance(answer, Refused) and answer.known:
                for each in some:
                    each.accepted = False

        self.bench.fragment.enqueue(run, len(some), self.bench.times(), self._noting(answered))
        self._maybe_wait()

    def receive(self) -> None:
        receiver = self.rng.choice(self.receivers)
        if receiver in self.waiting:
            return
        self.waiting[receiver] = True

        def answered(answer: ReceivedMessages | Refused | ServiceError) -> None:
            self.waiting.pop(receiver, None)
            if isinstance(answer, ReceivedMessages):
                got = opened(answer)
                assert [each.number for each in got] == sorted({each.number for each in got})
                self._received(got, receiver.mode, receiver.sub_queue)
            else:
                # Whether a message was taken away is not known where the log failed.
                assert isinstance(answer, Refused)
                self._perhaps_taken(receiver)

        self.bench.fragment.receive(
            receiver,
            max_count=self.rng.choice([1, 2, 10]),
            max_bytes=self.rng.choice([100, 10_000, 1 << 20]),
            on_done=self._noting(answered),
        )
        self._maybe_wait()
        if receiver in self.waiting and self.rng.random() < 0.3:
            self.bench.fragment.cancel_receive(receiver)

    def settle(self) -> None:
        tokens = [each for each in self.sent.values() if each.token]
        if not tokens:
            return
        some = self.rng.sample(tokens, min(len(tokens), self.rng.choice([1, 1, 3])))
        outcome = self.rng.choice(list(SettleOutcome))
        now_ms = self.bench.env.monotonic_ms()
        holds = [each.locked_until_ms > now_ms and each.settling is None for each in some]
        before = [each.token for each in some]
        is_at_once = outcome is SettleOutcome.RELEASE  # its answer alone waits for the log
        for each, good in zip(some, holds, strict=True):
            if good and is_at_once:
                self._settled(each, outcome)
            elif good:
                each.settling = outcome

        def answered(answer: bytes | Refused | ServiceError) -> None:
            assert not isinstance(answer, ServiceError)
            for place, each in enumerate(some):
                if isinstance(answer, Refused) and is_at_once:
                    continue
                if isinstance(answer, Refused):
                    if holds[place] and each.token == before[place]:
                        each.settling = None
                        if each.dead and outcome is SettleOutcome.DEAD_LETTER:
                            each.token, each.locked_until_ms = b"", -1  # it was abandoned before
                        if not answer.known:
                            self._perhaps_settled(each, outcome)
                    continue
                done = answer[place] == SETTLED
                assert done == holds[place], f"{each.body}: {outcome.name} was answered {answer[place]}"
                if done and not is_at_once:
                    self._settled(each, outcome)

        self.bench.fragment.settle(b"".join(before), outcome, self.bench.times(), self._noting(answered))
        self._maybe_wait()

    def take_deferred(self) -> None:
        some = [each for each in self.sent.values() if each.deferred and each.number and not each.gone]
        if not some:
            return
        one = self.rng.choice(some)
        assert one.number is not None
        mode = self.rng.choice([PEEK_LOCK, PEEK_LOCK, DELETE])

        def answered(answer: ReceivedMessages | Refused | ServiceError) -> None:
            one.is_asked_for = False
            if isinstance(answer, ReceivedMessages):
                self._received(opened(answer), mode, SubQueue.MAIN)
            elif mode is DELETE:
                one.may_be_gone = True

        try:
            self.bench.fragment.receive_deferred(
                SubQueue.MAIN, array("q", [one.number]), mode, self.bench.times(), self._noting(answered)
            )
            one.is_asked_for = one.locked_until_ms < self.bench.env.monotonic_ms() and not one.gone
        except ServiceError:
            now_ms = self.bench.env.monotonic_ms()
            is_locked = one.locked_until_ms > now_ms - 100 or one.settling is not None or one.is_asked_for
            # Behind its last delivery a deferred message is a dead letter.
            is_used_up = one.most_deliveries >= self.bench.fragment.settings.max_delivery_count
            assert is_locked or one.may_be_gone or is_used_up, f"{one.body} is deferred and not found"
        self._maybe_wait()

    def renew(self) -> None:
        tokens = [each for each in self.sent.values() if each.token]
        if not tokens:
            return
        one, now_ms = self.rng.choice(tokens), self.bench.env.monotonic_ms()
        holds = one.locked_until_ms > now_ms and one.settling is None
        (until_ms,) = self.bench.fragment.renew(one.token, self.bench.times())
        assert bool(until_ms) == holds, f"{one.body}: a lock was renewed until {until_ms}"
        if holds:
            one.locked_until_ms = now_ms + LOCK_MS

    def peek(self) -> None:
        gone = {each.body for each in self.sent.values() if each.gone}

        def answered(answer: ReceivedMessages | Refused | ServiceError) -> None:
            if isinstance(answer, ReceivedMessages):
                for each in opened(answer):
                    body = each.body.split(b"|")[0].decode()
                    assert body not in gone, f"{body} was gone"

        for sub_queue in (SubQueue.MAIN, SubQueue.DEAD_LETTERS):
            self.bench.fragment.peek(sub_queue, 1, max_count=50, max_bytes=1 << 20, on_done=self._noting(answered))
        self._maybe_wait()

    def maintain(self) -> None:
        self.bench.fragment.maintain(self.bench.times())
        self._maybe_wait()

    def fail(self) -> None:
        """A file call to come fails."""
        if not self.fails:
            return
        self.bench.env.files.plan(self.rng.choice([Fault.SYNC_EIO, Fault.EIO, Fault.ENOSPC]), self.rng.choice([1, 3]))

    def pass_time(self) -> None:
        self.bench.run_for(self.rng.choice([1, 20, 200, 1_500]))

    def let_locks_end(self) -> None:
        self.bench.run_for(LOCK_MS + 100)

    def _maybe_wait(self) -> None:
        if self.rng.random() < 0.7:
            self.bench.run_for(self.rng.choice([0, 5, 60]))

    def crash(self) -> None:
        power_cut = self.rng.random() < 0.6
        self.bench.env.files.heal()
        self.life += 1
        self.bench.restart(power_cut=power_cut)
        for each in self.sent.values():
            if each.settling is not None:
                self._perhaps_settled(each, each.settling)
            if each.token or each.settling is not None:
                each.least_deliveries = min(each.least_deliveries, max(0, each.most_deliveries - 1))
            each.token, each.locked_until_ms, each.settling = b"", -1, None
        # A delivery whose LOCKED was not durable is forgotten, and so is one that nobody was answered.
        for each in self.sent.values():
            each.least_deliveries = 0
            each.most_deliveries += 1
            each.may_be_gone = each.may_be_gone or each.is_asked_for or self._was_deleting(each)
            each.is_asked_for = False
        self._opened()

    def _was_deleting(self, each: Sent) -> bool:
        return any(receiver.mode is DELETE for receiver in self.waiting) and not each.gone

    # What the world is told

    def _is(self, number: int, sent: Sent) -> None:
        assert self.numbers.setdefault(number, sent.body) == sent.body, f"number {number} was {self.numbers[number]}"
        sent.number = number

    def _seen(self, got: Got) -> Sent:
        sent = self.sent[got.body.split(b"|")[0].decode()]
        assert not sent.gone, f"{sent.body} was gone"
        assert sent.accepted is not False, f"{sent.body} was refused"
        sent.accepted = True
        if sent.number != got.number:
            assert sent.number is None or sent.scheduled, f"{sent.body} had {sent.number} and has {got.number}"
            self._is(got.number, sent)
        return sent

    def _received(self, got: list[Got], mode: ReceiveMode, sub_queue: SubQueue) -> None:
        now_ms = self.bench.env.monotonic_ms()
        for each in got:
            sent = self._seen(each)
            # A dead letter that is dead-lettered is unlocked before the others of its settlement are logged.
            is_abandoned = sent.dead and sent.settling is SettleOutcome.DEAD_LETTER
            assert sent.locked_until_ms <= now_ms or is_abandoned, f"{sent.body} is locked by somebody else"
            assert sent.least_deliveries <= each.deliveries <= sent.most_deliveries, f"{sent.body}: {each.deliveries}"
            if mode is DELETE:
                sent.gone = True
                continue
            sent.token, sent.settling = each.token, None
            sent.locked_until_ms = now_ms + each.locked_until_ms - self.bench.now_ms()
            sent.most_deliveries = sent.least_deliveries = each.deliveries
            if sub_queue is SubQueue.MAIN:
                sent.most_deliveries += 1
                sent.least_deliveries += 1
            else:
                sent.dead = True

    def _settled(self, sent: Sent, outcome: SettleOutcome) -> None:
        sent.token, sent.locked_until_ms, sent.settling = b"", -1, None
        if outcome in NOT_COUNTED and not sent.dead:
            sent.most_deliveries -= 1
            sent.least_deliveries -= 1
        if outcome is SettleOutcome.COMPLETE:
            sent.gone = True
        elif outcome is SettleOutcome.DEFER and not sent.dead:
            sent.deferred = True
        elif outcome is SettleOutcome.DEAD_LETTER:
            sent.dead, sent.deferred = True, False

    def _perhaps_settled(self, sent: Sent, outcome: SettleOutcome) -> None:
        if outcome in NOT_COUNTED:
            sent.least_deliveries = max(0, sent.least_deliveries - 1)
        if outcome is SettleOutcome.COMPLETE:
            sent.may_be_gone = True
        elif outcome is SettleOutcome.DEFER:
            sent.deferred = False

    def _perhaps_taken(self, receiver: FragmentReceiver) -> None:
        if receiver.mode is DELETE:
            for each in self.sent.values():
                each.may_be_gone = True

    # The end

    def finish(self) -> None:
        """Let everything come to rest, look at all that is left, and again after a last crash."""
        self.bench.env.files.heal()
        for receiver in list(self.waiting):
            self.bench.fragment.cancel_receive(receiver)
        # Until no lock holds, and all that can expire has.
        self.bench.run_for(60_000)
        first = self._everything()
        self._check(first)
        self.life += 1
        self.bench.restart(power_cut=True)
        self.bench.run_for(1_000)
        self.life -= 1
        again = self._everything()
        may_expire = {each.body for each in self.sent.values() if self._may_expire(each)}
        for body in (first.keys() | again.keys()) - may_expire:
            assert first.get(body) == again.get(body), f"{body} was {first.get(body)} and is {again.get(body)}"

    def _everything(self) -> dict[str, tuple[int, SubQueue]]:
        found: dict[str, tuple[int, SubQueue]] = {}
        for sub_queue in (SubQueue.MAIN, SubQueue.DEAD_LETTERS):
            from_number = 1
            while True:
                answers: list[Any] = []
                self.bench.fragment.peek(
                    sub_queue, from_number, max_count=100, max_bytes=1 << 20, on_done=answers.append
                )
                self.bench.run_for(1_000)
                got = opened(answers[0])
                if not got:
                    break
                for each in got:
                    sent = self._seen(each)
                    assert sent.body not in found, f"{sent.body} is there twice"
                    found[sent.body] = (each.number, sub_queue)
                from_number = got[-1].number + 1
        counts = self.bench.fragment.counts()
        held = counts.active + counts.deferred + counts.scheduled + counts.dead_lettered
        assert held == len(found), f"{held} are counted, {len(found)} are there"
        return found

    def _may_expire(self, sent: Sent) -> bool:
        return sent.ttl_ms is not None or self.bench.settings.default_ttl_ms is not None

    def _check(self, found: dict[str, tuple[int, SubQueue]]) -> None:
        for sent in self.sent.values():
            if sent.accepted and not sent.gone and not sent.may_be_gone and not self._may_expire(sent):
                assert sent.body in found, f"{sent.body} was accepted and is lost"
        for some in self.groups.values():
            if all(each.accepted is None for each in some):
                there = [each.body in found for each in some]
                assert not any(there), "what nobody saw is there"
            if any(each.accepted for each in some):
                for each in some:
                    unknown = each.accepted is None and not self._may_expire(each) and not each.may_be_gone
                    assert not unknown or each.body in found, f"a part of send {each.group} is not there"
