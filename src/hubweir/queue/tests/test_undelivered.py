"""Messages that were sent by way of a queue to one that does not take them: transfer dead letters from the start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hubweir.errors import RESOURCE_LIMIT, CorruptStore, ServiceError
from hubweir.messaging_store.record import headers_of
from hubweir.queue.fragment import Effects
from hubweir.queue.fragment_settings import FragmentSettings
from hubweir.queue.operation import UNDELIVERED, Operation
from hubweir.queue.sub_queue import SubQueue
from hubweir.queue.tests.conftest import QueueBench, bodies, message, run_of
from hubweir.queue.tests.test_transaction import Work, locked
from hubweir.queue.transaction import Undelivered, commit_parts

BenchWith = Callable[..., QueueBench]


def left(bench: QueueBench, run: bytearray, messages: int, *, sent: bytearray | None = None) -> Effects:
    """Messages that were sent by way of this queue, in two parts, and one that is sent to it."""
    first = sum(header.length for header in headers_of(run) if header.position < len(run) // 2)
    said = (
        Undelivered(2, first, "off", "it is off"),
        Undelivered(messages - 2, len(run) - first, "gone", "it is gone"),
    )
    return Effects(run=run + (sent or b""), messages=messages + bool(sent), undelivered=said)


@pytest.mark.parametrize("settings", [{}, {"duplicate_window_ms": 60_000}, {"requires_session": True}])
@pytest.mark.parametrize("prepares", [False, True])
def test_undelivered_messages_are_transfer_dead_letters_from_the_start(
    bench_with: BenchWith, settings: dict[str, Any], prepares: bool
) -> None:
    bench = bench_with(**settings)
    later = bench.now_ms() + 60_000
    run = run_of(
        message("a", message_id="1"),
        message("a", message_id="1"),
        message("later", scheduled_ms=later),
        message("old", ttl_ms=1),
        size=1,
    )
    effects = left(bench, run, 4, sent=run_of(message("own", message_id="1", session="s")))
    if prepares:
        parts = [bench.fragment.prepare(b"t" * 16, "another log", effects, bench.times())]
    else:
        parts = [bench.fragment.transact(effects, bench.times())]
    assert bench.answer(lambda on_done: commit_parts(bench.fragment.core, parts, bench.times(), on_done)) is None
    for restarts in (False, True):
        if restarts:
            bench.restart()
        if prepares and not restarts:
            assert bench.peek() == bench.peek(sub_queue=SubQueue.TRANSFER_DEAD_LETTERS) == []
            bench.answer(
                lambda on_done: bench.fragment.end_transaction(
                    b"t" * 16, is_committed=True, times=bench.times(), on_done=on_done
                )
            )
        counts = bench.fragment.counts()
        assert (counts.active, counts.scheduled, counts.dead_lettered, counts.transfer_dead_lettered) == (1, 0, 0, 4)
        found = bench.peek(sub_queue=SubQueue.TRANSFER_DEAD_LETTERS)
        assert bodies(found) == ["a", "a", "later", "old"]
        assert [each.properties and each.properties["DeadLetterReason"] for each in found] == ["off"] * 2 + ["gone"] * 2
        assert bodies(bench.peek()) == ["own"]
    bench.run_for(100_000)
    assert bench.fragment.counts().transfer_dead_lettered == 4
    assert len(bench.receive(bench.receiver(SubQueue.TRANSFER_DEAD_LETTERS))) == 4


def test_undelivered_messages_count_for_the_size_and_settlements_go_on_over_it(bench_with: BenchWith) -> None:
    bench = bench_with(max_size_bytes=600)
    [a] = locked(bench, "a" * 300)
    with pytest.raises(ServiceError) as refused:
        bench.fragment.transact(left(bench, run_of(*(message("b" * 100) for _ in range(4)), size=2), 4), bench.times())
    assert refused.value.condition is RESOURCE_LIMIT
    bench.fragment.core.settings = FragmentSettings(max_size_bytes=1)
    assert Work(bench).settle(a).done() is None


def test_undelivered_messages_are_none_of_the_window(bench_with: BenchWith) -> None:
    bench = bench_with(duplicate_window_ms=60_000)
    bench.fragment.core.state.duplicates.limit = 1
    effects = left(bench, run_of(*(message("a") for _ in range(4)), size=2), 4, sent=run_of(message("own")))
    part = bench.fragment.transact(effects, bench.times())
    assert bench.answer(lambda on_done: commit_parts(bench.fragment.core, [part], bench.times(), on_done)) is None
    assert bodies(bench.peek()) == ["own"]


def test_a_batch_of_more_than_was_said_to_be_undelivered_is_a_corrupt_store(bench: QueueBench) -> None:
    state = bench.fragment.core.state
    state.apply(Operation(UNDELIVERED, many=1), is_replay=True)
    with pytest.raises(CorruptStore):
        state.apply_run(run_of(message("a"), message("b")), is_replay=True)
