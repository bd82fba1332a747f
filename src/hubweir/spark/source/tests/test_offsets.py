import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubweir.spark.errors import IllegalOffset
from hubweir.spark.source.offsets import (
    EventRange,
    batch_range,
    end_offset,
    initial_offset,
    plain,
    ranges,
    split_by_lag,
)

LAGS = st.dictionaries(st.integers(0, 40).map(str), st.integers(0, 10**6), min_size=1)


def logged(offset: dict[str, Any]) -> dict[str, Any]:
    """The offset as it comes back from a checkpoint."""
    again: dict[str, Any] = json.loads(json.dumps(offset))
    return again


@given(LAGS, st.integers(1, 10**7), st.integers(0, 1000))
def test_limit_is_shared_out_exactly_and_nobody_that_waits_is_left_out(
    lags: dict[str, int], limit: int, begin_at: int
) -> None:
    begin = {key: begin_at for key in lags}
    end = split_by_lag(begin, {key: begin_at + lag for key, lag in lags.items()}, limit)
    given_out = {key: end[key] - begin[key] for key in lags}
    assert sum(given_out.values()) == min(limit, sum(lags.values()))
    assert all(0 <= given_out[key] <= lags[key] for key in lags)
    waiting = [key for key in lags if lags[key]]
    if limit >= len(waiting):
        assert all(given_out[key] for key in waiting)


def test_share_follows_what_each_partition_has() -> None:
    assert split_by_lag({"0": 0, "1": 0, "2": 5}, {"0": 900, "1": 100, "2": 5}, 100) == {"0": 89, "1": 11, "2": 5}
    assert split_by_lag({"0": 0, "1": 0}, {"0": 5, "1": 9}, 1) == {"0": 0, "1": 1}
    assert split_by_lag({"0": 0}, {"0": 5}, None) == {"0": 5}


def test_partition_ahead_of_its_end_stays() -> None:
    assert split_by_lag({"0": 10}, {"0": 5}, None) == {"0": 10}


def test_first_batch_is_the_same_whatever_the_later_answers_are() -> None:
    """Spark asks for the initial offset before the first batch, when it plans it, and after a crash in it."""
    first = initial_offset({"0": 100, "1": 5})
    end = logged(end_offset(first, {"0": 180, "1": 5}))
    for later in (first, initial_offset({"0": 150, "1": 9}), initial_offset({"0": 999, "1": 999})):
        assert batch_range(logged(later), end) == ({"0": 100, "1": 5}, {"0": 180, "1": 5})


def test_mark_is_gone_from_the_second_batch_on() -> None:
    end = logged(end_offset(initial_offset({"0": 1}), {"0": 4}))
    following = end_offset(end, {"0": 9})
    assert following == {"0": 9}
    assert batch_range(end, logged(following)) == ({"0": 4}, {"0": 9})
    assert end_offset(end, {"0": 4}) is end


def test_empty_first_batch_has_no_range_and_hands_its_start_on() -> None:
    first = initial_offset({"0": 100})
    assert end_offset(first, {"0": 100}) is first
    begin, end = batch_range(initial_offset({"0": 130}), logged(first))
    assert begin == end
    following = end_offset(logged(first), {"0": 140})
    assert batch_range(logged(first), logged(following)) == ({"0": 100}, {"0": 140})


def test_partition_that_is_new_is_read_from_its_first_event() -> None:
    assert ranges({"0": 3}, {"10": 2, "0": 3, "1": 7}) == [EventRange("1", 0, 7), EventRange("10", 0, 2)]


@pytest.mark.parametrize(
    ("begin", "end", "why"),
    [({"0": 5}, {"0": 4}, "backwards, from 5 to 4"), ({"0": 1, "1": 1}, {"0": 1}, "partition 1 was read before")],
)
def test_batch_that_runs_backwards_or_loses_a_partition_is_refused(
    begin: dict[str, int], end: dict[str, int], why: str
) -> None:
    with pytest.raises(IllegalOffset, match=why):
        ranges(begin, end)


@pytest.mark.parametrize("offset", [{"0": "1"}, {"0": -1}, {"0": True}, {"logOffset": 3}, {"0": None}])
def test_offset_of_another_source_is_refused(offset: dict[str, Any]) -> None:
    with pytest.raises(IllegalOffset, match="another checkpoint folder"):
        plain(offset)
