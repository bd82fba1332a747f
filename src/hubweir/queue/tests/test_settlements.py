"""Settlements by token: what becomes of a message, and what stays so after a crash.

Long because each outcome has its tests here, with what a crash and a refusal make of it.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable
from typing import Any

import pytest

from hubweir.env import Lane
from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.messaging_store.log import Refused
from hubweir.queue.changed_properties import CHANGES_LIMIT_BYTES
from hubweir.queue.fragment_core import UNAWAITED_MS
from hubweir.queue.settle_outcome import LOCK_LOST, SETTLED, SettleDetails, SettleOutcome
from hubweir.queue.sub_queue import ReceiveMode, SubQueue
from hubweir.queue.tests.conftest import DELETE, QueueBench, bodies, opened
from hubweir.testing.memory_faults import Fault


def test_a_completed_message_is_gone_also_after_a_power_cut(bench: QueueBench) -> None:
    bench.send("a", "b")
    first, _ = bench.receive()
    bench.complete([first])
    assert bench.fragment.counts().active == 1
    bench.restart()
    assert bodies(bench.receive()) == ["b"]


def test_a_message_settled_twice_has_lost_its_lock(bench: QueueBench) -> None:
    bench.send("a")
    got = bench.receive()
    assert bench.settle(got) == [SETTLED]
    assert bench.settle(got) == [LOCK_LOST]


def test_one_token_twice_in_one_settlement_is_settled_once(bench: QueueBench) -> None:
    bench.send("a", "b")
    got = bench.receive()
    assert bench.settle([got[0], got[0], got[1]]) == [SETTLED, LOCK_LOST, SETTLED]
    assert bench.fragment.counts().active == 0


def test_a_token_that_was_made_up_settles_nothing(bench: QueueBench) -> None:
    bench.send("a")
    (got,) = bench.receive()
    for at in range(16):
        forged = bytearray(got.token)
        forged[at] ^= 1
        assert bench.settle(bytes(forged)) == [LOCK_LOST]
    assert bench.settle(bytes(16)) == [LOCK_LOST]
    assert bench.settle([got]) == [SETTLED]


def test_a_token_of_an_earlier_opening_has_lost_its_lock(bench: QueueBench) -> None:
    bench.send("a")
    before = bench.receive()
    bench.restart()
    after = bench.receive()
    assert bench.settle(before) == [LOCK_LOST]
    assert bench.settle(after) == [SETTLED]


def test_a_settlement_is_answered_only_when_it_is_durable(bench: QueueBench) -> None:
    bench.send("a")
    got = bench.receive()
    answers: list[object] = []
    bench.fragment.settle(got[0].token, SettleOutcome.COMPLETE, bench.times(), answers.append)
    bench.env.turn()
    assert not answers
    assert bench.settle(got) == [LOCK_LOST]  # it is being settled
    bench.run_for(100)
    assert answers == [bytes((SETTLED,))]


def test_abandoned_messages_come_again_at_their_place_and_count(bench: QueueBench) -> None:
    bench.send("a", "b", "c")
    got = bench.receive(max_count=2)
    assert bench.settle([got[1], got[0]], SettleOutcome.ABANDON) == [SETTLED, SETTLED]
    again = bench.receive()
    assert [(each.body, each.deliveries) for each in again] == [(b"a", 1), (b"b", 1), (b"c", 0)]
    assert bench.settle(got) == [LOCK_LOST, LOCK_LOST]


def test_released_messages_do_not_count_also_after_a_restart(bench: QueueBench) -> None:
    bench.send("a")
    assert bench.settle(bench.receive(), SettleOutcome.RELEASE) == [SETTLED]
    (got,) = bench.receive()
    assert got.deliveries == 0
    bench.settle([got], SettleOutcome.RELEASE)
    bench.restart()
    assert bench.receive()[0].deliveries == 0


def test_the_delivery_that_fails_at_the_maximum_brings_a_message_to_the_dead_letters(
    bench_with: Callable[..., QueueBench],
) -> None:
    bench = bench_with(max_delivery_count=3)
    bench.send("a")
    for deliveries in range(3):
        (got,) = bench.receive()
        assert got.deliveries == deliveries
        bench.settle([got], SettleOutcome.ABANDON)
    assert bench.receive() == []
    (dead,) = bench.receive(bench.receiver(SubQueue.DEAD_LETTERS))
    assert dead.deliveries == 3 and dead.number == 1
    assert dead.properties == {
        "DeadLetterReason": "MaxDeliveryCountExceeded",
        "DeadLetterErrorDescription": "Message could not be consumed after 3 delivery attempts.",
    }
    counts = bench.fragment.counts()
    assert (counts.active, counts.dead_lettered) == (0, 1)


def test_crashes_count_as_failed_deliveries_up_to_the_maximum(bench_with: Callable[..., QueueBench]) -> None:
    bench = bench_with(max_delivery_count=2)
    bench.send("a")
    for _ in range(2):
        assert len(bench.receive()) == 1
        bench.restart()
    bench.run_for(100)
    assert bench.receive() == []
    assert bench.fragment.counts().dead_lettered == 1


def test_who_waits_for_dead_letters_gets_a_message_at_its_last_failed_delivery(
    bench_with: Callable[..., QueueBench],
) -> None:
    bench = bench_with(max_delivery_count=1)
    bench.send("a")
    got = bench.receive()
    answers: list[object] = []
    waiting = bench.receiver(SubQueue.DEAD_LETTERS)
    bench.fragment.receive(waiting, max_count=1, max_bytes=1, on_done=answers.append)
    bench.settle(got, SettleOutcome.ABANDON)
    bench.run_for(50)
    assert len(answers) == 1


def test_in_the_dead_letters_the_count_stands_still_and_there_is_nowhere_further(bench: QueueBench) -> None:
    bench.send("a")
    details = SettleDetails(reason="bad", description="no such order", properties=b"")
    bench.settle(bench.receive(), SettleOutcome.ABANDON)
    assert bench.settle(bench.receive(), SettleOutcome.DEAD_LETTER, details=details) == [SETTLED]
    dead_letters = bench.receiver(SubQueue.DEAD_LETTERS)
    for outcome in (SettleOutcome.ABANDON, SettleOutcome.DEAD_LETTER, SettleOutcome.RELEASE, SettleOutcome.ABANDON):
        (dead,) = bench.receive(dead_letters)
        assert dead.deliveries == 1, "of two deliveries one failed"
        assert dead.properties == {"DeadLetterReason": "bad", "DeadLetterErrorDescription": "no such order"}
        assert bench.settle([dead], outcome) == [SETTLED]
    bench.restart()
    (dead,) = bench.receive(bench.receiver(SubQueue.DEAD_LETTERS))
    assert dead.deliveries == 1
    assert dead.properties is not None and dead.properties["DeadLetterReason"] == "bad"
    bench.complete([dead])
    assert bench.fragment.counts().dead_lettered == 0


def test_abandon_and_defer_set_properties_that_stay_over_a_restart(bench: QueueBench) -> None:
    bench.send("a", properties={"colour": "red", "size": 5})
    blue = b"\xc1\x0f\x02\xa1\x06colour\xa1\x04blue"
    assert bench.settle(bench.receive(), SettleOutcome.ABANDON, details=SettleDetails(properties=blue)) == [SETTLED]
    (got,) = bench.receive()
    assert got.properties == {"colour": "blue", "size": 5} and got.deliveries == 1
    more = b"\xc1\x06\x02\xa1\x01n\x54\x01"
    bench.settle([got], SettleOutcome.DEFER, details=SettleDetails(properties=more))
    bench.restart()
    (got,) = bench.deferred(1)
    assert got.properties == {"colour": "blue", "size": 5, "n": 1} and got.state == 1


def test_properties_that_are_no_map_are_refused_and_the_lock_stays(bench: QueueBench) -> None:
    bench.send("a")
    got = bench.receive()
    for wrong in (b"\x40", b"\xc1\x05\x02", b"\xc1\x04\x02\x54\x01\x54", b"\xc1\x05\x02\x54\x01\x54\x01"):
        with pytest.raises(ServiceError, match="properties"):
            bench.settle(got, SettleOutcome.ABANDON, details=SettleDetails(properties=wrong))
    with pytest.raises(ServiceError, match="lock tokens"):
        bench.settle(b"123")
    bench.complete(got)


def test_a_refused_settlement_leaves_the_message_locked(bench: QueueBench) -> None:
    bench.send("a")
    got = bench.receive()
    bench.env.files.plan(Fault.SYNC_EIO)
    answer = bench.answer(
        lambda on_done: bench.fragment.settle(got[0].token, SettleOutcome.COMPLETE, bench.times(), on_done), 3_000
    )
    assert isinstance(answer, Refused)
    assert bench.receive() == []
    assert bench.settle(got) == [SETTLED]


def test_a_delivery_whose_count_the_log_refused_is_counted_when_it_takes_it(bench: QueueBench) -> None:
    bench.send("a")
    bench.env.files.plan(Fault.SYNC_EIO)
    assert len(bench.receive(wait_ms=5_000)) == 1
    bench.restart()
    assert bench.receive()[0].deliveries == 1


def test_changed_properties_go_with_their_message(bench: QueueBench) -> None:
    bench.send("a", "b")
    details = SettleDetails(properties=b"\xc1\x06\x02\xa1\x01n\x54\x01")
    bench.settle(bench.receive(), SettleOutcome.ABANDON, details=details)
    assert list(bench.fragment._core.state.changed) == [1, 2]
    bench.complete(bench.receive(max_count=1))
    assert list(bench.fragment._core.state.changed) == [2]


def named(name: str, size: int) -> SettleDetails:
    """One property to modify, of so many bytes."""
    value = b"\xb0" + size.to_bytes(4, "big") + bytes(size)
    content = b"\xa1" + bytes((len(name),)) + name.encode() + value
    return SettleDetails(properties=b"\xd1" + struct.pack(">II", 4 + len(content), 2) + content)


def test_what_receivers_change_of_a_message_is_bounded_and_counts_for_the_size_until_it_is_gone(
    bench: QueueBench,
) -> None:
    """Also where deliveries are not counted, in the dead letters: again and again is not without end."""
    bench.send("a")
    size = bench.fragment.counts().size_bytes
    bench.settle(bench.receive(), SettleOutcome.DEAD_LETTER)
    for name in ("one", "two", "one"):
        (got,) = bench.receive(bench.receiver(SubQueue.DEAD_LETTERS))
        assert bench.settle([got], SettleOutcome.ABANDON, details=named(name, 30_000)) == [SETTLED]
    held = bench.fragment.counts().size_bytes
    assert size + 60_000 < held < size + CHANGES_LIMIT_BYTES
    (got,) = bench.receive(bench.receiver(SubQueue.DEAD_LETTERS))
    for outcome in (SettleOutcome.ABANDON, SettleOutcome.DEAD_LETTER, SettleOutcome.DEFER):
        with pytest.raises(ServiceError, match="bytes of properties that receivers modified") as refused:
            bench.settle([got], outcome, details=named("three", 10_000))
        assert refused.value.condition is ARGUMENT_ERROR
    bench.restart()
    assert bench.fragment.counts().size_bytes == held
    bench.complete(bench.receive(bench.receiver(SubQueue.DEAD_LETTERS)))
    assert bench.fragment.counts().size_bytes == 0


def test_a_dead_letter_that_is_deferred_still_counts_as_a_dead_letter(bench: QueueBench) -> None:
    bench.send("a")
    bench.settle(bench.receive(), SettleOutcome.DEAD_LETTER)
    bench.settle(bench.receive(bench.receiver(SubQueue.DEAD_LETTERS)), SettleOutcome.DEFER)
    for _ in range(2):
        counts = bench.fragment.counts()
        assert (counts.active, counts.dead_lettered, counts.deferred) == (0, 1, 0)
        bench.restart()


@pytest.mark.parametrize("ends", ["abandoned", "locked too long", "lost in a crash"])
def test_a_deferred_message_is_a_dead_letter_when_its_last_delivery_fails(
    bench_with: Callable[..., QueueBench], ends: str
) -> None:
    bench = bench_with(max_delivery_count=2, lock_duration_ms=5_000)
    bench.send("a")
    bench.settle(bench.receive(), SettleOutcome.DEFER)  # which counts no delivery
    for delivery in range(2):
        assert bench.peek()[0].state == 1
        (got,) = bench.deferred(1)
        assert got.deliveries == delivery
        if ends == "abandoned":
            bench.settle([got], SettleOutcome.ABANDON)
        elif ends == "locked too long":
            bench.run_for(5_100)
        else:
            bench.restart(power_cut=False)
    bench.run_for(100)
    (dead,) = bench.receive(bench.receiver(SubQueue.DEAD_LETTERS))
    assert (dead.state, dead.deliveries) == (0, 2)
    assert (dead.properties or {})["DeadLetterReason"] == "MaxDeliveryCountExceeded"
    assert bench.peek() == [] and bench.fragment.counts().deferred == 0


def test_a_deferred_message_that_is_being_taken_away_is_given_to_nobody_else(bench: QueueBench) -> None:
    bench.send("a")
    bench.settle(bench.receive(), SettleOutcome.DEFER)
    answers: list[object] = []
    bench.fragment.receive_deferred(SubQueue.MAIN, array("q", [1]), DELETE, bench.times(), answers.append)
    for mode in ReceiveMode:
        with pytest.raises(ServiceError):
            bench.fragment.receive_deferred(SubQueue.MAIN, array("q", [1]), mode, bench.times(), answers.append)
    bench.run_for(100)
    assert len(answers) == 1


def test_a_deferred_message_that_is_named_twice_comes_once(bench: QueueBench) -> None:
    bench.send("a")
    bench.settle(bench.receive(), SettleOutcome.DEFER)
    assert [each.number for each in bench.deferred(1, 1)] == [1]


def test_a_message_that_was_read_too_long_for_one_receiver_stays_locked_for_the_next(bench: QueueBench) -> None:
    """The first lock ends while the disk is asked; what comes for a receiver that is closed touches the second not."""
    for _ in range(40):  # more than the log's tail has in memory
        bench.send("x" * 900)
    slow = bench.receiver()
    bench.env.stall(Lane.READS)
    bench.fragment.receive(slow, max_count=1, max_bytes=100, on_done=lambda answer: None)
    bench.run_for(60_100)
    answers: list[Any] = []
    bench.fragment.receive(bench.receiver(), max_count=1, max_bytes=100, on_done=answers.append)
    bench.env.turn()
    bench.fragment.close_receiver(slow)
    bench.env.go_on(Lane.READS)
    bench.run_for(50)
    (got,) = opened(answers[0])
    assert (got.number, got.deliveries) == (1, 1)
    assert bench.settle([got]) == [SETTLED]


@pytest.mark.parametrize("outcome", [SettleOutcome.DEFER, SettleOutcome.DEAD_LETTER])
def test_a_delivery_that_the_log_refused_is_counted_before_it_is_taken_back(
    bench: QueueBench, outcome: SettleOutcome
) -> None:
    """In the other order a replay would take it from nothing, and count it then."""
    bench.send("a")
    bench.env.files.plan(Fault.ENOSPC)
    got = bench.receive(wait_ms=20 + UNAWAITED_MS)
    assert bench.settle(got, outcome, wait_ms=5_000) == [SETTLED]
    bench.restart()
    (left,) = bench.peek(sub_queue=SubQueue.DEAD_LETTERS if outcome is SettleOutcome.DEAD_LETTER else SubQueue.MAIN)
    assert left.deliveries == 0


def test_a_released_message_is_active_before_its_receiver_is_answered(bench: QueueBench) -> None:
    bench.send("a")
    (got,) = bench.receive()
    answers: list[Any] = []
    bench.fragment.settle(got.token, SettleOutcome.RELEASE, bench.times(), answers.append)
    (again,) = bench.receive(wait_ms=0)
    assert not answers and again.deliveries == 0
    bench.run_for(50)
    assert answers == [bytes((SETTLED,))]


def test_a_plain_abandon_is_answered_at_once_as_a_crash_would_do_the_same(bench: QueueBench) -> None:
    bench.send("a")
    (got,) = bench.receive()
    answers: list[Any] = []
    bench.fragment.settle(got.token, SettleOutcome.ABANDON, bench.times(), answers.append)
    assert answers == [bytes((SETTLED,))]
    bench.restart()
    assert bench.receive(wait_ms=500)[0].deliveries == 1


def test_a_release_is_answered_only_when_a_power_cut_cannot_undo_it(bench: QueueBench) -> None:
    bench.send("a")
    got = bench.receive()
    assert bench.settle(got, SettleOutcome.RELEASE) == [SETTLED]
    bench.restart()
    assert bench.receive(wait_ms=500)[0].deliveries == 0


def test_a_release_that_the_log_refuses_is_told_and_done_all_the_same(bench: QueueBench) -> None:
    bench.send("a")
    (got,) = bench.receive()
    bench.env.files.plan(Fault.SYNC_EIO)
    answer = bench.answer(
        lambda on_done: bench.fragment.settle(got.token, SettleOutcome.RELEASE, bench.times(), on_done), 3_000
    )
    assert isinstance(answer, Refused)
    bench.restart()
    assert bench.receive(wait_ms=500)[0].deliveries == 0


def test_releases_behind_a_count_that_the_log_refused_are_answered(bench: QueueBench) -> None:
    """Two refusals, one behind the other: nobody waits without end, and nothing counts."""
    bench.send("a", "b")
    bench.env.files.plan(Fault.ENOSPC)
    first, second = bench.receive(wait_ms=20 + UNAWAITED_MS)
    assert bench.settle([first], SettleOutcome.RELEASE, wait_ms=50) == [SETTLED]
    assert bench.settle([second], SettleOutcome.RELEASE, wait_ms=50) == [SETTLED]
    bench.restart()
    assert [each.deliveries for each in bench.receive(wait_ms=500)] == [0, 0]


def test_who_waits_for_dead_letters_is_given_one_as_soon_as_it_is_durable(bench: QueueBench) -> None:
    bench.send("a")
    got, answers = bench.receive(), list[Any]()
    dead_letters = bench.receiver(SubQueue.DEAD_LETTERS)
    bench.fragment.receive(dead_letters, max_count=1, max_bytes=1 << 20, on_done=answers.append)
    bench.run_for(100)
    assert not answers
    assert bench.settle(got, SettleOutcome.DEAD_LETTER, wait_ms=UNAWAITED_MS) == [SETTLED]
    assert [bodies(opened(answer)) for answer in answers] == [["a"]]


def test_a_dead_letter_is_released_at_once(bench: QueueBench) -> None:
    bench.send("a")
    bench.settle(bench.receive(), SettleOutcome.DEAD_LETTER)
    (dead,) = bench.receive(bench.receiver(SubQueue.DEAD_LETTERS))
    answers: list[Any] = []
    bench.fragment.settle(dead.token, SettleOutcome.RELEASE, bench.times(), answers.append)
    assert answers == [bytes((SETTLED,))]
