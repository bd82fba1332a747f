"""What time does: locks end, scheduled messages become active, messages expire, each when it is due."""

from __future__ import annotations

from collections.abc import Callable

from hubweir.env import Lane
from hubweir.messaging_store.log import Refused
from hubweir.queue.settle_outcome import LOCK_LOST, SETTLED, SettleOutcome
from hubweir.queue.sub_queue import SubQueue
from hubweir.queue.tests.conftest import DELETE, QueueBench, bodies, message
from hubweir.testing.memory_faults import Fault
from hubweir.testing.simulated_env import SimulatedEnv


def test_a_lock_ends_after_its_duration_and_the_delivery_counts(bench_with: Callable[..., QueueBench]) -> None:
    bench = bench_with(lock_duration_ms=5_000)
    bench.send("a")
    got = bench.receive(wait_ms=1)
    assert got[0].locked_until_ms - bench.now_ms() in range(4_900, 5_001)
    bench.run_for(4_900)
    assert bench.receive(wait_ms=1) == []
    bench.run_for(100)
    (again,) = bench.receive(wait_ms=1)
    assert (again.body, again.deliveries) == (b"a", 1)
    assert bench.settle(got) == [LOCK_LOST]
    assert bench.settle([again]) == [SETTLED]


def test_a_lock_that_is_over_settles_nothing_even_before_anybody_noticed(bench_with: Callable[..., QueueBench]) -> None:
    bench = bench_with(lock_duration_ms=5_000)
    bench.send("a")
    got = bench.receive(wait_ms=0)
    times = bench.times()
    late = type(times)(times.stamp_ms + 5_000, times.monotonic_ms + 5_000)
    answers: list[bytes] = []
    bench.fragment.settle(got[0].token, SettleOutcome.COMPLETE, late, answers.append)  # type: ignore[arg-type]
    assert answers == [bytes((LOCK_LOST,))]


def test_the_end_of_a_lock_that_was_given_back_ends_no_later_one(bench_with: Callable[..., QueueBench]) -> None:
    bench = bench_with(lock_duration_ms=5_000)
    bench.send("a")
    for outcome in (SettleOutcome.RELEASE, SettleOutcome.ABANDON):
        bench.settle(bench.receive(), outcome)
    bench.run_for(3_000)
    held = bench.receive()
    bench.run_for(3_000)
    assert bench.receive() == []
    assert bench.settle(held) == [SETTLED]


def test_a_lock_that_ends_while_its_settlement_is_refused_counts_as_a_failed_delivery(
    bench_with: Callable[..., QueueBench],
) -> None:
    bench = bench_with(lock_duration_ms=5_000, max_delivery_count=1)
    bench.send("a")
    got = bench.receive()
    bench.run_for(4_900)
    bench.env.stall(Lane.WRITES)
    answers: list[object] = []
    bench.fragment.settle(got[0].token, SettleOutcome.COMPLETE, bench.times(), answers.append)
    bench.run_for(1_000)
    assert bench.receive() == [] and not answers
    bench.env.files.plan(Fault.SYNC_EIO)
    bench.env.go_on(Lane.WRITES)
    bench.run_for(5_000)
    assert isinstance(answers[0], Refused)
    assert bench.fragment.counts().dead_lettered == 1


def test_a_renewed_lock_goes_on_from_then(bench_with: Callable[..., QueueBench]) -> None:
    bench = bench_with(lock_duration_ms=5_000)
    bench.send("a", "b")
    got = bench.receive()
    for _ in range(4):
        bench.run_for(4_000)
        (until,) = bench.fragment.renew(got[0].token, bench.times())
        assert until == bench.now_ms() + 5_000
    assert list(bench.fragment.renew(got[1].token, bench.times())) == [0]
    assert bodies(bench.receive()) == ["b"]
    assert bench.settle(got) == [SETTLED, LOCK_LOST]


def test_a_scheduled_message_comes_at_its_time_with_a_new_number(bench: QueueBench) -> None:
    at_ms = bench.now_ms() + 10_000
    (number,) = bench.send("later", scheduled_ms=at_ms)
    assert bench.send("now") == [2]
    assert [(each.number, each.state) for each in bench.peek()] == [(number, 2), (2, 0)]
    assert bodies(bench.receive()) == ["now"]
    bench.run_for(at_ms - bench.now_ms() - 1)
    assert bench.receive(wait_ms=0) == []
    receiver, answers = bench.receiver(), []
    bench.fragment.receive(receiver, max_count=5, max_bytes=1 << 20, on_done=answers.append)
    bench.run_for(60)
    assert len(answers) == 1
    (seen,) = [each for each in bench.peek() if each.body == b"later"]
    assert (seen.number, seen.state, seen.enqueued_ms, seen.id_number) == (3, 0, at_ms, number)
    assert bench.fragment.counts().scheduled == 0


def test_scheduled_messages_become_active_in_the_order_of_their_times(bench: QueueBench) -> None:
    base_ms = bench.now_ms() + 1_000
    for body, offset in (("c", 300), ("a", 100), ("b", 200), ("b2", 200)):
        bench.send(body, scheduled_ms=base_ms + offset)
    bench.run_for(3_000)
    assert bodies(bench.receive()) == ["a", "b", "b2", "c"]


def test_a_schedule_stands_over_a_restart_also_one_that_was_missed(bench: QueueBench) -> None:
    at_ms = bench.now_ms() + 500
    bench.send("missed", scheduled_ms=at_ms)
    bench.send("later", scheduled_ms=at_ms + 60_000)
    bench.restart()
    bench.run_for(200)
    (got,) = bench.receive()
    assert (got.body, got.enqueued_ms) == (b"missed", at_ms)
    bench.complete([got])
    bench.run_for(60_000)
    assert bodies(bench.receive()) == ["later"]


def test_messages_that_are_due_at_once_come_in_the_order_of_their_times(bench: QueueBench) -> None:
    base_ms = bench.now_ms() + 500
    for body, offset in (("c", 300), ("a", 100), ("b", 200)):
        bench.send(body, scheduled_ms=base_ms + offset, wait_ms=100)
    bench.restart()
    bench.run_for(1_000)
    assert bodies(bench.receive(wait_ms=500)) == ["a", "b", "c"]


def test_a_time_in_the_past_means_now(bench: QueueBench) -> None:
    bench.send("a", scheduled_ms=bench.now_ms() - 5)
    assert bodies(bench.receive()) == ["a"]


def test_expired_messages_are_dropped(bench: QueueBench) -> None:
    bench.send("short", ttl_ms=2_000)
    bench.send("long", ttl_ms=20_000)
    bench.run_for(1_900)
    assert bench.fragment.counts().active == 2
    bench.run_for(200)
    assert bench.fragment.counts().active == 1
    (got,) = bench.receive()
    assert (got.body, got.ttl_ms, got.expires_ms) == (b"long", 20_000, got.enqueued_ms + 20_000)


def test_expired_messages_are_dead_lettered_where_that_is_set(bench_with: Callable[..., QueueBench]) -> None:
    bench = bench_with(dead_letters_on_expiry=True)
    bench.send("a", ttl_ms=1_000)
    bench.run_for(1_100)
    assert bench.receive() == []
    (dead,) = bench.receive(bench.receiver(SubQueue.DEAD_LETTERS))
    assert dead.properties == {
        "DeadLetterReason": "TTLExpiredException",
        "DeadLetterErrorDescription": "The message expired and was dead lettered.",
    }
    bench.settle([dead], SettleOutcome.ABANDON)
    bench.run_for(100_000)
    assert bench.fragment.counts().dead_lettered == 1  # there the time to live is not observed


def test_the_default_bounds_the_time_to_live(bench_with: Callable[..., QueueBench]) -> None:
    bench = bench_with(default_ttl_ms=3_000)
    bench.send("none")
    bench.send("more", ttl_ms=9_000)
    bench.send("less", ttl_ms=1_000)
    assert [each.ttl_ms for each in bench.peek()] == [3_000, 3_000, 1_000]
    bench.run_for(3_100)
    assert bench.fragment.counts().active == 0


def test_a_default_that_is_changed_holds_for_what_comes_from_then_on_also_after_a_restart(
    bench_with: Callable[..., QueueBench],
) -> None:
    bench = bench_with(default_ttl_ms=3_000)
    bench.send("before")
    changed = type(bench.settings)(default_ttl_ms=50_000)
    assert bench.answer(lambda on_done: bench.fragment.change(changed, bench.times(), on_done)) is None
    bench.settings = changed
    bench.send("after")
    bench.restart()
    assert [each.ttl_ms for each in bench.peek()] == [3_000, 50_000]


def test_a_locked_message_expires_when_it_is_unlocked_and_can_be_completed_before(
    bench_with: Callable[..., QueueBench],
) -> None:
    bench = bench_with(lock_duration_ms=10_000)
    bench.send("a", "b", ttl_ms=2_000)
    got = bench.receive()
    bench.run_for(5_000)
    assert bench.fragment.counts().active == 2
    assert bench.settle(got[:1]) == [SETTLED]
    bench.settle(got[1:], SettleOutcome.ABANDON)
    bench.run_for(100)
    assert bench.receive() == [] and bench.fragment.counts().active == 0


def test_an_expired_message_is_given_to_nobody_while_its_end_is_not_logged(bench: QueueBench) -> None:
    bench.send("a", ttl_ms=1_000)
    bench.run_for(900)
    times = bench.times()
    late = type(times)(times.stamp_ms + 200, times.monotonic_ms + 200)
    answers: list[object] = []
    bench.fragment.receive(bench.receiver(mode=DELETE), max_count=1, max_bytes=1 << 20, on_done=answers.append)
    bench.fragment.turn(late)
    bench.env.turn()
    assert not answers


def test_deferred_and_scheduled_messages_do_not_expire_but_activated_ones_do(bench: QueueBench) -> None:
    bench.send("deferred", ttl_ms=1_000)
    bench.settle(bench.receive(), SettleOutcome.DEFER)
    bench.send("scheduled", ttl_ms=1_000, scheduled_ms=bench.now_ms() + 5_000)
    bench.run_for(4_000)
    counts = bench.fragment.counts()
    assert (counts.deferred, counts.scheduled) == (1, 1)
    bench.run_for(1_500)
    assert bench.fragment.counts().active == 1
    bench.run_for(1_000)
    counts = bench.fragment.counts()
    assert (counts.deferred, counts.scheduled, counts.active) == (1, 0, 0)


def test_what_is_due_and_refused_by_the_log_is_tried_again(bench: QueueBench) -> None:
    bench.send("a", scheduled_ms=bench.now_ms() + 1_000)
    bench.send("b", ttl_ms=1_000)
    bench.env.files.plan(Fault.SYNC_EIO)
    bench.run_for(6_000)
    assert bodies(bench.receive()) == ["a"]


def test_messages_that_were_delivered_too_often_stay_away_while_the_log_refuses(
    bench_with: Callable[..., QueueBench],
) -> None:
    bench = bench_with(max_delivery_count=1)
    bench.send("a")
    got = bench.receive()
    bench.env.files.plan(Fault.SYNC_EIO)
    bench.settle(got, SettleOutcome.ABANDON)
    assert bench.receive(wait_ms=4_000) == []
    assert bench.fragment.counts().dead_lettered == 1


def test_100000_scheduled_messages_come_within_50_ms_of_their_times() -> None:
    """20 of them a millisecond, on a disk whose calls take 2 ms at most."""
    bench = QueueBench(env=SimulatedEnv(7, slowest_ms=1))
    base_ms, many = bench.now_ms() + 60_000, 100_000
    for first in range(0, many, 1_000):
        times = (base_ms + place // 20 for place in range(first, first + 1_000))
        bench.enqueue(*(message("x", scheduled_ms=time_ms) for time_ms in times), wait_ms=5)
    bench.run_for(base_ms - bench.now_ms() - 1)
    assert bench.fragment.counts().active == 0
    while bench.now_ms() < base_ms + many // 20 + 100:
        active = bench.fragment.counts().active
        due = min(many, max(0, (bench.now_ms() - base_ms + 1) * 20))
        assert active <= due <= active + 50 * 20
        bench.run_for(1)
    assert bench.fragment.counts().active == many
