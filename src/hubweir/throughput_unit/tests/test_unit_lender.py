"""What is lent to several processes is never more than one alone would have, and each gets its part."""

from __future__ import annotations

from random import Random

import pytest

from hubweir.throughput_unit.rate_limit import Amount, RateLimit
from hubweir.throughput_unit.throughput_unit import Rate
from hubweir.throughput_unit.unit_lender import FORGET_MS, LEASE_MS, LeaseAsked, UnitLender

RATE = Rate(1_000_000, 1_000)
ONE, TWO = 1, 2


@pytest.fixture
def limit() -> RateLimit:
    return RateLimit(RATE, now_ms=0)


@pytest.fixture
def lender() -> UnitLender:
    return UnitLender()


def events(count: int) -> LeaseAsked:
    return LeaseAsked(wanted=Amount(100 * count, count))


def test_what_is_there_is_lent_and_a_part_of_the_rest(lender: UnitLender, limit: RateLimit) -> None:
    lent = lender.lend(limit, ONE, events(100), 0)
    assert lent == Amount(10_000 + 990_000 // 2, 100 + 900 // 2)
    assert limit.room(0) == Amount(1_000_000 - lent.size_bytes, 1_000 - lent.events)


def test_who_asks_for_nothing_gets_a_part_to_begin_with(lender: UnitLender, limit: RateLimit) -> None:
    assert lender.lend(limit, ONE, LeaseAsked(), 0).events == 500
    assert lender.lend(limit, TWO, LeaseAsked(), 0).events == 500 // 3


def test_where_there_is_not_enough_each_gets_its_part_by_what_it_asked_for(
    lender: UnitLender, limit: RateLimit
) -> None:
    lender.lend(limit, ONE, events(3_000), 0)
    limit.give_back(1_000_000, 1_000, 0)
    assert lender.lend(limit, TWO, events(1_000), 0).events == 250
    assert lender.lend(limit, ONE, events(3_000), 0).events == 750 * 3 // 4


def test_bytes_and_events_are_lent_each_by_its_own(lender: UnitLender, limit: RateLimit) -> None:
    lent = lender.lend(limit, ONE, LeaseAsked(wanted=Amount(2_000_000, 10)), 0)
    assert lent.size_bytes == 1_000_000 and lent.events == 10 + 990 // 2


@pytest.mark.parametrize("asked_ms", [FORGET_MS - 1, FORGET_MS])
def test_what_a_process_asked_for_counts_for_a_while(lender: UnitLender, limit: RateLimit, asked_ms: int) -> None:
    lender.lend(limit, TWO, events(1_000), 0)
    limit.give_back(1_000_000, 1_000, 0)
    assert lender.lend(limit, ONE, events(1_000), asked_ms).events == (500 if asked_ms < FORGET_MS else 1_000)


def test_a_process_that_is_gone_counts_no_more(lender: UnitLender, limit: RateLimit) -> None:
    lender.lend(limit, TWO, events(1_000), 0)
    limit.give_back(1_000_000, 1_000, 0)
    lender.forget(TWO)
    lender.forget(TWO)
    assert lender.lend(limit, ONE, events(1_000), 0).events == 1_000


def test_more_than_a_whole_burst_passes_a_full_bucket_and_leaves_a_debt(lender: UnitLender, limit: RateLimit) -> None:
    big = LeaseAsked(wanted=Amount(3_000_000, 1), first=Amount(3_000_000, 1))
    assert lender.lend(limit, ONE, big, 0).size_bytes == 3_000_000
    assert limit.room(1_999).size_bytes == 0 and limit.room(2_500).size_bytes == 500_000
    assert lender.lend(limit, ONE, big, 2_500).size_bytes == 500_000  # it is not full


def test_many_that_are_more_than_a_burst_together_get_no_more_than_that(lender: UnitLender, limit: RateLimit) -> None:
    asked = LeaseAsked(wanted=Amount(300_000, 3_000), short=Amount(300_000, 3_000), first=Amount(100, 1))
    assert lender.lend(limit, ONE, asked, 0).events == 1_000


def test_the_run_at_the_front_is_lent_whole_where_a_part_would_help_nobody(
    lender: UnitLender, limit: RateLimit
) -> None:
    whole = LeaseAsked(wanted=Amount(900_000, 1), first=Amount(900_000, 1))
    for process in (TWO, 3, 4):
        lender.lend(limit, process, LeaseAsked(wanted=Amount(900_000, 1)), 0)
    limit.give_back(1_000_000, 1_000, 0)
    assert lender.lend(limit, ONE, whole, 0).size_bytes == 900_000
    assert lender.lend(limit, TWO, whole, 0).size_bytes < 100_000


def test_what_was_not_used_is_lent_again(lender: UnitLender, limit: RateLimit) -> None:
    lent = lender.lend(limit, ONE, events(1_000), 0)
    assert lent.events == 1_000
    assert lender.lend(limit, ONE, LeaseAsked(lent, Amount(0, 700)), 0).events == 700 + 300 // 2


@pytest.mark.parametrize("seed", range(20))
def test_all_together_never_get_more_than_the_bucket_gives(seed: int) -> None:
    """Processes ask at any time, use what they like, and give back the rest."""
    random, limit, lender = Random(seed), RateLimit(RATE, now_ms=0), UnitLender()
    held: dict[int, int] = {}
    used, now_ms = 0, 0
    while now_ms < 5_000:
        now_ms += random.randrange(LEASE_MS // 2)
        process = random.randrange(4)
        left = held.pop(process, 0)
        spent = random.randint(0, left)
        used += spent
        asked = LeaseAsked(Amount(0, left - spent), Amount(0, random.randrange(400)))
        held[process] = lender.lend(limit, process, asked, now_ms).events
        assert used + sum(held.values()) <= 1_000 + now_ms
    assert used > 2_500  # what was asked for and not used was lent again
