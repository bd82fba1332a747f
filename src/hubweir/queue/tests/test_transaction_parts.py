"""Messages that are sent in a transaction which another log decides: held until it ends, and stored then, once."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import pytest

from hubweir.errors import NOT_ALLOWED, RESOURCE_LIMIT, ServiceError
from hubweir.messaging_store.log import Refused
from hubweir.messaging_store.record import headers_of
from hubweir.queue.fragment import Effects
from hubweir.queue.fragment_settings import FragmentSettings
from hubweir.queue.operation import RANGES_LIMIT
from hubweir.queue.settle_outcome import LOCK_LOST, SettleOutcome
from hubweir.queue.tests.conftest import QueueBench, bodies, message, run_of
from hubweir.queue.tests.test_transaction import locked
from hubweir.queue.transaction import TransactedSettlement, commit
from hubweir.testing.answers import runs_of
from hubweir.testing.memory_faults import Fault

TXN, OTHER = b"t" * 16, b"o" * 16
BenchWith = Callable[..., QueueBench]


def prepare(bench: QueueBench, *messages: bytes, tokens: bytes = b"", transaction: bytes = TXN) -> Refused | None:
    settlements = [TransactedSettlement("", tokens, SettleOutcome.COMPLETE)] if tokens else []
    effects = Effects(settlements, array("q"), run_of(*messages, size=2), len(messages))
    part = bench.fragment.prepare(transaction, "another log", effects, bench.times())
    answer: Refused | None = bench.answer(
        lambda on_done: commit(bench.fragment.core, [part], bench.times(), on_done), wait_ms=200
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
