"""waiting.py: runs wait in order and within a bound, callers until what they saw is synced."""

from __future__ import annotations

from typing import Any

import pytest

from hubweir.messaging_store.completion import LogEnd
from hubweir.messaging_store.log import Appended, Durability
from hubweir.messaging_store.segment_engine.waiting import Entry, EntryQueue, SyncWaiters

END = LogEnd()


def entry(size: int) -> Entry:
    return Entry(bytearray(size), END, END, Appended(0, 0, 0, 0, 0), None)


def queue_of(*sizes: int) -> EntryQueue:
    queue = EntryQueue()
    for size in sizes:
        assert queue.add(entry(size), 1000)
    return queue


def sizes(entries: list[Entry]) -> list[int]:
    return [len(entry.run) for entry in entries]


def test_runs_come_out_in_the_order_in_which_they_came() -> None:
    queue = queue_of(3, 1, 2)
    assert queue.bytes == 6 and len(queue.entries[0].run) == 3
    assert sizes(queue.take_all()) == [3, 1, 2]
    assert not queue.entries and queue.bytes == 0 and queue.take_all() == []


def test_a_run_over_the_limit_is_not_queued_unless_nothing_waits() -> None:
    queue = EntryQueue()
    assert queue.add(entry(50), 10)
    assert not queue.add(entry(1), 50)
    assert queue.bytes == 50 and queue.add(entry(1), 51)
    assert queue.bytes == 51


@pytest.mark.parametrize(("room", "taken"), [(0, [4]), (9, [4, 5]), (11, [4, 5]), (12, [4, 5, 3]), (100, [4, 5, 3])])
def test_as_many_as_fit_are_taken_and_one_at_least(room: int, taken: list[int]) -> None:
    queue = queue_of(4, 5, 3)
    entries, size = queue.take(room)
    assert sizes(entries) == taken and size == sum(taken)
    assert queue.bytes == 12 - size and sizes(queue.take_all()) == [4, 5, 3][len(taken) :]


def test_nothing_is_taken_of_nothing() -> None:
    assert EntryQueue().take(100) == ([], 0)


def test_what_is_put_back_goes_in_front() -> None:
    queue = queue_of(1, 2)
    entries, _ = queue.take(1)
    assert queue.add(entry(3), 1000)
    queue.put_back(entries)
    assert queue.bytes == 6 and len(queue.entries[0].run) == 1 and sizes(queue.take_all()) == [1, 2, 3]


def test_what_was_tried_is_taken_out_and_the_rest_waits_on() -> None:
    queue = queue_of(1, 2, 3)
    entries, _ = queue.take(3)
    entries[1].is_tried = True
    queue.put_back(entries)
    assert sizes(queue.take_tried()) == [2] and queue.bytes == 4
    assert sizes(queue.take_all()) == [1, 3]


@pytest.fixture
def relaxed(make_bench: Any) -> Any:
    bench = make_bench(durability=Durability.RELAXED)
    bench.append(b"a")
    bench.env.run_for(2_000)
    bench.append(b"b", wait_ms=0)
    bench.env.turn()  # written, not synced
    return bench


def test_what_is_visible_and_not_synced_is_waited_for(relaxed: Any) -> None:
    waiters, answers = SyncWaiters(relaxed.log._state), []
    assert waiters.add(answers.append)
    waiters.release()
    relaxed.env.turn()
    assert answers == []
    relaxed.env.run_for(500)
    waiters.release()
    relaxed.env.turn()
    assert answers == [True]
    assert not waiters.add(answers.append)
    assert answers == [True]
    relaxed.env.turn()
    assert answers == [True, True]


def test_a_log_that_goes_offline_tells_those_who_wait(relaxed: Any) -> None:
    waiters, answers = SyncWaiters(relaxed.log._state), []
    waiters.add(answers.append)
    relaxed.log._state.health.offline = "planted"
    waiters.release()
    assert not waiters.add(answers.append)
    relaxed.env.turn()
    assert answers == [False, False]
