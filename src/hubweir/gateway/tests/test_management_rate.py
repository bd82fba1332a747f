"""Fifty a second and not one more, in virtual time."""

import pytest

from hubweir.errors import SERVER_BUSY, ServiceError
from hubweir.gateway.management_rate import ManagementRate


def taken(rate: ManagementRate, asked: int, now_ms: int) -> int:
    count = 0
    for _ in range(asked):
        try:
            rate.count_request(now_ms)
        except ServiceError as refused:
            assert refused.condition is SERVER_BUSY
        else:
            count += 1
    return count


def test_so_many_in_a_second_and_then_one_for_each_that_has_come_in() -> None:
    rate = ManagementRate(50, now_ms=0)
    assert taken(rate, 200, 0) == 50
    assert taken(rate, 200, 19) == 0
    assert taken(rate, 200, 20) == 1
    assert taken(rate, 200, 1_020) == 50


def test_who_always_asks_gets_all_of_the_rate_and_nothing_above_it() -> None:
    rate = ManagementRate(50, now_ms=0)
    assert sum(taken(rate, 3, now_ms) for now_ms in range(10_000)) == 50 + 499


def test_an_idle_namespace_saves_nothing_up() -> None:
    rate = ManagementRate(50, now_ms=0)
    assert taken(rate, 200, 3_600_000) == 50


def test_the_refusal_says_how_long_to_wait() -> None:
    rate = ManagementRate(50, now_ms=0)
    taken(rate, 50, 0)
    with pytest.raises(ServiceError, match=r"50 requests .* a second\. Wait 15 ms"):
        rate.count_request(5)


def test_without_a_limit_everything_passes() -> None:
    assert taken(ManagementRate(None, now_ms=0), 10_000, 0) == 10_000
