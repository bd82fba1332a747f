"""Bytes and events are taken together or not at all."""

from hubweir.throughput_unit.rate_limit import RateLimit
from hubweir.throughput_unit.throughput_unit import UNIT, Rate


def test_whichever_runs_out_first_counts_and_a_refusal_takes_from_neither() -> None:
    limit = RateLimit(Rate(10_000, 100), now_ms=0)
    assert limit.admit(1_000, 90, 0) == 0
    assert limit.admit(1, 11, 0) == 10
    assert limit.admit(9_500, 1, 0) == 50
    assert limit.admit(9_500, 20, 0) == 100
    assert limit.admit(9_000, 10, 0) == 0
    assert (limit.admit(1, 0, 0), limit.admit(0, 1, 0)) == (1, 10)


def test_a_reservation_waits_for_the_slower_of_the_two() -> None:
    limit = RateLimit(Rate(10_000, 100), now_ms=0)
    assert limit.reserve(10_000, 50, 0) == 0
    assert limit.reserve(1_000, 60, 0) == 100
    assert limit.reserve(0, 5, 0) == 150


def test_giving_back_and_changing_reach_both() -> None:
    limit = RateLimit(Rate(10_000, 100), now_ms=0)
    assert limit.reserve(10_000, 100, 0) == 0
    limit.give_back(4_000, 40, 0)
    assert limit.reserve(4_000, 40, 0) == 0
    limit.give_back(4_000, 40, 0)
    limit.change(Rate(20_000, 200), 0)
    assert limit.rate == Rate(20_000, 200)
    assert limit.admit(14_000, 140, 0) == 0
    assert limit.admit(1, 0, 0) == 1 and limit.admit(0, 1, 0) == 5


def test_what_if_answers_as_a_raise_would_for_each_of_the_two() -> None:
    limit = RateLimit(UNIT.ingress, now_ms=0)
    assert limit.admit(1_048_576, 1_000, 0) == 0
    two = UNIT.ingress.times(2)
    assert limit.would_admit(two, 1_048_576, 1_000, 0)
    assert not limit.would_admit(two, 1_048_577, 1_000, 0)
    assert not limit.would_admit(two, 1_048_576, 1_001, 0)
    assert limit.would_flow(two, 1_048_576, 1_000, 0)
    assert not limit.would_flow(two, 1_048_577, 1, 0)
    assert not limit.would_flow(two, 1, 1_001, 0)
    assert limit.admit(1, 0, 0) and limit.admit(0, 1, 0), "asking took nothing and gave nothing"
