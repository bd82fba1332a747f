"""What a capture tells of its failures, and how long it waits between two attempts."""

from __future__ import annotations

import logging

import pytest

from hubweir.alarms import CAPTURE_FAILING, CAPTURE_OVER_QUOTA, Alarms
from hubweir.broker.capture import failure
from hubweir.broker.capture.failure import RETRY_LIMIT_MS, CaptureFailure
from hubweir.counters import Counters
from hubweir.testing.simulated_env import SimulatedEnv

NAME = "capture of partition 0 of orders"


class World:
    def __init__(self) -> None:
        self.counters = Counters()
        self.alarms = Alarms(SimulatedEnv(), self.counters)
        self.failure = CaptureFailure(NAME, 1_000, self.counters, self.alarms)


@pytest.fixture
def world() -> World:
    return World()


def test_each_attempt_waits_longer_up_to_a_minute_and_all_of_them_are_one_alarm(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    waits = [world.failure.failed(OSError(f"it is away, request {number}")) for number in range(9)]
    assert waits[:3] == [1_000, 2_000, 4_000] and waits[-1] == RETRY_LIMIT_MS
    [alarm] = world.alarms.current()
    assert (alarm.kind, alarm.about) == (CAPTURE_FAILING, NAME) and "it is away" in alarm.text
    assert world.failure.text == "it is away, request 8" and world.counters["capture.failures"] == 9
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_a_capture_that_goes_on_says_so_when_it_had_failed_and_only_then(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger=failure.__name__)
    world.failure.ended(7)
    assert caplog.messages == []
    world.failure.failed(OSError("it is away"))
    caplog.clear()
    world.failure.ended(7)
    world.failure.ended(7)
    assert caplog.messages.count(f"{NAME} goes on, 7 events behind") == 1


def test_a_failure_that_ended_is_told_no_more_and_the_next_one_is_tried_again_soon(world: World) -> None:
    for _ in range(4):
        world.failure.failed(OSError("it is away"))
    world.failure.ended(7)
    assert (world.failure.text, world.alarms.current()) == (None, ())
    assert world.failure.failed(OSError("again")) == 1_000


def test_who_is_over_the_quota_says_so_once_until_it_is_not(world: World, caplog: pytest.LogCaptureFixture) -> None:
    assert [world.failure.is_over_quota(size) for size in (1_000, 1_001, 2_000)] == [False, True, True]
    [alarm] = world.alarms.current()
    assert alarm.kind is CAPTURE_OVER_QUOTA and "quota of 1000 bytes" in alarm.text and "too slow" in alarm.text
    assert len(caplog.records) == 1
    assert not world.failure.is_over_quota(10) and world.alarms.current() == ()


def test_what_was_lost_is_counted_and_named_by_its_range(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.failure.lost([(3, 5), (7, 8)])
    assert world.counters["capture.uncaptured_events"] == 3
    assert [record.message for record in caplog.records] == [
        f"{NAME}: events 3 to 4 were not captured",
        f"{NAME}: events 7 to 7 were not captured",
    ]
