"""Operations of a topic come back as they were written; what is none is refused, whatever is cut off or wrong."""

from __future__ import annotations

from array import array

import pytest

from hubweir.errors import CorruptStore, NewerFormat
from hubweir.queue.operation import RANGES_LIMIT
from hubweir.topic.topic_operation import (
    ADDED,
    CHANGED,
    COPIED,
    PARTLY,
    REMOVED,
    WITHIN,
    TopicOperation,
    added,
    changed,
    copied,
    decode_topic_operation,
    partly,
    prefix_of,
    removed,
)

RECORDS = {
    "added": (added(7, "a" * 32), TopicOperation(ADDED, (7,), "a" * 32)),
    "removed": (removed(2**32 - 1), TopicOperation(REMOVED, (2**32 - 1,))),
    "within": (prefix_of(3) + b"\x04rest", TopicOperation(WITHIN, (3,), inner=b"\x04rest")),
    "copied": (
        copied([1, 9], array("q", [5, 2, 2**47, 1])),
        TopicOperation(COPIED, (1, 9), ranges=array("q", [5, 2, 2**47, 1])),
    ),
    "partly": (
        partly(2**47, (0, 0), (3, 7), 9),
        TopicOperation(PARTLY, ranges=array("q", (2**47, 1)), places=((0, 0), (3, 7)), many=9),
    ),
    "changed": (changed([(1, 5), (9, 2**47)]), TopicOperation(CHANGED, copies=((1, 5), (9, 2**47)))),
}


@pytest.mark.parametrize("name", RECORDS)
def test_an_operation_comes_back_as_it_was_written(name: str) -> None:
    record, operation = RECORDS[name]
    assert decode_topic_operation(memoryview(record)) == operation


@pytest.mark.parametrize("name", ["removed", "copied", "changed", "partly"])
def test_no_part_of_a_record_is_taken_for_it(name: str) -> None:
    record, operation = RECORDS[name]
    for end in range(len(record)):
        try:
            found = decode_topic_operation(memoryview(record)[:end])
        except (CorruptStore, NewerFormat):
            continue
        assert found != operation, "less than the record says the same"
        assert name not in ("removed", "partly")


@pytest.mark.parametrize(
    "record",
    [
        removed(1) + b"x",
        added(1, "")[:-1] + b"\x01\xff",
        copied([1], array("q", [0, 1])),
        copied([1], array("q", [1, 0])),
        copied([1], array("q", [2**48, 1])),
        b"\x23\x00\x02\x00\x00\x00\x01",
    ],
)
def test_what_cannot_stand_in_a_record_is_refused(record: bytes) -> None:
    with pytest.raises(CorruptStore):
        decode_topic_operation(memoryview(record))


def test_an_operation_of_a_later_version_is_told_apart() -> None:
    with pytest.raises(NewerFormat):
        decode_topic_operation(memoryview(bytes((PARTLY + 1,))))
    with pytest.raises(NewerFormat):
        decode_topic_operation(memoryview(b""))


def test_the_longest_operations_fit_into_a_batch() -> None:
    ranges = array("q", [each for count in range(RANGES_LIMIT) for each in (2 * count + 1, 1)])
    assert len(copied(range(2_000), ranges)) < 64 * 1024 - 100
    assert len(changed([(1, count + 1) for count in range(RANGES_LIMIT)])) < 64 * 1024 - 100
