"""Delivery ids in as few ranges as possible, and never an id of another link."""

from __future__ import annotations

import random
from array import array

import pytest

from hubweir.gateway.amqp.delivery_ranges import merge_ranges, ranges_of, submissions_of
from hubweir.gateway.append_queue import DeliveryRange, Submission

TOP = 0xFFFF_FFFF


def rows_of(*deliveries: tuple[int, int]) -> array[int]:
    """Delivery rows of (id, settled), each of 10 bytes."""
    rows = array("q")
    for delivery_id, settled in deliveries:
        rows.extend((delivery_id, 0, 10, settled, 0))
    return rows


class Link:
    def answered(self, submission: Submission, answer: object) -> None:
        """Nobody answers here."""


def cut(rows: array[int], first: int, last: int) -> list[Submission]:
    link = Link()
    found = submissions_of(link, rows, first, last)
    assert all(each.submitter is link for each in found)
    return found


def test_consecutive_ids_are_one_submission() -> None:
    (only,) = cut(rows_of((7, 0), (8, 0), (9, 0)), 0, 3)
    assert (only.ids, only.deliveries, only.size_bytes, only.settled) == (DeliveryRange(7, 9), 3, 30, False)


def test_ids_may_wrap_inside_a_submission() -> None:
    (only,) = cut(rows_of((TOP, 0), (0, 0)), 0, 2)
    assert only.ids == DeliveryRange(TOP, 0)


def test_a_gap_and_a_change_of_settlement_end_a_submission() -> None:
    found = cut(rows_of((1, 0), (2, 0), (4, 0), (5, 1), (6, 1)), 0, 5)
    assert [(part.ids, part.settled) for part in found] == [
        (DeliveryRange(1, 2), False),
        (DeliveryRange(4, 4), False),
        (DeliveryRange(5, 6), True),
    ]


def test_only_the_rows_asked_for_are_looked_at() -> None:
    (only,) = cut(rows_of((1, 0), (2, 0), (3, 0), (9, 1)), 1, 3)
    assert only.ids == DeliveryRange(2, 3)


def test_merging_gives_ranges_in_serial_order_across_the_wrap() -> None:
    shuffled = [DeliveryRange(1, 2), DeliveryRange(TOP, 0), DeliveryRange(5, 5), DeliveryRange(TOP - 1, TOP - 1)]
    assert merge_ranges(shuffled) == [DeliveryRange(TOP - 1, 2), DeliveryRange(5, 5)]


@pytest.mark.parametrize("seed", range(20))
def test_merging_keeps_exactly_the_ids_it_was_given(seed: int) -> None:
    chance = random.Random(seed)
    start = chance.randrange(TOP)
    ids = sorted(chance.sample(range(400), 120))
    ranges = [DeliveryRange((start + number) & TOP, (start + number) & TOP) for number in ids]
    chance.shuffle(ranges)
    merged = merge_ranges(ranges)
    spread = [
        (span.first_id + step - start) & TOP
        for span in merged
        for step in range(((span.last_id - span.first_id) & TOP) + 1)
    ]
    assert spread == ids
    assert len(merged) == sum(1 for number in ids if number - 1 not in ids)


def test_rows_with_gaps_that_settle_alike_are_one_submission_with_its_ids() -> None:
    (only,) = cut(rows_of((1, 0), (4, 0), (5, 0), (9, 0)), 0, 4)
    assert (only.deliveries, only.size_bytes, only.settled) == (4, 40, False)
    assert only.ids == array("q", [1, 4, 5, 9])


@pytest.mark.parametrize("start", [0, 12, TOP - 40, TOP // 2 - 50])
def test_scattered_ids_come_back_as_ranges_however_they_were_divided(start: int) -> None:
    dice = random.Random(start)
    ids = [(start + number) & TOP for number in range(120) if number % 40 not in (7, 8)]
    parts = [array("q") for _ in range(5)]
    for one in ids:
        dice.choice(parts).append(one)
    dice.shuffle(parts)
    found = merge_ranges(ranges_of(parts))
    assert [one for span in found for one in members(span)] == ids
    assert len(found) == 4


def distance(span: DeliveryRange) -> int:
    return (span.last_id - span.first_id) & TOP


def members(span: DeliveryRange) -> list[int]:
    return [(span.first_id + step) & TOP for step in range(distance(span) + 1)]


def test_no_ids_are_no_ranges() -> None:
    assert ranges_of([]) == [] and ranges_of([array("q")]) == []
