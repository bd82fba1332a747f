"""What receivers of one turn share when their messages are read."""

from __future__ import annotations

from array import array
from typing import Any

from hubweir.env import Lane
from hubweir.errors import CorruptStore, LogOffline
from hubweir.kernels.contract import MESSAGE_WIDTH
from hubweir.messaging_store.log import Refused, Run
from hubweir.queue.message_reads import NEAR, ONE_BATCH, READ_BYTES
from hubweir.queue.tests.conftest import QueueBench, bodies, message, opened

PLACED = [NEAR // 2, 2 * NEAR, 4 * NEAR + 7]
LAST = 5 * NEAR


def read_indexes(bench: QueueBench) -> list[int]:
    """Where the log is read from now on."""
    found: list[int] = []
    read = bench.log.read

    def watched(index: int, **named: Any) -> Any:
        found.append(index)
        return read(index, **named)

    bench.log.read = watched  # type: ignore[method-assign]
    return found


def test_receivers_of_one_turn_read_what_the_log_has_in_memory_once(bench: QueueBench) -> None:
    bench.send(*"abcdef")
    indexes, answers = read_indexes(bench), list[Any]()
    for _ in range(3):
        bench.fragment.receive(bench.receiver(), max_count=2, max_bytes=1 << 20, on_done=answers.append)
    bench.run_for(50)
    assert [bodies(opened(each)) for each in answers] == [["a", "b"], ["c", "d"], ["e", "f"]]
    assert len(indexes) == 1


def test_nothing_of_a_turn_is_kept_behind_it(bench: QueueBench) -> None:
    bench.send("a")
    indexes = read_indexes(bench)
    assert bodies(bench.receive()) == bodies(bench.peek()) == bodies(bench.peek()) == ["a"]
    assert len(indexes) == 3


def test_messages_that_lie_far_apart_on_the_disk_are_asked_for_at_once_and_alone(bench: QueueBench) -> None:
    """What comes due together was sent at different times: a receiver does not wait for one read after the other."""
    now_ms = bench.now_ms()
    dues = [now_ms + (5_000 if place in PLACED else 1_000_000) for place in range(LAST)]
    for first in range(0, LAST, 100):
        some = dues[first : first + 100]
        bench.enqueue(*(message(f"{first + at}", scheduled_ms=due) for at, due in enumerate(some)))
    bench.run_for(200)
    asked, read = list[tuple[int, int]](), bench.log.read

    def watched(index: int, *, max_bytes: int, on_done: Any) -> Any:
        asked.append((index, max_bytes))
        return read(index, max_bytes=max_bytes, on_done=on_done)

    bench.log.read = watched  # type: ignore[method-assign]
    bench.env.stall(Lane.READS)
    answers: list[Any] = []
    bench.fragment.receive(bench.receiver(), max_count=10, max_bytes=1 << 20, on_done=answers.append)
    bench.run_for(6_000)
    assert asked == [(1 + place, ONE_BATCH) for place in PLACED] and not answers  # record 0 has the settings
    bench.env.go_on(Lane.READS)
    bench.run_for(100)
    assert bodies(opened(*answers)) == [f"{place}" for place in PLACED] and len(asked) == len(PLACED)


def test_who_goes_through_messages_on_the_disk_has_them_read_ahead(bench: QueueBench) -> None:
    for first in range(0, LAST, 100):
        bench.send(*(f"{first + at}" for at in range(100)))
    bench.run_for(200)
    indexes, receiver = read_indexes(bench), bench.receiver()
    for place in range(600):
        assert bodies(bench.receive(receiver, 1)) == [f"{place}"]
    assert len(indexes) < 5


def test_a_record_that_the_log_does_not_have_is_refused_and_not_asked_for_without_end(bench: QueueBench) -> None:
    bench.send("a")
    bench.log.read = lambda index, **named: Run(b"", index, index)  # type: ignore[method-assign]
    answers: list[Any] = []
    rows = array("q", bytes(8 * MESSAGE_WIDTH))
    bench.fragment.core.reads.begin(array("q", [0]), rows, {}, answers.append)
    (refused,) = answers
    assert isinstance(refused, Refused) and isinstance(refused.error, CorruptStore)
    assert bench.fragment.core.reads.least_index is None


def test_a_read_of_several_places_is_refused_when_all_were_answered(bench: QueueBench) -> None:
    waiting: list[Any] = []
    bench.log.read = lambda index, *, max_bytes, on_done: waiting.append(on_done)  # type: ignore[method-assign]
    reads, answers = bench.fragment.core.reads, list[Any]()
    rows = array("q", bytes(8 * MESSAGE_WIDTH * 3))
    reads.begin(array("q", [0, NEAR, 2 * NEAR]), rows, {}, answers.append)
    assert len(waiting) == 3
    refused = Refused(LogOffline("the disk is gone"))
    for answer in (refused, Run(b"", 0, 1), Run(b"", NEAR, NEAR + 1)):
        assert not answers and reads.least_index == 0
        waiting.pop()(answer)
    assert answers == [refused] and reads.least_index is None


def test_where_more_is_needed_of_what_follows_more_is_read_at_once(bench: QueueBench) -> None:
    asked: list[tuple[int, int]] = []

    def watched(index: int, *, max_bytes: int, on_done: Any) -> None:
        asked.append((index, max_bytes))

    bench.log.read = watched  # type: ignore[method-assign,assignment]
    rows = array("q", bytes(8 * MESSAGE_WIDTH * 3))
    bench.fragment.core.reads.begin(array("q", [0, NEAR - 1, 2 * NEAR]), rows, {}, print)
    assert asked == [(0, READ_BYTES), (2 * NEAR, ONE_BATCH)]
