"""What a store believes of the clocks: no jump removes events or stamps them for years, and none stops retention."""

from __future__ import annotations

import pytest

from hubweir.messaging_store.trusted_clock import (
    ALARM_MS,
    HOUR_MS,
    JUMP_MS,
    STAMP_STAND_MS,
    STAND_LIMIT_MS,
    YEAR_MS,
    TrustedClock,
)
from hubweir.testing.simulated_env import SimulatedEnv

DAY_MS = 24 * HOUR_MS
MINUTE_MS = 60_000


class Clocks:
    """A trusted clock that is asked once a minute, as the sweep does."""

    def __init__(self) -> None:
        self.env = SimulatedEnv()
        self.clock = TrustedClock(self.env)
        self.start_ms = self.env.now_ms()

    def run(self, for_ms: int) -> None:
        for _ in range(for_ms // MINUTE_MS):
            self.env.run_for(MINUTE_MS)
            self.clock.now_ms()

    def restart(self, off_ms: int = 0) -> None:
        """The next process, off_ms later by the wall clock."""
        state = self.clock.state
        self.env.crash()
        self.env.jump(off_ms - 1000)
        self.env = self.env.restart()
        self.clock = TrustedClock(self.env, state)

    @property
    def passed_ms(self) -> int:
        return self.clock.now_ms() - self.start_ms


def test_without_jumps_all_three_times_are_the_wall_clocks() -> None:
    clocks = Clocks()
    for _ in range(100):
        clocks.env.run_for(777)
        clock, now_ms = clocks.clock, clocks.env.now_ms()
        assert (clock.now_ms(), clock.created_ms(), clock.stamp_ms()) == (now_ms, now_ms, now_ms)
    assert clocks.clock.trouble is None


@pytest.mark.parametrize("step_ms", [JUMP_MS, 1000])
def test_small_steps_ahead_are_followed_at_once(step_ms: int) -> None:
    clocks = Clocks()
    clocks.env.jump(step_ms)
    assert clocks.passed_ms == step_ms
    assert clocks.clock.stamp_ms() == clocks.env.now_ms()


def test_what_is_more_than_a_small_step_is_not() -> None:
    clocks = Clocks()
    clocks.env.jump(JUMP_MS + 1)
    assert clocks.passed_ms == 0
    assert clocks.clock.stamp_ms() == clocks.start_ms


def test_a_small_step_back_moves_stamps_and_never_the_time_of_retention() -> None:
    clocks = Clocks()
    clocks.run(HOUR_MS)
    clocks.env.jump(-JUMP_MS)
    assert clocks.passed_ms == HOUR_MS
    assert clocks.clock.stamp_ms() == clocks.env.now_ms()


@pytest.mark.parametrize("jump_ms", [2 * MINUTE_MS, DAY_MS, 3650 * DAY_MS, -DAY_MS, -3650 * DAY_MS])
def test_a_jump_that_goes_away_was_never_there(jump_ms: int) -> None:
    clocks = Clocks()
    clocks.clock.stamp_ms()
    clocks.env.jump(jump_ms)
    clocks.env.run_for(1000)
    assert clocks.passed_ms == 1000
    assert clocks.clock.stamp_ms() == clocks.start_ms + 1000
    assert clocks.clock.trouble is not None and "jumped" in clocks.clock.trouble
    clocks.env.jump(-jump_ms)
    assert clocks.clock.trouble is None
    clocks.run(DAY_MS)
    assert clocks.passed_ms == DAY_MS + 1000
    assert clocks.clock.stamp_ms() == clocks.env.now_ms()
    clocks.env.jump(jump_ms)  # the same once more has stood for no time
    assert clocks.passed_ms == DAY_MS + 1000
    assert clocks.clock.stamp_ms() == clocks.start_ms + DAY_MS + 1000


@pytest.mark.parametrize("jump_ms", [DAY_MS, -DAY_MS, 3650 * DAY_MS])
def test_stamps_follow_a_jump_that_stays(jump_ms: int) -> None:
    clocks = Clocks()
    clocks.env.jump(jump_ms)
    expected_ms = clocks.start_ms
    for _ in range(STAMP_STAND_MS // MINUTE_MS):
        assert clocks.clock.stamp_ms() == expected_ms
        clocks.env.run_for(MINUTE_MS)
        expected_ms += MINUTE_MS
    assert clocks.clock.stamp_ms() == clocks.env.now_ms()


@pytest.mark.parametrize(("gap_ms", "stand_ms"), [(4 * HOUR_MS, HOUR_MS), (5 * DAY_MS, STAND_LIMIT_MS)])
def test_a_gap_counts_when_it_stood_for_a_quarter_of_itself_and_six_hours_at_most(gap_ms: int, stand_ms: int) -> None:
    clocks = Clocks()
    clocks.restart(gap_ms)
    assert clocks.clock.stamp_ms() == clocks.env.now_ms()  # a start takes the wall clock's word
    clocks.run(stand_ms - MINUTE_MS)
    assert clocks.passed_ms == stand_ms - MINUTE_MS
    clocks.run(MINUTE_MS)
    assert clocks.passed_ms == gap_ms + stand_ms


def test_a_gap_that_goes_on_changing_does_not_stand() -> None:
    clocks = Clocks()
    clocks.env.jump(DAY_MS)
    clocks.clock.now_ms()
    clocks.run(5 * HOUR_MS)
    clocks.env.jump(DAY_MS)
    clocks.clock.now_ms()
    clocks.run(5 * HOUR_MS)
    assert clocks.passed_ms == 10 * HOUR_MS
    clocks.run(HOUR_MS)
    assert clocks.passed_ms == 2 * DAY_MS + 11 * HOUR_MS


def test_segments_made_behind_a_gap_do_not_grow_old_by_it() -> None:
    clocks = Clocks()
    clocks.restart(5 * DAY_MS)
    created_ms = clocks.clock.created_ms()
    assert created_ms - clocks.clock.now_ms() == 5 * DAY_MS
    clocks.run(7 * HOUR_MS)
    assert clocks.clock.now_ms() - created_ms == 7 * HOUR_MS


def test_a_year_and_more_never_counts_and_the_alarm_ends() -> None:
    clocks = Clocks()
    clocks.restart(YEAR_MS + 5 * MINUTE_MS)
    assert clocks.clock.stamp_ms() == clocks.start_ms  # not even for stamps, until it stood
    assert clocks.clock.created_ms() == clocks.clock.now_ms()
    clocks.run(5 * HOUR_MS)
    assert clocks.clock.trouble is not None and "ahead" in clocks.clock.trouble
    clocks.run(HOUR_MS)
    assert clocks.clock.trouble is None
    assert clocks.clock.created_ms() == clocks.clock.now_ms()
    assert clocks.passed_ms == 6 * HOUR_MS
    clocks.restart(40 * MINUTE_MS)  # what is off from now on is measured from here, in the next process, too
    clocks.run(10 * MINUTE_MS)
    assert clocks.passed_ms == 6 * HOUR_MS + 50 * MINUTE_MS


def test_a_clock_that_starts_in_1970_and_is_set_right_counts_nothing() -> None:
    clocks = Clocks()
    off_ms = clocks.env.now_ms()
    clocks.restart(-off_ms)
    assert clocks.clock.stamp_ms() == clocks.start_ms
    clocks.run(HOUR_MS)
    clocks.env.jump(off_ms)
    clocks.run(10 * HOUR_MS)
    assert clocks.passed_ms == 11 * HOUR_MS
    assert clocks.clock.stamp_ms() == clocks.env.now_ms()
    assert clocks.clock.trouble is None


def test_a_clock_behind_is_told_and_never_counts_and_is_right_when_it_stood_for_as_long() -> None:
    clocks = Clocks()
    clocks.env.jump(-2 * DAY_MS)
    clocks.run(DAY_MS)
    assert clocks.clock.trouble is not None and "behind" in clocks.clock.trouble
    clocks.restart(DAY_MS)  # behind by a day yet: the day off is not counted twice, nor is it known
    assert clocks.passed_ms == DAY_MS
    clocks.run(DAY_MS - MINUTE_MS)
    assert clocks.clock.state.offset_ms == 0
    clocks.run(MINUTE_MS)
    assert (clocks.passed_ms, clocks.clock.state.offset_ms) == (2 * DAY_MS, -DAY_MS)
    assert clocks.clock.trouble is None


def test_a_service_that_was_off_for_a_day_tells_nothing() -> None:
    clocks = Clocks()
    clocks.restart(ALARM_MS)
    assert clocks.clock.trouble is None
    clocks.restart(2 * MINUTE_MS)
    assert clocks.clock.trouble is not None


def test_a_machine_that_sleeps_is_no_clock_that_jumps() -> None:
    clocks = Clocks()
    for _ in range(14):
        clocks.run(8 * HOUR_MS)
        clocks.env.sleep(16 * HOUR_MS)
        assert clocks.clock.stamp_ms() == clocks.env.now_ms()
    assert clocks.passed_ms == 14 * DAY_MS
    assert clocks.clock.trouble is None


def test_a_machine_whose_sleep_no_clock_counts_is_believed_within_the_day() -> None:
    clocks = Clocks()
    for _ in range(14):
        clocks.env.jump(16 * HOUR_MS)
        clocks.run(8 * HOUR_MS)
    assert clocks.passed_ms == 14 * DAY_MS
