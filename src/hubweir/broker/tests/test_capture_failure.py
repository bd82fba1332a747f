"""What a capture tells of its failures, and how long it waits between two attempts."""

from __future__ import annotations

import pytest

from hubweir.broker.capture_failure import LONGEST_RETRY_MS, CaptureFailure
from hubweir.counters import Counters


def test_each_attempt_waits_longer_up_to_a_minute_and_the_first_one_alone_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    counters = Counters()
    failure = CaptureFailure("orders/0", 1_000, counters)
    waits = [failure.failed(OSError("it is away")) for _ in range(9)]
    assert waits[:3] == [1_000, 2_000, 4_000] and waits[-1] == LONGEST_RETRY_MS
    assert (failure.text, failure.alarm) == ("it is away", "capture of orders/0 fails: it is away")
    assert counters.get("capture.failures") == 9
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_a_failure_that_ended_is_told_no_more_and_the_next_one_is_tried_again_soon() -> None:
    failure = CaptureFailure("orders/0", 1_000, Counters())
    for _ in range(4):
        failure.failed(OSError("it is away"))
    failure.ended(7)
    assert (failure.text, failure.alarm) == (None, None)
    assert failure.failed(OSError("again")) == 1_000


def test_who_is_over_the_quota_says_so_once_until_it_is_not(caplog: pytest.LogCaptureFixture) -> None:
    failure = CaptureFailure("orders/0", 1_000, Counters())
    assert [failure.is_over_quota(size) for size in (1_000, 1_001, 2_000)] == [False, True, True]
    assert failure.alarm == "capture of orders/0 is over its quota: events are lost to it (too slow)"
    assert len(caplog.records) == 1
    assert not failure.is_over_quota(10) and failure.alarm is None


def test_what_was_lost_is_counted_and_named_by_its_range(caplog: pytest.LogCaptureFixture) -> None:
    counters = Counters()
    CaptureFailure("orders/0", 1_000, counters).lost([(3, 5), (7, 8)])
    assert counters.get("capture.uncaptured_events") == 3
    assert [record.message for record in caplog.records] == [
        "capture of orders/0: events 3 to 4 were not captured",
        "capture of orders/0: events 7 to 7 were not captured",
    ]
