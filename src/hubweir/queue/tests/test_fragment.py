"""One fragment: messages are enqueued, locked, settled, and there again after a crash."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import pytest

from hubweir.env import Lane
from hubweir.errors import MESSAGE_NOT_FOUND, RESOURCE_LIMIT, CorruptStore, ServiceError
from hubweir.kernels.contract import MESSAGE_WIDTH
from hubweir.messaging_store.log import Refused
from hubweir.queue import numbered_messages
from hubweir.queue.fragment import FragmentReceiver
from hubweir.queue.message_reads import MessageReads
from hubweir.queue.settle_outcome import SettleDetails, SettleOutcome
from hubweir.queue.sub_queue import ReceiveMode, SubQueue
from hubweir.queue.tests.conftest import DELETE, QueueBench, bodies, message, opened, run_of


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
    [got] = bench.receive()
    assert (got.number, got.token[:2]) == ((5 << 48) + 1, (5).to_bytes(2, "big"))
    assert [each.number for each in bench.peek((5 << 48) + 1)] == [(5 << 48) + 1]


def test_a_receive_waits_until_there_is_a_message(bench: QueueBench) -> None:
    receiver, answers = bench.receiver(), []
    bench.fragment.receive(receiver, max_count=5, max_bytes=1 << 20, on_done=answers.append)
    bench.run_for(10_000)
    assert not answers
    bench.send("a")
    assert len(answers) == 1


def test_a_receive_that_does_not_wait_is_answered_in_the_next_turn_whatever_there_is(bench: QueueBench) -> None:
    answers: dict[str, list[str]] = {}

    def look(name: str, *, waits: bool) -> None:
        bench.fragment.receive(
            bench.receiver(), max_count=1, max_bytes=1 << 20, waits=waits,
            on_done=lambda answer: answers.setdefault(name, bodies(opened(answer))),
        )  # fmt: skip

    look("waits", waits=True)
    look("first", waits=False)
    look("second", waits=False)
    assert answers == {}, "not before the turn"
    bench.run_for(1)
    assert answers == {"first": [], "second": []}
    bench.send("a", "b")
    assert answers["waits"] == ["a"]
    look("third", waits=False)
    bench.run_for(1)
    assert answers["third"] == ["b"]


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


def test_a_message_that_was_locked_at_a_crash_is_active_and_counts(bench: QueueBench) -> None:
    bench.send("a")
    bench.receive()
    bench.restart()
    assert [(each.body, each.deliveries) for each in bench.receive()] == [(b"a", 1)]


def test_deferred_messages_are_received_by_their_numbers_alone(bench: QueueBench) -> None:
    bench.send("a", "b", "c")
    got = bench.receive()
    bench.settle(got[:2], SettleOutcome.DEFER)
    bench.settle(got[2:], SettleOutcome.ABANDON)
    assert bodies(bench.receive()) == ["c"]
    assert (bench.fragment.counts().active, bench.fragment.counts().deferred) == (1, 2)
    found = bench.deferred(2, 1)
    assert [(each.number, each.state, each.deliveries) for each in found] == [(2, 1, 0), (1, 1, 0)]
    assert all(each.locked_until_ms > bench.now_ms() for each in found)
    bench.settle(found[:1], SettleOutcome.ABANDON)
    (again,) = bench.deferred(2)
    assert (again.deliveries, again.state) == (1, 1)
    bench.settle([again], SettleOutcome.DEFER)
    (again,) = bench.deferred(2)
    assert (again.deliveries, again.state) == (1, 1)
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


def test_deferred_messages_are_received_as_far_as_one_answer_goes(
    bench: QueueBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.send("a" * 1_000, "b" * 1_000, "c" * 3_000)
    bench.settle(bench.receive(), SettleOutcome.DEFER)
    monkeypatch.setattr(numbered_messages, "DEFERRED_BYTES", 2_500)
    for numbers in ((1, 2, 3), (1, 3)):
        with pytest.raises(ServiceError, match="ask for fewer at once") as refused:
            bench.deferred(*numbers)
        assert refused.value.condition is RESOURCE_LIMIT
    assert [each.number for each in bench.deferred(2, 1)] == [2, 1]
    assert [each.number for each in bench.deferred(3)] == [3], "one comes however large it is"


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
    assert bench.peek(5) == bench.peek(6) == bench.peek(4_096) == bench.peek(4_097) == bench.peek(1 << 40) == []
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


def test_a_batch_delete_is_of_active_messages_of_its_sub_queue_alone(bench: QueueBench) -> None:
    def deleted(sub_queue: SubQueue) -> int:
        found = bench.answer(
            lambda done: bench.fragment.delete_messages(sub_queue, max_count=9, before_ms=before_ms, on_done=done)
        )
        assert isinstance(found, int)
        return found

    bench.send("deferred", "dead", "a", "b")
    for outcome in (SettleOutcome.DEFER, SettleOutcome.DEAD_LETTER):
        bench.settle(bench.receive(max_count=1), outcome)
    before_ms = bench.now_ms()
    bench.send("later", scheduled_ms=before_ms + 60_000)
    bench.send("young")
    assert deleted(SubQueue.MAIN) == 2
    assert bodies(bench.peek()) == ["deferred", "later", "young"]
    assert bodies(bench.peek(sub_queue=SubQueue.DEAD_LETTERS)) == ["dead"]
    assert deleted(SubQueue.DEAD_LETTERS) == 1
    assert bench.peek(sub_queue=SubQueue.DEAD_LETTERS) == []


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


def stalled_receive(bench: QueueBench, mode: ReceiveMode) -> tuple[FragmentReceiver, list[Any]]:
    """A receiver whose messages are being read from the disk, and its answers to come."""
    for _ in range(20):
        bench.send("x" * 3_000)
    bench.env.stall(Lane.READS)
    receiver, answers = bench.receiver(mode=mode), []
    bench.fragment.receive(receiver, max_count=2, max_bytes=1 << 20, on_done=answers.append)
    bench.run_for(100)
    assert not answers
    return receiver, answers


@pytest.mark.parametrize("mode", ReceiveMode)
def test_messages_that_are_read_for_a_receiver_that_closes_are_free_again_and_uncounted(
    bench: QueueBench, mode: ReceiveMode
) -> None:
    receiver, answers = stalled_receive(bench, mode)
    bench.fragment.close_receiver(receiver)
    bench.env.go_on(Lane.READS)
    bench.run_for(100)
    assert [len(answer.rows) for answer in answers] == [0]
    again = bench.receive(max_count=2, wait_ms=500)
    assert [(each.number, each.deliveries) for each in again] == [(1, 0), (2, 0)]


def test_a_receive_that_is_cancelled_while_it_is_read_for_is_answered_as_planned(bench: QueueBench) -> None:
    receiver, answers = stalled_receive(bench, ReceiveMode.PEEK_LOCK)
    bench.fragment.cancel_receive(receiver)
    assert not answers
    bench.env.go_on(Lane.READS)
    bench.run_for(100)
    assert [len(answer.rows) // MESSAGE_WIDTH for answer in answers] == [2]


def test_damaged_messages_are_passed_over_and_the_others_are_given(bench: QueueBench) -> None:
    bench.send("a" * 3_000)
    bench.send("b" * 3_000)
    bench.send(*("x" * 3_000 for _ in range(10)))
    path = next(path for path in bench.env.files.paths() if path.endswith(".log"))
    data = bench.env.files.bytes_of(path)
    data[data.index(b"a" * 100)] ^= 1
    bench.env.files.set_bytes(path, bytes(data))
    got = bench.receive(max_count=3, wait_ms=3_000)
    assert [each.body[:1] for each in got] == [b"b", b"x", b"x"]


def test_a_receiver_that_closes_while_a_damaged_message_is_read_gets_no_other_one(
    bench: QueueBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver, answers, held = bench.receiver(), list[Any](), list[Any]()
    bench.fragment.receive(receiver, max_count=5, max_bytes=1 << 20, on_done=answers.append)
    monkeypatch.setattr(MessageReads, "begin", lambda reads, indexes, *given: held.append((indexes[0], given[-1])))
    bench.send("a")
    monkeypatch.undo()
    bench.fragment.close_receiver(receiver)
    [(index, on_read)] = held
    on_read(Refused(CorruptStore("damaged", first_index=index, resume_index=index + 1)))
    assert [type(answer) for answer in answers] == [Refused]
    bench.send("b")
    assert bodies(bench.receive()) == ["b"]


def test_a_fragment_whose_operations_are_damaged_is_not_opened(bench: QueueBench) -> None:
    bench.send("a", "b", "c")
    bench.settle(bench.receive(max_count=1), SettleOutcome.DEAD_LETTER, details=SettleDetails(reason="find me"))
    bench.send("d")
    path = next(path for path in bench.env.files.paths() if path.endswith(".log"))
    data = bench.env.files.bytes_of(path)
    data[data.index(b"find me")] ^= 1
    bench.env.files.set_bytes(path, bytes(data))
    with pytest.raises(CorruptStore):
        bench.restart()
