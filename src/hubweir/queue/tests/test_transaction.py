"""Transactions of one log: what a fragment does of one, all of it or nothing, through refusals, faults and crashes."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from hubweir.errors import (
    MESSAGE_LOCK_LOST,
    MESSAGE_NOT_FOUND,
    NOT_ALLOWED,
    RESOURCE_LIMIT,
    SERVER_BUSY,
    DiskFull,
    ServiceError,
)
from hubweir.messaging_store.log import Refused
from hubweir.messaging_store.record import headers_of
from hubweir.queue.fragment import Effects
from hubweir.queue.fragment_settings import FragmentSettings
from hubweir.queue.settle_outcome import LOCK_LOST, SETTLED, SettleDetails, SettleOutcome
from hubweir.queue.sub_queue import ReceiveMode, SubQueue
from hubweir.queue.tests.conftest import Got, QueueBench, bodies, message, opened, run_of
from hubweir.queue.transaction import TransactedSettlement, commit_parts
from hubweir.testing.answers import runs_of
from hubweir.testing.memory_faults import Fault
from hubweir.testing.simulated_env import SimulatedEnv

COMPLETE, ABANDON, DEFER = SettleOutcome.COMPLETE, SettleOutcome.ABANDON, SettleOutcome.DEFER
DEAD_LETTER = SettleOutcome.DEAD_LETTER
WHY = SettleDetails(reason="why", properties=b"")
BenchWith = Callable[..., QueueBench]


@dataclass
class Work:
    """What a transaction does."""

    bench: QueueBench
    settlements: list[TransactedSettlement] = field(default_factory=list)
    cancelled: list[int] = field(default_factory=list)
    sent: list[bytes] = field(default_factory=list)

    def settle(
        self, got: Got | list[Got], outcome: SettleOutcome = COMPLETE, details: SettleDetails | None = None
    ) -> Work:
        some = got if isinstance(got, list) else [got]
        tokens = b"".join(each.token for each in some)
        self.settlements.append(TransactedSettlement("", tokens, outcome, details))
        return self

    def send(self, *messages: bytes) -> Work:
        self.sent += messages
        return self

    def begin(self) -> list[Refused | None]:
        """Append it; the answer, when it comes."""
        bench, answers = self.bench, list[Any]()
        effects = Effects(self.settlements, array("q", self.cancelled), run_of(*self.sent, size=2), len(self.sent))
        part = bench.fragment.transact(effects, bench.times())
        commit_parts(bench.fragment.core, [part], bench.times(), answers.append)
        return answers

    def done(self, wait_ms: int = 50) -> Refused | None:
        answers = self.begin()
        self.bench.run_for(wait_ms)
        [answer] = answers
        return answer

    def refused(self) -> ServiceError:
        with pytest.raises(ServiceError) as refused:
            self.begin()
        return refused.value


def locked(bench: QueueBench, *names: str) -> list[Got]:
    """Messages that were sent and received."""
    bench.send(*names)
    got = bench.receive(max_count=len(names))
    assert bodies(got) == list(names)
    return got


def test_all_that_a_transaction_does_is_done_together(bench: QueueBench) -> None:
    a, b, c, d = locked(bench, "a", "b", "c", "d")
    [scheduled] = bench.send("later", scheduled_ms=bench.now_ms() + 60_000)
    work = Work(bench).settle(a).settle(b, DEFER).settle(c, DEAD_LETTER, WHY).settle(d, ABANDON).send(message("x"))
    work.cancelled = [scheduled]
    assert work.done() is None
    counts = bench.fragment.counts()
    assert (counts.active, counts.deferred, counts.dead_lettered, counts.scheduled) == (2, 1, 1, 0)
    assert bodies(bench.receive()) == ["d", "x"]
    [dead] = bench.receive(bench.receiver(SubQueue.DEAD_LETTERS))
    assert dead.properties == {"DeadLetterReason": "why"}
    assert bodies(bench.deferred(b.number)) == ["b"]


def test_nobody_sees_anything_of_it_before_it_is_durable(bench: QueueBench) -> None:
    [a] = locked(bench, "a")
    answers = Work(bench).settle(a).send(message("x")).begin()
    assert answers == [] and bench.fragment.counts().active == 1
    assert bodies(bench.peek()) == ["a"]  # asked before, answered later
    assert bodies(bench.peek()) == ["x"] and answers == [None]


def test_what_is_marked_is_settled_by_nobody_else_meanwhile(bench: QueueBench) -> None:
    [a] = locked(bench, "a")
    answers = Work(bench).settle(a).begin()
    codes: list[Any] = []
    bench.fragment.settle(a.token, COMPLETE, bench.times(), codes.append)
    assert codes == [bytes((LOCK_LOST,))]
    bench.run_for(50)
    assert answers == [None]


@pytest.mark.parametrize("outcome", [COMPLETE, ABANDON, DEFER, DEAD_LETTER])
def test_one_lost_lock_undoes_what_was_marked_before(bench: QueueBench, outcome: SettleOutcome) -> None:
    a, b = locked(bench, "a", "b")
    bench.complete([b])
    refused = Work(bench).settle(a, outcome).settle(b, outcome).send(message("x")).refused()
    assert refused.condition is MESSAGE_LOCK_LOST
    bench.run_for(50)
    assert bodies(bench.peek()) == ["a"]
    assert bench.settle([a], outcome) == [SETTLED]  # its lock is as good as before


def test_the_same_message_twice_is_a_lost_lock(bench: QueueBench) -> None:
    [a] = locked(bench, "a")
    assert Work(bench).settle(a).settle(a).refused().condition is MESSAGE_LOCK_LOST
    assert Work(bench).settle([a, a]).refused().condition is MESSAGE_LOCK_LOST
    bench.complete([a])


def test_a_release_is_none_of_a_transaction(bench: QueueBench) -> None:
    [a] = locked(bench, "a")
    assert Work(bench).settle(a, SettleOutcome.RELEASE).refused().condition is NOT_ALLOWED
    bench.complete([a])


def test_what_a_queue_does_not_take_undoes_the_settlements(bench_with: BenchWith) -> None:
    bench = bench_with(max_size_bytes=500)
    [a] = locked(bench, "a")
    work = Work(bench).settle(a).send(*(message("x" * 400) for _ in range(2)))
    assert work.refused().condition is RESOURCE_LIMIT
    bench.complete([a])


def test_a_message_that_is_not_scheduled_cannot_be_cancelled_and_the_rest_is_undone(bench: QueueBench) -> None:
    [a] = locked(bench, "a")
    [scheduled] = bench.send("later", scheduled_ms=bench.now_ms() + 60_000)
    work = Work(bench, cancelled=[scheduled, a.number]).settle(a)
    assert work.refused().condition is MESSAGE_NOT_FOUND
    assert Work(bench, cancelled=[scheduled]).settle(a).done() is None
    assert bench.fragment.counts().scheduled == 0


def test_a_log_that_refuses_leaves_everything_as_it_was(bench: QueueBench) -> None:
    a, b = locked(bench, "a", "b")
    bench.env.files.plan(Fault.SYNC_EIO, 1)
    answer = Work(bench).settle(a).settle(b, ABANDON).send(message("x")).done(200)
    assert isinstance(answer, Refused) and answer.known
    assert bodies(bench.peek()) == ["a", "b"]
    assert bench.receive() == []  # both are locked still
    bench.run_for(2_000)
    assert bench.settle([a, b]) == [SETTLED, SETTLED]


def test_duplicates_are_told_at_the_commit_and_not_before(bench_with: BenchWith) -> None:
    bench = bench_with(duplicate_window_ms=60_000)
    assert Work(bench).send(message("x", message_id="1"), message("y", message_id="2")).done() is None
    assert Work(bench).send(message("again", message_id="1"), message("z", message_id="3")).done() is None
    assert bodies(bench.receive()) == ["x", "y", "z"]


def test_a_deferred_one_keeps_its_delivery_count_over_a_restart(bench: QueueBench) -> None:
    """The count of the delivery stands in front of what takes it back, though both came in one turn."""
    bench.send("a")

    def received(answer: Any) -> None:
        Work(bench).settle(opened(answer), DEFER).begin()

    bench.fragment.receive(bench.receiver(), max_count=1, max_bytes=1 << 20, on_done=received)
    bench.run_for(50)
    [before] = bench.peek()
    bench.restart()
    assert [each.deliveries for each in bench.peek()] == [before.deliveries]


def test_nothing_is_begun_while_the_log_lacks_the_counts_that_it_would_take_back(
    bench: QueueBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An almost full disk refuses the longer run, of counts, and would take the shorter one behind it."""
    append, refusals, refused = bench.log.append, [DiskFull("no space")], list[ServiceError]()

    def append_unless_full(run: bytearray, **named: Any) -> Any:
        if refusals:
            raise refusals.pop()
        return append(run, **named)

    def received(answer: Any) -> None:
        monkeypatch.setattr(bench.log, "append", append_unless_full)
        got.extend(opened(answer))
        refused.append(Work(bench).settle(got, DEFER).refused())

    bench.send("a")
    got: list[Got] = []
    bench.fragment.receive(bench.receiver(), max_count=1, max_bytes=1 << 20, on_done=received)
    bench.run_for(2_000)
    assert [each.condition for each in refused] == [SERVER_BUSY] and not refusals
    assert Work(bench).settle(got, DEFER).done() is None  # its lock is as it was
    before = bench.peek()
    bench.restart()
    assert [each.deliveries for each in bench.peek()] == [each.deliveries for each in before] == [0]


def test_sessions_keep_their_order_over_an_abandon_in_a_transaction(bench_with: BenchWith) -> None:
    bench = bench_with(requires_session=True)
    bench.send("a", "b", session="s")
    receiver = bench.answer(
        lambda on_done: bench.fragment.accept_session(
            "s", ReceiveMode.PEEK_LOCK, bench.times(), wait_ms=0, on_done=on_done, on_lost=lambda *_: None
        )
    )
    [a] = bench.receive(receiver, 1)
    Work(bench).settle(a, ABANDON).send(message("c", session="s")).begin()
    got = bench.receive(receiver, 5)
    assert bodies(got) == ["a", "b", "c"]


def test_operations_and_messages_are_one_chain_in_the_log(bench: QueueBench) -> None:
    """So whatever a crash leaves of its batches, they are all there or none is."""
    a, b = locked(bench, "a", "b")
    before = bench.log.bounds.next_index
    assert Work(bench).settle(a).settle(b, DEFER).send(*(message(f"{n}") for n in range(5))).done() is None
    headers = [header for run in runs_of(bench.env, bench.log, before) for header in headers_of(run.data)]
    assert [header.count for header in headers] == [2, 2, 2, 1]
    assert [header.continues for header in headers] == [True, True, True, False]


def _run_into_a_crash(seed: int, at_ms: int, *, power_cut: bool) -> tuple[list[str], bool]:
    """A transaction, a crash so many milliseconds later; what is there then, and whether it was answered as done."""
    env = SimulatedEnv(seed, interleaved=0.1)
    bench = QueueBench(FragmentSettings(lock_duration_ms=60_000), env=env)
    a, b, c = locked(bench, "a", "b", "c")
    bench.send("before")
    answers = (
        Work(bench)
        .settle(a)
        .settle(b, DEFER)
        .settle(c, DEAD_LETTER)
        .send(*(message(name + "x" * 40_000) for name in ("d", "e", "f")))
        .begin()
    )
    bench.run_for(at_ms)
    was_done = answers == [None]
    bench.restart(power_cut=power_cut)
    counts = bench.fragment.counts()
    kinds = [f"deferred {counts.deferred}", f"dead {counts.dead_lettered}", f"active {counts.active}"]
    return kinds, was_done


@pytest.mark.parametrize("power_cut", [False, True])
def test_a_crash_at_any_point_leaves_all_or_nothing(power_cut: bool) -> None:
    nothing, everything = ["deferred 0", "dead 0", "active 4"], ["deferred 1", "dead 1", "active 4"]
    seen = []
    for seed in range(12):
        for at_ms in (0, 1, 2, 3, 5, 8, 20):
            found, was_done = _run_into_a_crash(seed, at_ms, power_cut=power_cut)
            assert found in (nothing, everything), f"seed {seed}, {at_ms} ms: {found}"
            assert found == everything or not was_done, f"seed {seed}, {at_ms} ms: answered, and gone"
            seen.append(found == everything)
    assert True in seen and (not power_cut or False in seen)
