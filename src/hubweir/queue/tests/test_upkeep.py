"""Snapshots, trimming, and messages that stay long while the log goes on."""

from __future__ import annotations

from hubweir.env import Lane
from hubweir.queue.fragment import ReceivedMessages
from hubweir.queue.settle_outcome import SettleDetails, SettleOutcome
from hubweir.queue.sub_queue import SubQueue
from hubweir.queue.tests.conftest import QueueBench, opened
from hubweir.testing.memory_faults import Fault


def small(bench: QueueBench) -> QueueBench:
    """Upkeep as of a large log, for a small one."""
    upkeep = bench.fragment.upkeep
    upkeep.snapshot_records, upkeep.slack_bytes = 10, 100_000
    return bench


def maintained(bench: QueueBench, times: int = 3) -> None:
    for _ in range(times):
        bench.fragment.maintain(bench.times())
        bench.run_for(300)


def churn(bench: QueueBench, rounds: int) -> None:
    """Messages come and go, so that the log grows."""
    receiver = bench.receiver()
    for number in range(rounds):
        bench.send(f"{number}" + "x" * 2_000)
        bench.complete(bench.receive(receiver))


def test_a_log_goes_when_its_messages_are_gone_and_snapshots_cover_it(bench: QueueBench) -> None:
    small(bench)
    for _ in range(6):
        churn(bench, 20)
        maintained(bench)
    bounds = bench.log.bounds
    assert bounds.first_index > 100
    assert bounds.next_offset - bounds.first_offset < 3 * 64 * 1024
    bench.restart()
    assert bench.receive() == []
    assert bench.send("next") == [121]


def test_a_start_replays_only_what_the_snapshot_does_not_hold(bench: QueueBench) -> None:
    small(bench)
    bench.send(*map(str, range(50)))
    got = bench.receive(max_count=20)
    bench.complete(got[:10])
    bench.settle(got[10:12], SettleOutcome.DEFER)
    bench.settle(got[12:14], SettleOutcome.DEAD_LETTER, details=SettleDetails(reason="r"))
    bench.settle(got[14:16], SettleOutcome.ABANDON)
    maintained(bench)
    bench.send("later", ttl_ms=50_000)
    seen, counts = bench.peek(), bench.fragment.counts()
    bench.restart()
    assert bench.fragment.upkeep.snapshot_index > 0
    assert [(each.number, each.body, each.state) for each in bench.peek()] == [
        (each.number, each.body, each.state) for each in seen
    ]
    assert bench.fragment.counts() == counts
    deliveries = {each.number: each.deliveries for each in bench.receive(max_count=200)}
    assert {number: deliveries[number] for number in (15, 17, 21)} == {15: 1, 17: 1, 21: 0}
    dead = bench.receive(bench.receiver(SubQueue.DEAD_LETTERS))
    assert [each.number for each in dead] == [13, 14]
    assert dead[0].properties == {"DeadLetterReason": "r"}


def test_numbers_go_on_behind_a_snapshot_of_a_queue_that_was_empty(bench: QueueBench) -> None:
    small(bench)
    bench.send(*map(str, range(20)))
    bench.complete(bench.receive())
    maintained(bench)
    bench.restart()
    assert bench.send("next") == [21]
    (got,) = bench.receive()
    assert (got.number, got.body) == (21, b"next")
    bench.complete([got])


def test_a_snapshot_does_not_count_deliveries_twice_that_are_not_visible_yet(bench: QueueBench) -> None:
    small(bench)
    bench.send(*map(str, range(12)))
    receiver, answers = bench.receiver(), []
    bench.fragment.receive(receiver, max_count=5, max_bytes=1 << 20, on_done=answers.append)
    bench.env.turn()  # the messages are out, and LOCKED is on its way
    assert len(answers) == 1
    assert len(bench.fragment._core.operations_under_way()) == 1
    bench.fragment.maintain(bench.times())
    bench.run_for(500)
    bench.restart()
    assert [each.deliveries for each in bench.receive()] == [1] * 5 + [0] * 7


def test_a_snapshot_takes_back_what_was_given_and_released_in_one_turn(bench: QueueBench) -> None:
    small(bench)
    bench.send(*map(str, range(12)))
    receiver, answers = bench.receiver(), []
    bench.fragment.receive(receiver, max_count=5, max_bytes=1 << 20, on_done=answers.append)
    bench.env.turn()
    tokens = b"".join(each.token for each in opened(answers[0]))
    bench.fragment.settle(tokens, SettleOutcome.RELEASE, bench.times(), answers.append)
    bench.fragment.maintain(bench.times())
    bench.run_for(500)
    bench.restart()
    assert [each.deliveries for each in bench.receive()] == [0] * 12


def test_a_forgotten_message_does_not_keep_the_log(bench: QueueBench) -> None:
    small(bench)
    bench.send("forgotten", properties={"a": 1})
    more = SettleDetails(properties=b"\xc1\x06\x02\xa1\x01b\x54\x02")
    bench.settle(bench.receive(), SettleOutcome.DEFER, details=more)
    for _ in range(12):
        churn(bench, 20)
        maintained(bench, 1)
    bounds = bench.log.bounds
    assert bounds.first_index > 50
    assert bounds.next_offset - bounds.first_offset < 400_000
    for _ in range(2):
        (got,) = bench.deferred(1)
        assert (got.number, got.body, got.properties) == (1, b"forgotten", {"a": 1, "b": 2})
        bench.restart()


def test_a_message_that_is_settled_while_it_is_moved_stays_gone(bench: QueueBench) -> None:
    small(bench)
    bench.send("a", "b")
    got = bench.receive()
    bench.settle(got[1:], SettleOutcome.DEFER)
    churn(bench, 120)
    bench.fragment.maintain(bench.times())
    got = bench.receive(bench.receiver(), wait_ms=0) if not got[:1] else got[:1]
    bench.settle(got)
    bench.run_for(500)
    assert [each.number for each in bench.peek()] == [2]
    bench.restart()
    assert [(each.number, each.body) for each in bench.peek()] == [(2, b"b")]


def test_many_messages_are_moved_in_several_batches(bench: QueueBench) -> None:
    small(bench)
    bench.send(*(f"{number:03}" + "y" * 500 for number in range(300)))
    bench.fragment.upkeep.slack_bytes = -(1 << 30)
    for _ in range(12):
        maintained(bench, 1)
    first = bench.fragment._core.state.messages.least_index()
    assert first is not None and first >= 300
    bench.restart()
    assert [each.body[:3].decode() for each in bench.peek()] == [f"{number:03}" for number in range(300)]


def test_a_snapshot_that_fails_is_made_again(bench: QueueBench) -> None:
    small(bench)
    bench.send(*map(str, range(20)))
    bench.env.files.plan(Fault.EIO, call="rename")
    maintained(bench, 1)
    assert bench.fragment.upkeep.snapshot_index == 0
    maintained(bench, 2)
    assert bench.fragment.upkeep.snapshot_index >= 20


def test_what_is_read_is_not_trimmed_meanwhile(bench: QueueBench) -> None:
    small(bench)
    for _ in range(20):
        bench.send("x" * 3_000)
    bench.env.stall(Lane.READS)
    answers: list[ReceivedMessages] = []
    bench.fragment.peek(SubQueue.MAIN, 1, max_count=3, max_bytes=1 << 20, on_done=answers.append)  # type: ignore[arg-type]
    bench.run_for(100)
    assert not answers
    churn_in_memory(bench)
    first_index = bench.log.bounds.first_index
    bench.env.go_on(Lane.READS)
    bench.run_for(500)
    assert len(opened(answers[0])) == 3
    maintained(bench)
    assert bench.log.bounds.first_index > first_index


def churn_in_memory(bench: QueueBench) -> None:
    """Messages come and are deleted unread, with upkeep in between: nothing of it waits for a read."""
    for _ in range(6):
        bench.send(*("y" * 3_000 for _ in range(20)))
        bench.answer(
            lambda on_done: bench.fragment.delete_messages(
                SubQueue.MAIN, max_count=1_000, before_ms=bench.now_ms() + 1, on_done=on_done
            )
        )
        maintained(bench)
