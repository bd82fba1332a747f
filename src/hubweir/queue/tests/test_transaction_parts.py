"""Messages that are sent in a transaction which another log decides: held until it ends, and stored then, once."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import pytest

from hubweir.errors import NOT_ALLOWED, RESOURCE_LIMIT, SERVER_BUSY, ServiceError
from hubweir.messaging_store.log import Refused
from hubweir.messaging_store.record import headers_of
from hubweir.queue.fragment import Effects
from hubweir.queue.fragment_settings import FragmentSettings
from hubweir.queue.operation import RANGES_LIMIT
from hubweir.queue.settle_outcome import LOCK_LOST, SettleOutcome
from hubweir.queue.sub_queue import ReceiveMode
from hubweir.queue.tests.conftest import QueueBench, bodies, message, run_of
from hubweir.queue.tests.test_transaction import locked
from hubweir.queue.transaction import Reserved, TransactedSettlement, commit_parts
from hubweir.testing.answers import runs_of
from hubweir.testing.memory_faults import Fault

TXN, OTHER = b"t" * 16, b"o" * 16
BenchWith = Callable[..., QueueBench]


def prepare(bench: QueueBench, *messages: bytes, tokens: bytes = b"", transaction: bytes = TXN) -> Refused | None:
    settlements = [TransactedSettlement("", tokens, SettleOutcome.COMPLETE)] if tokens else []
    effects = Effects(settlements, array("q"), run_of(*messages, size=2), len(messages))
    part = bench.fragment.prepare(transaction, "another log", effects, bench.times())
    answer: Refused | None = bench.answer(
        lambda on_done: commit_parts(bench.fragment.core, [part], bench.times(), on_done), wait_ms=200
    )
    return answer


def end(bench: QueueBench, *, is_committed: bool = True, transaction: bytes = TXN) -> list[Any]:
    """Begin the end; the answer, when it comes."""
    answers: list[Any] = []
    bench.fragment.end_transaction(
        transaction, is_committed=is_committed, times=bench.times(), on_done=answers.append
    )  # fmt: skip
    return answers


def ended(bench: QueueBench, *, is_committed: bool = True, transaction: bytes = TXN) -> Refused | None:
    answers = end(bench, is_committed=is_committed, transaction=transaction)
    bench.run_for(200)
    [answer] = answers
    assert answer is None or isinstance(answer, Refused)
    return answer


def test_messages_that_are_held_are_none_until_the_end_and_get_their_numbers_then(bench: QueueBench) -> None:
    bench.send("before")
    assert prepare(bench, *(message(f"held {n}") for n in range(3))) is None
    bench.send("meanwhile")
    assert bodies(bench.peek()) == ["before", "meanwhile"]
    assert ended(bench) is None
    got = bench.receive()
    assert bodies(got) == ["before", "meanwhile", "held 0", "held 1", "held 2"]
    assert [each.number for each in got] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("is_committed", [True, False])
@pytest.mark.parametrize("has_snapshot", [False, True])
def test_a_restart_between_keeps_what_is_held(bench: QueueBench, has_snapshot: bool, is_committed: bool) -> None:
    [a] = locked(bench, "a")
    assert prepare(bench, *(message(f"{n}") for n in range(5)), tokens=a.token) is None
    if has_snapshot:
        bench.fragment.upkeep.snapshot_records = 1
        bench.fragment.maintain(bench.times())
        bench.run_for(500)
        assert bench.fragment.upkeep.snapshot_index == bench.log.bounds.next_index
    bench.restart()
    assert bench.fragment.transactions.opened_in_doubt == {TXN}
    assert ended(bench, is_committed=is_committed) is None
    assert bench.fragment.transactions.opened_in_doubt == set()
    wanted = [str(n) for n in range(5)] if is_committed else ["a"]
    assert bodies(bench.peek()) == wanted
    bench.restart()
    assert bodies(bench.peek()) == wanted
    assert bench.fragment.transactions.opened_in_doubt == set()


def test_what_is_settled_and_sent_in_one_log_is_done_in_one_step(bench: QueueBench) -> None:
    [a] = locked(bench, "a")
    assert prepare(bench, message("b"), tokens=a.token) is None
    answers = end(bench)
    assert bench.fragment.counts().active == 1 and answers == []
    bench.run_for(50)
    assert answers == [None] and bodies(bench.peek()) == ["b"]
    assert bench.settle([a]) == [LOCK_LOST]
    _, [count] = bench.fragment.core.locks.find(a.token, bench.times().monotonic_ms)
    assert count == 0


def test_the_end_and_its_messages_are_one_chain_in_the_log(bench: QueueBench) -> None:
    assert prepare(bench, *(message(f"{n}") for n in range(3))) is None
    before = bench.log.bounds.next_index
    assert ended(bench) is None
    headers = [header for run in runs_of(bench.env, bench.log, before) for header in headers_of(run.data)]
    assert [(header.count, header.continues) for header in headers] == [(1, True), (2, True), (1, False)]


def test_an_end_that_comes_twice_stores_messages_once(bench: QueueBench) -> None:
    assert prepare(bench, message("a")) is None
    first, second = end(bench), end(bench)
    bench.run_for(50)
    assert (first, second) == ([None], [None])
    assert ended(bench) is None
    assert bodies(bench.peek()) == ["a"]


def test_an_end_that_the_log_refuses_leaves_it_in_doubt_and_is_tried_again(bench: QueueBench) -> None:
    [a] = locked(bench, "a")
    assert prepare(bench, message("b"), tokens=a.token) is None
    bench.env.files.plan(Fault.SYNC_EIO, 1)
    assert isinstance(ended(bench), Refused)
    assert set(bench.fragment.transactions.in_doubt) == {TXN} and bodies(bench.peek()) == ["a"]
    bench.run_for(2_000)
    assert ended(bench) is None
    assert bodies(bench.peek()) == ["b"]
    bench.restart()
    assert bodies(bench.peek()) == ["b"]


@pytest.mark.parametrize("restarts", [False, True])
def test_what_is_held_counts_for_the_size(bench_with: BenchWith, restarts: bool) -> None:
    bench = bench_with(max_size_bytes=1_000)
    assert prepare(bench, message("a" * 600)) is None
    if restarts:
        bench.restart()
    with pytest.raises(ServiceError) as refused:
        bench.enqueue(message("b" * 600))
    assert refused.value.condition is RESOURCE_LIMIT
    with pytest.raises(ServiceError):
        prepare(bench, message("b" * 600), transaction=OTHER)
    assert ended(bench, is_committed=False) is None
    bench.send("b" * 600)


def test_what_is_held_counts_for_the_window_and_comes_in_though_it_is_full(bench_with: BenchWith) -> None:
    bench = bench_with(duplicate_window_ms=60_000)
    bench.fragment.core.state.duplicates.limit = 3
    assert prepare(bench, message("a", message_id="1"), message("b", message_id="2")) is None
    bench.send("c", message_id="3")
    for run in (lambda: bench.enqueue(message("d", message_id="4")), lambda: prepare(bench, message("d"))):
        with pytest.raises(ServiceError) as refused:
            run()
        assert refused.value.condition is RESOURCE_LIMIT
    assert ended(bench) is None
    assert bodies(bench.receive()) == ["c", "a", "b"]


def test_room_that_was_reserved_is_free_behind_a_refusal(bench_with: BenchWith) -> None:
    bench = bench_with(duplicate_window_ms=60_000)
    bench.fragment.core.state.duplicates.limit = 1
    bench.env.files.plan(Fault.SYNC_EIO, 1)
    assert isinstance(prepare(bench, message("a", message_id="1")), Refused)
    bench.run_for(2_000)
    bench.send("b", message_id="2")


def test_a_duplicate_is_told_when_it_is_stored(bench_with: BenchWith) -> None:
    bench = bench_with(duplicate_window_ms=60_000)
    assert prepare(bench, message("held", message_id="1"), message("new", message_id="2")) is None
    bench.send("first", message_id="1")
    assert ended(bench) is None
    assert bodies(bench.receive()) == ["first", "new"]


def test_a_clock_that_skips_while_messages_are_held_ends_no_window(bench_with: BenchWith) -> None:
    bench = bench_with(duplicate_window_ms=60_000)
    bench.send("before", message_id="0")
    assert prepare(bench, message("held", message_id="1")) is None
    bench.env.jump(120_000)
    assert ended(bench) is None
    for name in ("0", "1"):
        bench.send("again", message_id=name)
    bench.env.jump(120_000)
    bench.send("again", message_id="1")
    assert bodies(bench.peek()) == ["before", "held"]


def test_what_a_queue_does_not_take_is_refused_when_it_is_prepared(bench_with: BenchWith) -> None:
    bench = bench_with(requires_session=True)
    with pytest.raises(ServiceError) as refused:
        prepare(bench, message("a"))
    assert refused.value.condition is NOT_ALLOWED
    assert not bench.fragment.transactions.in_doubt


def test_a_part_with_too_many_settlements_reserves_nothing() -> None:
    bench = QueueBench(FragmentSettings(duplicate_window_ms=60_000))
    bench.fragment.core.state.duplicates.limit = RANGES_LIMIT + 2
    many = RANGES_LIMIT + 1
    bench.enqueue(*(message("x", message_id=f"{n}") for n in range(many)), wait_ms=500)
    tokens = b"".join(each.token for each in bench.receive(max_count=many, wait_ms=500))
    with pytest.raises(ServiceError):
        prepare(bench, message("a", message_id="a"), tokens=tokens)
    bench.send("b", message_id="b")


# Numbers that are reserved


def reserved(bench: QueueBench, many: int) -> Reserved:
    numbers = bench.answer(
        lambda on_done: bench.fragment.transactions.reserve_numbers(many, bench.times(), on_done), wait_ms=200
    )
    return Reserved(numbers.first_number, numbers.next_number - numbers.first_number)


def scheduling(bench: QueueBench, numbers: Reserved, *messages: bytes, sent: bytes | None = None) -> Effects:
    run = run_of(*messages, size=2) + (run_of(sent) if sent else b"")
    return Effects(run=run, messages=len(messages) + bool(sent), reserved=(numbers,))


def committed(bench: QueueBench, effects: Effects) -> None:
    part = bench.fragment.transact(effects, bench.times())
    answer = bench.answer(
        lambda on_done: commit_parts(bench.fragment.core, [part], bench.times(), on_done), wait_ms=200
    )
    assert answer is None


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("prepares", [False, True])
def test_messages_get_the_numbers_that_were_reserved_for_them(
    bench: QueueBench, restarts: bool, prepares: bool
) -> None:
    later = bench.now_ms() + 5_000
    bench.send("1")
    numbers = reserved(bench, 3)
    assert numbers == Reserved(2, 3)
    assert bench.send("5") == [5]
    if restarts:
        bench.restart()
    effects = scheduling(bench, numbers, *(message(f"{n}", scheduled_ms=later) for n in (2, 3, 4)), sent=message("6"))
    if prepares:
        part = bench.fragment.prepare(TXN, "another log", effects, bench.times())
        assert bench.answer(lambda on_done: commit_parts(bench.fragment.core, [part], bench.times(), on_done)) is None
        if restarts:
            bench.restart()
        assert ended(bench) is None
    else:
        committed(bench, effects)
    for _ in range(2):
        assert [(each.number, each.body) for each in bench.peek()] == [(n, b"%d" % n) for n in range(1, 7)]
        assert (bench.fragment.counts().scheduled, bench.fragment.counts().active) == (3, 3)
        bench.restart()
    bench.run_for(6_000)
    assert bodies(bench.receive(wait_ms=500)) == ["1", "5", "6", "2", "3", "4"]


def test_numbers_of_a_fragment_are_reserved_with_its_own_in_front() -> None:
    bench = QueueBench(number=3)
    bench.send("1")
    numbers = reserved(bench, 1)
    assert numbers == Reserved((3 << 48) + 2, 1)
    committed(bench, scheduling(bench, numbers, message("2")))
    assert [each.number - (3 << 48) for each in bench.peek()] == [1, 2]


def test_numbers_of_pages_that_are_gone_are_as_good(bench: QueueBench) -> None:
    """A page of the table whose messages are all gone is dropped, and is in no snapshot."""
    numbers = reserved(bench, 2)
    for _ in range(5):
        bench.enqueue(*(message("x") for _ in range(1_000)), wait_ms=500)
    bench.receive(bench.receiver(mode=ReceiveMode.RECEIVE_AND_DELETE), max_count=4_500, wait_ms=2_000)
    while bench.fragment.counts().active > 500:
        bench.receive(bench.receiver(mode=ReceiveMode.RECEIVE_AND_DELETE), max_count=500, wait_ms=500)
    assert list(bench.fragment.core.state.messages.pages) == [1]
    committed(bench, scheduling(bench, numbers, message("a"), message("b")))
    assert list(bench.fragment.core.state.messages.pages) == [0, 1]
    assert [(each.number, each.body) for each in bench.peek()][:3] == [(1, b"a"), (2, b"b"), (4_503, b"x")]
    assert bodies(bench.receive(max_count=3))[:2] == ["a", "b"]
    bench.restart()
    assert bodies(bench.peek())[:3] == ["a", "b", "x"]


def test_pages_of_numbers_that_nobody_uses_are_not_kept(bench: QueueBench) -> None:
    for _ in range(90):
        reserved(bench, 100)
    assert len(bench.fragment.core.state.messages.pages) == 1
    assert bench.send("a") == [9_001]


@pytest.mark.parametrize("first_number", [0, 1, 4, 1 << 50])
def test_numbers_that_were_not_reserved_are_refused(bench: QueueBench, first_number: int) -> None:
    bench.send("1")
    reserved(bench, 3)  # 2 to 4
    with pytest.raises(ServiceError) as refused:
        bench.fragment.transact(
            scheduling(bench, Reserved(first_number, 2), message("a"), message("b")), bench.times()
        )  # fmt: skip
    assert refused.value.condition is SERVER_BUSY


def test_a_session_gives_a_message_in_the_order_of_its_number(bench_with: BenchWith) -> None:
    bench = bench_with(requires_session=True)
    bench.send("1", session="s")
    numbers = reserved(bench, 1)
    bench.send("3", "4", session="s")
    receiver = bench.answer(
        lambda on_done: bench.fragment.accept_session(
            "s", ReceiveMode.PEEK_LOCK, bench.times(), wait_ms=0, on_done=on_done, on_lost=lambda *_: None
        )
    )
    assert bodies(bench.receive(receiver, 3)) == ["1", "3", "4"]
    committed(bench, scheduling(bench, numbers, message("2", session="s")))
    assert bodies(bench.receive(receiver, 3)) == ["2"]
    bench.restart()
    assert bodies(bench.peek(session="s")) == ["1", "2", "3", "4"]


def test_a_duplicate_among_them_is_dropped(bench_with: BenchWith) -> None:
    bench = bench_with(duplicate_window_ms=60_000)
    numbers = reserved(bench, 2)
    bench.send("first", message_id="1")
    committed(bench, scheduling(bench, numbers, message("again", message_id="1"), message("new", message_id="2")))
    assert [(each.number, each.body) for each in bench.peek()] == [(2, b"new"), (3, b"first")]
