"""Operations of a turn: what of them becomes one, in which order they stand, and that none is lost on the way."""

from __future__ import annotations

from array import array
from typing import Any

from hubweir.errors import STORE_OFFLINE, ServiceError
from hubweir.messaging_store.operations import operations_in
from hubweir.messaging_store.record import headers_of
from hubweir.queue.fragment_core import UNAWAITED_MS
from hubweir.queue.fragment_values import ReceivedMessages, Times
from hubweir.queue.operation import LOCKED, MODIFIED, SETTLED, decode_operation
from hubweir.queue.settle_outcome import SettleDetails, SettleOutcome
from hubweir.queue.sub_queue import SubQueue
from hubweir.queue.tests.conftest import PEEK_LOCK, Got, QueueBench, opened
from hubweir.queue.tests.session_bench import SessionBench
from hubweir.testing.simulated_env import SimulatedEnv

Operations = list[tuple[int, list[int]]]


def appended(bench: QueueBench) -> list[Operations]:
    """Code and ranges of each operation, by the runs that are appended from now on."""
    runs: list[Operations] = []
    append = bench.log.append

    def watched(run: bytearray, **named: Any) -> Any:
        operations = [decode_operation(each) for header in headers_of(run) for each in operations_in(run, header)]
        runs.append([(each.code, each.ranges.tolist()) for each in operations])
        return append(run, **named)

    bench.log.append = watched  # type: ignore[method-assign]
    return runs


def received_at_once(bench: QueueBench, receivers: int, each: int) -> list[list[Got]]:
    """What so many receivers are given in one turn."""
    answers: list[Any] = []
    for _ in range(receivers):
        bench.fragment.receive(bench.receiver(), max_count=each, max_bytes=1 << 20, on_done=answers.append)
    bench.run_for(50)
    return [opened(answer) for answer in answers]


def settle(
    bench: QueueBench, got: list[Got], outcome: SettleOutcome, told: list[Any], details: SettleDetails | None = None
) -> None:
    tokens = b"".join(each.token for each in got)
    bench.fragment.settle(tokens, outcome, bench.times(), told.append, details=details)


def turns_of(bench: QueueBench) -> list[int]:
    """A number for each turn of the fragment from now on."""
    turns, turn = list[int](), bench.fragment.turn

    def counted(times: Times) -> None:
        turns.append(times.monotonic_ms)
        turn(times)

    bench.fragment.turn = counted  # type: ignore[method-assign]
    return turns


def test_what_many_receivers_are_given_and_settle_in_a_turn_is_one_operation_each(bench: QueueBench) -> None:
    bench.send(*"abcdef")
    runs, told = appended(bench), list[Any]()
    got = received_at_once(bench, 3, 2)
    for each in (got[2], got[0]):
        settle(bench, each, SettleOutcome.COMPLETE, told)
    assert not told, "nothing of it is durable"
    bench.run_for(50)
    assert told == [b"\0\0", b"\0\0"]
    assert runs == [[(LOCKED, [1, 6])], [(SETTLED, [1, 2, 5, 2])]]


def test_a_count_of_deliveries_goes_with_what_is_settled_next(bench: QueueBench) -> None:
    bench.send(*"ab")
    runs, told = appended(bench), list[Any]()
    first, second = bench.receive(wait_ms=UNAWAITED_MS - 2)
    assert not runs
    settle(bench, [first], SettleOutcome.COMPLETE, told)
    bench.run_for(1)
    assert runs == [[(LOCKED, [1, 2]), (SETTLED, [1, 1])]]
    settle(bench, [second], SettleOutcome.COMPLETE, told)
    bench.run_for(100)
    assert runs[1:] == [[(SETTLED, [2, 1])]]
    bench.restart()
    assert bench.peek() == []


def test_counts_of_deliveries_are_logged_together_and_in_time(bench: QueueBench) -> None:
    bench.send(*"abc")
    runs = appended(bench)
    bench.receive(max_count=1, wait_ms=UNAWAITED_MS - 1)
    bench.receive(max_count=1, wait_ms=0)
    assert not runs
    bench.run_for(2)
    assert runs == [[(LOCKED, [1, 2])]]
    bench.receive(max_count=1, wait_ms=UNAWAITED_MS - 1)
    assert len(runs) == 1
    bench.run_for(2)
    assert runs[1:] == [[(LOCKED, [3, 1])]]


def test_counts_that_went_with_something_cost_no_run_of_their_own_later(bench: QueueBench) -> None:
    bench.send("a")
    runs, told = appended(bench), list[Any]()
    settle(bench, bench.receive(wait_ms=5), SettleOutcome.COMPLETE, told)
    bench.run_for(200)
    assert len(runs) == 1


def test_who_waits_for_all_that_was_said_waits_for_no_count_of_deliveries() -> None:
    bench = SessionBench()
    bench.send("a", session="s")
    runs, receiver = appended(bench), bench.accept("s")
    bench.receive(receiver, 1, wait_ms=1)
    bench.fragment.close_receiver(receiver)
    state = bench.fragment.core.state.sessions.by_id[b"s"]
    assert not runs and not state.is_free
    bench.run_for(UNAWAITED_MS // 2)
    assert runs == [[(LOCKED, [1, 1])]] and state.is_free


def test_an_end_logs_the_counts_that_nobody_waited_for(bench: QueueBench) -> None:
    bench.send("a")
    bench.receive(wait_ms=1)
    bench.fragment.end(ServiceError(STORE_OFFLINE, "stops"), bench.times())
    closed: list[bool] = []
    bench.log.close(lambda: closed.append(True))
    bench.run_for(100)
    assert closed
    bench.restart()
    assert [each.deliveries for each in bench.receive()] == [1]


def test_counts_that_wait_are_in_a_snapshot_once(bench: QueueBench) -> None:
    bench.send("a")
    bench.receive(wait_ms=1)
    bench.fragment.upkeep.snapshot_records = 0
    bench.fragment.maintain(bench.times())
    bench.run_for(200)
    bench.restart()
    assert [each.deliveries for each in bench.receive(wait_ms=500)] == [1]


def test_a_message_costs_a_turn_when_it_comes_and_one_when_it_is_settled() -> None:
    """Neither what is said in a turn, nor who asks again and finds nothing, nor the answer wants another one."""
    bench = QueueBench(env=SimulatedEnv(7, slowest_ms=0))
    receiver, got, told = bench.receiver(), list[Got](), list[Any]()
    turns = turns_of(bench)

    def ask() -> None:
        bench.fragment.receive(receiver, max_count=1, max_bytes=1 << 20, on_done=came)

    def came(received: ReceivedMessages) -> None:
        got.extend(opened(received))
        ask()

    ask()
    assert not turns
    for many in range(1, 4):
        bench.send("a", wait_ms=2)
        assert (len(got), len(turns)) == (many, 2 * many - 1)
        settle(bench, got[-1:], SettleOutcome.COMPLETE, told)
        bench.run_for(2)
        assert (len(told), len(turns)) == (many, 2 * many)


def test_operations_of_different_kinds_stay_in_their_order(bench: QueueBench) -> None:
    bench.send(*"abcd")
    ((a, b, c, d),) = received_at_once(bench, 1, 4)
    runs, told = appended(bench), list[Any]()
    settle(bench, [d], SettleOutcome.COMPLETE, told)
    settle(bench, [b], SettleOutcome.COMPLETE, told)
    settle(bench, [c], SettleOutcome.ABANDON, told, SettleDetails(properties=b"\xc1\x07\x02\xa1\x01k\xa1\x01v"))
    settle(bench, [a], SettleOutcome.COMPLETE, told)
    bench.run_for(50)
    assert runs[0] == [(SETTLED, [2, 1, 4, 1]), (MODIFIED, [3, 1]), (SETTLED, [1, 1])]
    assert len(told) == 4


def test_what_is_settled_and_what_is_given_in_a_turn_are_two_operations(bench: QueueBench) -> None:
    bench.send(*"ab")
    ((a,),) = received_at_once(bench, 1, 1)
    runs, told = appended(bench), list[Any]()
    settle(bench, [a], SettleOutcome.COMPLETE, told)
    received_at_once(bench, 1, 1)
    assert runs == [[(SETTLED, [1, 1]), (LOCKED, [2, 1])]] and told == [b"\0"]


def test_a_snapshot_between_a_call_and_its_turn_counts_no_delivery_twice(bench: QueueBench) -> None:
    (number,) = bench.send("a")
    bench.settle(bench.receive(), SettleOutcome.DEFER)
    answers: list[Any] = []
    bench.fragment.receive_deferred(SubQueue.MAIN, array("q", [number]), PEEK_LOCK, bench.times(), answers.append)
    bench.fragment.upkeep.snapshot_records = 0
    bench.fragment.maintain(bench.times())
    bench.run_for(50)
    assert [each.deliveries for each in opened(*answers)] == [0]
    bench.restart()
    assert [each.deliveries for each in bench.deferred(number)] == [1]


def test_a_session_that_is_closed_in_the_turn_of_a_settlement_is_free_when_that_is_decided() -> None:
    bench, told = SessionBench(), list[Any]()
    bench.send("a", "b", session="s")
    receiver = bench.accept("s")
    settle(bench, bench.receive(receiver, 1), SettleOutcome.COMPLETE, told)
    bench.fragment.close_receiver(receiver)
    state = bench.fragment.core.state.sessions.by_id[b"s"]
    assert not state.is_free and not told
    bench.run_for(50)
    assert state.is_free and told == [b"\0"]
