"""A reader that catches up gets more at once; together readers never hold more than the least each and the pool."""

from __future__ import annotations

import random

import pytest

from hubweir.gateway.held_runs import HeldRuns, ReadSize

LEAST, MOST, POOL, READERS = 100, 1_600, 5_000, 300


@pytest.fixture
def pool() -> HeldRuns:
    return HeldRuns(POOL)


def reader(pool: HeldRuns) -> ReadSize:
    return ReadSize(pool, least_bytes=LEAST, limit_bytes=MOST)


def read_whole(size: ReadSize) -> int:
    """Ask, get everything that was asked for, send it; how much that was."""
    asked = size.next_bytes()
    size.came(asked)
    size.sent()
    return asked


def test_a_reader_that_sends_whole_runs_asks_for_twice_as_much_up_to_the_most(pool: HeldRuns) -> None:
    size = reader(pool)
    assert [read_whole(size) for _ in range(7)] == [100, 200, 400, 800, 1_600, 1_600, 1_600]
    assert pool.used_bytes == 0


def test_a_run_that_was_let_go_unsent_brings_the_reader_back_to_the_least(pool: HeldRuns) -> None:
    size = reader(pool)
    for _ in range(4):
        read_whole(size)
    size.came(size.next_bytes())
    size.dropped()
    assert size.next_bytes() == LEAST


@pytest.mark.parametrize("came", [0, 1, 799])
def test_a_reader_that_came_to_the_end_waits_there_for_the_least(pool: HeldRuns, came: int) -> None:
    size = reader(pool)
    for _ in range(4):
        read_whole(size)
    assert size.next_bytes() == 1_600
    size.came(came)
    size.sent()
    assert size.next_bytes() == LEAST and pool.used_bytes == 0


def test_half_of_what_was_asked_for_is_a_whole_run(pool: HeldRuns) -> None:
    size = reader(pool)
    size.next_bytes()
    size.came(50)
    size.sent()
    assert size.next_bytes() == 200


def test_a_batch_that_is_larger_than_the_read_is_counted_as_it_is(pool: HeldRuns) -> None:
    size = reader(pool)
    size.next_bytes()
    size.came(POOL + 1)
    assert pool.is_used_up and pool.left_bytes == 0
    size.sent()
    assert not pool.is_used_up and pool.left_bytes == POOL


def test_while_the_pool_is_used_up_every_reader_still_gets_the_least(pool: HeldRuns) -> None:
    fast, holder = reader(pool), reader(pool)
    for _ in range(5):
        read_whole(fast)
    holder.next_bytes()
    holder.came(POOL)
    assert [read_whole(fast) for _ in range(3)] == [LEAST] * 3
    holder.sent()
    assert [read_whole(fast) for _ in range(3)] == [200, 400, 800]


def test_a_large_read_that_is_under_way_is_counted(pool: HeldRuns) -> None:
    first, second = reader(pool), reader(pool)
    for size in (first, second):
        for _ in range(5):
            read_whole(size)
    pool.limit_bytes = 2_000
    assert first.next_bytes() == 1_600 and pool.used_bytes == 1_500
    assert second.next_bytes() == 600 and pool.left_bytes == 0


def test_a_reader_that_ends_with_a_read_under_way_gives_everything_back(pool: HeldRuns) -> None:
    size = reader(pool)
    for _ in range(3):
        read_whole(size)
    size.next_bytes()
    size.dropped()
    assert pool.used_bytes == 0


# All of them were fast, then none takes anything: the checker, and the rule that it has to catch.


def most_held(kind: type[ReadSize]) -> int:
    """The most bytes that many readers hold at any moment, whatever they do, when every read brings what it asked."""
    pool, dice = HeldRuns(POOL), random.Random(8)
    sizes = [kind(pool, least_bytes=LEAST, limit_bytes=MOST) for _ in range(READERS)]
    held, most = dict.fromkeys(range(READERS), 0), 0
    for step in range(20_000):
        number = dice.randrange(READERS)
        size = sizes[number]
        if not held[number]:
            held[number] = size.next_bytes()
            size.came(held[number])
        elif step < 15_000:
            held[number] = 0
            size.sent() if dice.random() < 0.9 else size.dropped()
        most = max(most, sum(held.values()))
    return most


class WithoutPool(ReadSize):
    """The planted defect: it asks for what it wants and counts nothing."""

    def _count(self, size_bytes: int) -> None:
        """Nothing."""


def test_readers_together_hold_the_least_each_and_the_pool_at_most() -> None:
    assert POOL <= most_held(ReadSize) <= POOL + READERS * LEAST


def test_the_checker_catches_readers_that_count_nothing() -> None:
    assert most_held(WithoutPool) > 2 * (POOL + READERS * LEAST)
