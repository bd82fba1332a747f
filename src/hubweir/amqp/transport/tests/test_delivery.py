from __future__ import annotations

import random
import sys
from collections.abc import Iterable

import pytest

from hubweir.amqp.transport.delivery import IdRange, PartialDelivery, SentRanges, SentTogether, UnsettledRanges
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


def sent_together(first: int, links: str) -> SentTogether[str]:
    """The tag of a delivery is its id, in one byte."""
    return SentTogether(
        first,
        [sys.intern(link) for link in links],
        bytes((first + place) % 256 for place in range(len(links))),
        "context",
    )


def parts(ranges: SentRanges[str]) -> list[tuple[int, int, str, bytes]]:
    """First and last id, links and tags, of each range; of one link alone without tags."""
    return [told(each) for each in ranges]


def told(each: IdRange[str | SentTogether[str]]) -> tuple[int, int, str, bytes]:
    owner = each.owner
    if isinstance(owner, str):
        return each.first, each.last, owner, b""
    assert (owner.first_id, owner.last_id, owner.context) == (each.first, each.last, "context")
    return each.first, each.last, "".join(owner.links), owner.tags


def test_what_was_sent_together_is_cut_where_a_part_of_it_is_settled() -> None:
    """What is left and what is taken keep nothing of each other."""
    ranges: SentRanges[str] = SentRanges()
    ranges.add(8, 2, "z")
    ranges.add(10, 6, sent_together(10, "abcdef"))
    assert [told(each) for each in ranges.take_ranges(10, 11)] == [(10, 11, "ab", b"\x0a\x0b")]
    assert [told(each) for each in ranges.take_ranges(13, 13)] == [(13, 13, "d", b"\x0d")]
    assert parts(ranges) == [(8, 9, "z", b""), (12, 12, "c", b"\x0c"), (14, 15, "ef", b"\x0e\x0f")]
    assert [told(each) for each in ranges.take_ranges(9, 14)] == [
        (9, 9, "z", b""), (12, 12, "c", b"\x0c"), (14, 14, "e", b"\x0e")
    ]  # fmt: skip
    assert parts(ranges) == [(8, 8, "z", b""), (15, 15, "f", b"\x0f")]
    ranges.clear()
    assert parts(ranges) == [] and ranges.take_ranges(0, 100) == []


@pytest.mark.parametrize("base", [0, MODULUS - 5])
def test_a_link_that_is_over_leaves_what_others_sent_together_with_it(base: int) -> None:
    ranges: SentRanges[str] = SentRanges()
    first, then = add_serial(base, 0), add_serial(base, 2)
    ranges.add(first, 2, "b")
    ranges.add(then, 6, sent_together(then, "abbcab"))
    ranges.add(add_serial(base, 8), 2, sent_together(add_serial(base, 8), "aa"))
    ranges.forget("b")
    ids = [add_serial(base, step) for step in range(10)]
    tags = bytes(number % 256 for number in ids)
    assert parts(ranges) == [
        (ids[2], ids[2], "a", tags[2:3]), (ids[5], ids[6], "ca", tags[5:7]), (ids[8], ids[9], "aa", tags[8:10])
    ]  # fmt: skip
    ranges.forget("a")
    assert parts(ranges) == [(ids[5], ids[5], "c", tags[5:6])]
    ranges.forget("c")
    assert parts(ranges) == []


@pytest.mark.parametrize("seed", range(30))
def test_ranges_of_what_was_sent_agree_with_a_dictionary_of_ids(seed: int) -> None:
    choice, ranges, model = random.Random(seed), SentRanges[str](), dict[int, tuple[str, int]]()
    next_id = MODULUS - 60
    for _ in range(120):
        step = choice.random()
        if step < 0.5:
            links = "".join(choice.choices("abcd", k=choice.randrange(1, 9)))
            ids = [add_serial(next_id, place) for place in range(len(links))]
            owner = sent_together(next_id, links) if choice.random() < 0.7 else sys.intern(links[0])
            ranges.add(next_id, len(links), owner)
            for number, link in zip(ids, links, strict=True):
                model[number] = (link, number % 256) if isinstance(owner, SentTogether) else (links[0], -1)
            next_id = add_serial(next_id, len(links))
        elif step < 0.95:
            first = add_serial(next_id, -choice.randrange(1, 60))
            last = add_serial(first, choice.randrange(12))
            ids = [add_serial(first, place) for place in range((last - first) % MODULUS + 1)]
            taken = {number: model.pop(number) for number in ids if number in model}
            assert by_id(ranges.take_ranges(first, last)) == taken
        else:
            over = sys.intern(choice.choice("abcd"))
            ranges.forget(over)
            model = {number: each for number, each in model.items() if each[0] != over}
        assert by_id(ranges) == model


def by_id(ranges: Iterable[IdRange[str | SentTogether[str]]]) -> dict[int, tuple[str, int]]:
    """The link and the tag of each id; -1 for no tag."""
    found = {}
    for each in ranges:
        first, last, links, tags = told(each)
        count = (last - first) % MODULUS + 1
        for place in range(count):
            link, tag = (links[place], tags[place]) if tags else (links, -1)
            found[add_serial(first, place)] = (link, tag)
    return found
