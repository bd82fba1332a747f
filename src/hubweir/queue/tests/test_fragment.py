"""One fragment: messages are enqueued, locked, settled, and there again after a crash."""

from __future__ import annotations

from array import array
from collections.abc import Callable

import pytest

from hubweir.errors import MESSAGE_NOT_FOUND, RESOURCE_LIMIT, ServiceError
from hubweir.messaging_store.log import Refused
from hubweir.queue.settle_outcome import LOCK_LOST, SETTLED, SettleDetails, SettleOutcome
from hubweir.queue.sub_queue import SubQueue
from hubweir.queue.tests.conftest import DELETE, QueueBench, bodies, message, run_of
from hubweir.testing.memory_faults import Fault


def test_first_messages_have_the_numbers_from_1_on_and_come_in_their_order(bench: QueueBench) -> None:
    assert bench.send("a", "b") == [1, 2]
    assert bench.send("c") == [3]
    got = bench.receive()
    assert bodies(got) == ["a", "b", "c"]
    assert [(each.number, each.deliveries, each.state) for each in got] == [(1, 0, 0), (2, 0, 0), (3, 0, 0)]
    assert len({each.token for each in got}) == 3


def test_a_fragments_number_stands_above_the_counts() -> None:
    bench = QueueBench(number=5)
    assert bench.send("a") == [(5 << 48) + 1]
    assert bench.receive()[0].number == (5 << 48) + 1
    assert [each.number for each in bench.peek((5 << 48) + 1)] == [(5 << 48) + 1]


def test_a_receive_waits_until_there_is_a_message(bench: QueueBench) -> None:
    receiver, answers = bench.receiver(), []
    bench.fragment.receive(receiver, max_count=5, max_bytes=1 << 20, on_done=answers.append)
    bench.run_for(10_000)
    assert not answers
    bench.send("a")
    assert len(answers) == 1


def test_receivers_are_served_in_the_order_in_which_they_asked(bench: QueueBench) -> None:
    answers: list[str] = []
    for name in "xyz":
        receiver = bench.receiver()
        bench.fragment.receive(
            receiver, max_count=1, max_bytes=1 << 20, on_done=lambda _, name=name: answers.append(name)
        )
    bench.send("1", "2")
    assert answers == ["x", "y"]


def test_a_cancelled_receive_is_answered_empty_and_takes_nothing(bench: QueueBench) -> None:
    assert bench.receive() == []
    bench.send("a")
    assert bodies(bench.receive()) == ["a"]


def test_a_locked_message_is_given_to_nobody_else(bench: QueueBench) -> None:
    bench.send("a")
    assert bodies(bench.receive()) == ["a"]
    assert bench.receive() == []


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


def test_a_message_that_was_locked_at_a_crash_is_active_and_counts(bench: QueueBench) -> None:
    bench.send("a")
    bench.receive()
    bench.restart()
    assert [(each.body, each.deliveries) for each in bench.receive()] == [(b"a", 1)]


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


def test_in_the_dead_letters_the_count_stands_still_and_there_is_nowhere_further(bench: QueueBench) -> None:
    bench.send("a")
    details = SettleDetails(reason="bad", description="no such order", properties=b"")
    bench.settle(bench.receive(), SettleOutcome.ABANDON)
    assert bench.settle(bench.receive(), SettleOutcome.DEAD_LETTER, details=details) == [SETTLED]
    dead_letters = bench.receiver(SubQueue.DEAD_LETTERS)
    for outcome in (SettleOutcome.ABANDON, SettleOutcome.DEAD_LETTER, SettleOutcome.RELEASE, SettleOutcome.ABANDON):
        (dead,) = bench.receive(dead_letters)
        assert dead.deliveries == 2
        assert dead.properties == {"DeadLetterReason": "bad", "DeadLetterErrorDescription": "no such order"}
        assert bench.settle([dead], outcome) == [SETTLED]
    bench.restart()
    (dead,) = bench.receive(bench.receiver(SubQueue.DEAD_LETTERS))
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


def test_deferred_messages_are_received_by_their_numbers_alone(bench: QueueBench) -> None:
    bench.send("a", "b", "c")
    got = bench.receive()
    bench.settle(got[:2], SettleOutcome.DEFER)
    bench.settle(got[2:], SettleOutcome.ABANDON)
    assert bodies(bench.receive()) == ["c"]
    assert (bench.fragment.counts().active, bench.fragment.counts().deferred) == (1, 2)
    found = bench.deferred(2, 1)
    assert [(each.number, each.state, each.deliveries) for each in found] == [(2, 1, 1), (1, 1, 1)]
    assert all(each.locked_until_ms > bench.now_ms() for each in found)
    bench.settle(found[:1], SettleOutcome.ABANDON)
    (again,) = bench.deferred(2)
    assert (again.deliveries, again.state) == (2, 1)
    bench.complete([again, found[1]])
    assert bench.fragment.counts().deferred == 0


def test_receiving_deferred_messages_is_all_or_nothing(bench: QueueBench) -> None:
    bench.send("a", "b", "c")
    got = bench.receive()
    bench.settle(got[:1], SettleOutcome.DEFER)
    for numbers in ([1, 2], [1, 77], [1, 0], [-5], [1, 1 << 48]):
        with pytest.raises(ServiceError) as refused:
            bench.deferred(*numbers)
        assert refused.value.condition is MESSAGE_NOT_FOUND
    assert bodies(bench.deferred(1, mode=DELETE)) == ["a"]
    with pytest.raises(ServiceError):
        bench.deferred(1)


def test_receive_and_delete_takes_messages_away_before_they_leave(bench: QueueBench) -> None:
    bench.send("a", "b")
    got = bench.receive(bench.receiver(mode=DELETE), max_count=1)
    assert bodies(got) == ["a"] and got[0].token == b"" and got[0].locked_until_ms == -1
    bench.restart()
    assert bodies(bench.receive()) == ["b"]


def test_peek_shows_messages_of_every_state_and_locks_nothing(bench: QueueBench) -> None:
    bench.send("a", "b", "c")
    got = bench.receive(max_count=2)
    bench.settle(got[:1], SettleOutcome.DEFER)
    bench.send("later", scheduled_ms=bench.now_ms() + 60_000)
    seen = bench.peek()
    assert [(each.number, each.state, each.token) for each in seen] == [
        (1, 1, b""),
        (2, 0, b""),
        (3, 0, b""),
        (4, 2, b""),
    ]
    assert [each.number for each in bench.peek(3)] == [3, 4]
    assert bench.peek(5) == []
    assert bodies(bench.receive()) == ["c"]


def test_a_quota_of_the_size_refuses_a_send_before_anything_is_stored(bench_with: Callable[..., QueueBench]) -> None:
    bench = bench_with(max_size_bytes=2_000)
    bench.send("x" * 1_000)
    size = bench.fragment.counts().size_bytes
    assert 1_000 < size < 1_100
    with pytest.raises(ServiceError) as refused:
        bench.send("y" * 1_000)
    assert refused.value.condition is RESOURCE_LIMIT
    assert bench.fragment.counts().size_bytes == size
    bench.complete(bench.receive())
    assert bench.fragment.counts().size_bytes == 0
    bench.send("y" * 1_000)


def test_a_quota_counts_what_is_on_its_way(bench_with: Callable[..., QueueBench]) -> None:
    bench = bench_with(max_size_bytes=2_000)
    bench.fragment.enqueue(run_of(message("x" * 1_500)), 1, bench.times(), lambda answer: None)
    with pytest.raises(ServiceError):
        bench.fragment.enqueue(run_of(message("x" * 1_500)), 1, bench.times(), lambda answer: None)


def test_a_batch_delete_takes_the_oldest_and_passes_over_what_is_locked(bench: QueueBench) -> None:
    bench.send("a", "b", "c", "d")
    locked = bench.receive(max_count=1)
    before = bench.now_ms()
    bench.send("young")
    delete = bench.answer(
        lambda on_done: bench.fragment.delete_messages(SubQueue.MAIN, max_count=2, before_ms=before, on_done=on_done)
    )
    assert delete == 2
    assert bodies(bench.receive()) == ["d", "young"]
    bench.complete(locked)


def test_a_receive_takes_no_more_bytes_than_it_may_but_one_message_at_least(bench: QueueBench) -> None:
    bench.send(*("x" * 400 for _ in range(10)))
    assert len(bench.receive(max_bytes=1_000)) == 2
    assert len(bench.receive(max_bytes=10)) == 1


def test_messages_that_lie_on_disk_alone_are_received(bench: QueueBench) -> None:
    for first in range(0, 200, 10):
        bench.send(*(f"{number:04}" + "x" * 500 for number in range(first, first + 10)))
    receiver, seen = bench.receiver(), []
    while got := bench.receive(receiver, max_count=7, wait_ms=300):
        seen += [each.body[:4].decode() for each in got]
        bench.complete(got)
    assert seen == [f"{number:04}" for number in range(200)]


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


def test_numbers_and_messages_are_the_same_after_many_restarts(bench: QueueBench) -> None:
    for round_number in range(5):
        bench.send(*(f"{round_number}.{place}" for place in range(3)))
        got = bench.receive(max_count=2)
        bench.complete(got)
        seen = [(each.number, each.body) for each in bench.peek()]
        bench.restart(power_cut=bool(round_number % 2))
        assert [(each.number, each.body) for each in bench.peek()] == seen
    assert bench.send("last") == [16]


def test_a_cancelled_scheduled_message_never_comes(bench: QueueBench) -> None:
    (number,) = bench.send("a", scheduled_ms=bench.now_ms() + 5_000)
    assert bench.fragment.counts().scheduled == 1
    with pytest.raises(ServiceError):
        bench.fragment.cancel_scheduled(array("q", [number, 99]), lambda answer: None)
    assert bench.answer(lambda on_done: bench.fragment.cancel_scheduled(array("q", [number]), on_done)) is None
    bench.run_for(10_000)
    assert bench.receive() == [] and bench.fragment.counts().scheduled == 0
    with pytest.raises(ServiceError) as refused:
        bench.fragment.cancel_scheduled(array("q", [number]), lambda answer: None)
    assert refused.value.condition is MESSAGE_NOT_FOUND
