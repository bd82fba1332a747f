"""line_limit.py: so many lines of a kind in a minute, then a number."""

from __future__ import annotations

from hubweir.service.line_limit import WINDOW_S, LineLimit


def takes(limit: LineLimit[str], count: int, key: str = "a", *, most: int = 10, now_s: float = 0.0) -> int:
    return sum(limit.takes(key, most, now_s) for _ in range(count))


def test_a_flood_of_one_kind_is_counted_and_hides_no_other() -> None:
    limit = LineLimit[str]()
    assert takes(limit, 1_000) == 10 and takes(limit, 3, "b") == 3
    assert limit.ended(WINDOW_S - 0.1) == []
    assert limit.ended(WINDOW_S) == [("a", 990)]


def test_a_new_minute_begins_with_the_next_line_and_nothing_is_left_of_the_last() -> None:
    limit = LineLimit[str]()
    takes(limit, 11, now_s=5.0)
    assert limit.ended(5.0 + WINDOW_S) == [("a", 1)] and limit.ended(1e9) == []
    assert takes(limit, 11, now_s=100.0) == 10
    assert limit.ended(99.9 + WINDOW_S) == [] and limit.ended(100.0 + WINDOW_S) == [("a", 1)]


def test_kinds_end_in_the_order_in_which_they_began() -> None:
    limit = LineLimit[str]()
    takes(limit, 12, "a", now_s=0.0)
    takes(limit, 13, "b", now_s=1.0)
    assert limit.ended(WINDOW_S) == [("a", 2)]
    assert limit.ended(WINDOW_S, is_all=True) == [("b", 3)]


def test_each_kind_has_its_own_limit() -> None:
    limit = LineLimit[str]()
    assert takes(limit, 100, "a", most=60) == 60 and takes(limit, 100, "b", most=1) == 1
