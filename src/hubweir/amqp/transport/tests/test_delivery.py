from __future__ import annotations

import random

import pytest

from hubweir.amqp.transport.delivery import IdRange, PartialDelivery, UnsettledRanges
from hubweir.amqp.transport.serial_number import MODULUS, add_serial


def test_parts_are_joined_up_to_the_limit_and_counted_beyond() -> None:
    partial = PartialDelivery(4, 0)
    assert partial.append(memoryview(b"abc"), 5) == 3
    assert partial.append(memoryview(b"de"), 5) == 2
    assert partial.payload == b"abcde"
    assert partial.append(memoryview(b"f"), 5) == -5, "the bytes are let go at the first one too many"
    assert partial.payload is None
    assert partial.append(memoryview(b"ghi"), 5) == 0
    assert partial.size == 9


def test_runs_of_one_link_become_one_range_and_a_range_can_be_settled_from_its_middle() -> None:
    ranges: UnsettledRanges[str] = UnsettledRanges()
    ranges.add(10, 5, "a")
    ranges.add(15, 5, "a")
    assert list(ranges) == [IdRange(10, 19, "a")]
    assert ranges.take_ranges(12, 14) == [IdRange(12, 14, "a")]
    assert list(ranges) == [IdRange(10, 11, "a"), IdRange(15, 19, "a")]
    assert ranges.take_ranges(0, 100) == [IdRange(10, 11, "a"), IdRange(15, 19, "a")]
    assert ranges.take_ranges(0, 100) == []


def test_settling_for_one_link_leaves_the_ids_of_others_in_between() -> None:
    ranges: UnsettledRanges[str] = UnsettledRanges()
    for first, owner in ((0, "a"), (2, "b"), (4, "a")):
        ranges.add(first, 2, owner)
    assert ranges.take_ranges(0, 5, owner="a") == [IdRange(0, 1, "a"), IdRange(4, 5, "a")]
    assert list(ranges) == [IdRange(2, 3, "b")]


def test_ids_wrap_inside_a_range() -> None:
    ranges: UnsettledRanges[str] = UnsettledRanges()
    ranges.add(MODULUS - 3, 6, "a")
    assert ranges.take_ranges(MODULUS - 1, 0) == [IdRange(MODULUS - 1, 0, "a")]
    assert [entry.count for entry in ranges] == [2, 2]


def test_a_link_that_is_over_leaves_nothing() -> None:
    ranges: UnsettledRanges[str] = UnsettledRanges()
    ranges.add(0, 2, "a")
    ranges.add(2, 2, "b")
    ranges.forget("a")
    assert list(ranges) == [IdRange(2, 3, "b")]


@pytest.mark.parametrize("seed", range(30))
def test_ranges_agree_with_a_dictionary_of_ids(seed: int) -> None:
    """A dictionary id → owner is the model; the numbers start close to the wrap."""
    choice = random.Random(seed)
    ranges: UnsettledRanges[str] = UnsettledRanges()
    model: dict[int, str] = {}
    base = MODULUS - 60
    for _ in range(120):
        first, count = add_serial(base, choice.randrange(120)), choice.randrange(1, 12)
        owner = choice.choice("abc")
        ids = [add_serial(first, step) for step in range(count)]
        if choice.random() < 0.5:
            ranges.add(first, count, owner)
            for number in ids:
                model.setdefault(number, owner)
        else:
            only = choice.choice([None, owner])
            taken = ranges.take_ranges(first, ids[-1], owner=only)
            found = {add_serial(entry.first, step): entry.owner for entry in taken for step in range(entry.count)}
            expected = {number: model[number] for number in ids if number in model and only in (None, model[number])}
            assert found == expected
            for number in expected:
                del model[number]
        held = {add_serial(entry.first, step): entry.owner for entry in ranges for step in range(entry.count)}
        assert held == model
