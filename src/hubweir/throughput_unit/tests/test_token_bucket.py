"""Exactness of the bucket in virtual time, against an oracle in fractions of seconds that shares no code with it.

The checks take the class to test, so that each has a control arm: a bucket with a planted defect must fail it.
"""

from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubweir.throughput_unit.token_bucket import BURST_MS, TokenBucket

RATES = st.sampled_from([1, 3, 7, 999, 1_000, 1_001, 4_096, 1_048_576, 41_943_040])
STEPS = st.lists(st.tuples(st.integers(0, 2_500), st.integers(0, 3_000)), min_size=1, max_size=60)


class Oracle:
    """The same bucket as a list of what was taken when: the level is worked out anew each time, from the start."""

    def __init__(self, rate: int) -> None:
        self.rate = rate
        self.moves: list[tuple[Fraction, int]] = []

    def level(self, at: Fraction) -> Fraction:
        """The least of burst and inflow since each moment, less what was taken since: the bucket without a state."""
        level, last = Fraction(self.rate), Fraction(0)
        for moment, count in self.moves:
            level = min(Fraction(self.rate), level + (moment - last) * self.rate) - count
            last = moment
        return min(Fraction(self.rate), level + (at - last) * self.rate)

    def fits(self, count: int, at: Fraction) -> bool:
        return self.level(at) >= min(count, self.rate)


def check_against_oracle(bucket_of: Callable[..., TokenBucket], rate: int, steps: list[tuple[int, int]]) -> None:
    bucket, oracle, now_ms = bucket_of(rate, now_ms=0), Oracle(rate), 0
    for passed_ms, count in steps:
        now_ms += passed_ms
        at = Fraction(now_ms, 1_000)
        assert bucket.room(now_ms) == max(0, oracle.level(at).__floor__())
        wait_ms = bucket.wait_ms(count, now_ms)
        assert (wait_ms == 0) == oracle.fits(count, at)
        if wait_ms:
            assert oracle.fits(count, at + Fraction(wait_ms, 1_000))
            assert not oracle.fits(count, at + Fraction(wait_ms - 1, 1_000))
        else:
            bucket.take(count)
            oracle.moves.append((at, count))


def greedy(bucket: TokenBucket, step_ms: int, steps: int) -> int:
    """Take everything there is at each step; return how much that was."""
    total = 0
    for step in range(steps + 1):
        count = bucket.room(step * step_ms)
        assert bucket.wait_ms(count, step * step_ms) == 0
        if step:  # at first the bucket is full, and a full one lets more than the burst pass, into debt
            assert bucket.wait_ms(count + 1, step * step_ms) > 0
        bucket.take(count)
        total += count
    return total


def check_no_drift(bucket_of: Callable[..., TokenBucket], rate: int, step_ms: int) -> None:
    """Over many steps, none longer than the burst, exactly burst and rate come out, to one token."""
    steps = 30_000
    assert greedy(bucket_of(rate, now_ms=0), step_ms, steps) == rate + rate * step_ms * steps // 1_000


class RoundingBucket(TokenBucket):
    """Defect: refills whole tokens and forgets the rest."""

    def _refill(self, now_ms: int) -> None:
        passed_ms = now_ms - self._now_ms
        self._level = min(self._level + self._rate * passed_ms // 1_000 * 1_000, self._capacity)
        self._now_ms = now_ms


class FloatBucket(TokenBucket):
    """Defect: counts in floating-point tokens."""

    def _refill(self, now_ms: int) -> None:
        passed_s = (now_ms - self._now_ms) / 1_000
        self._level = int(min(self._level / 1_000 + self._rate * passed_s, self._capacity / 1_000) * 1_000)
        self._now_ms = now_ms


class OneMoreBucket(TokenBucket):
    """Defect: lets through what is one token short."""

    def wait_ms(self, count: int, now_ms: int) -> int:
        return super().wait_ms(max(0, count - 1), now_ms)


class HoardingBucket(TokenBucket):
    """Defect: keeps what came in while nobody asked."""

    def _refill(self, now_ms: int) -> None:
        self._level += self._rate * (now_ms - self._now_ms)
        self._now_ms = now_ms


@settings(max_examples=200, deadline=None)
@given(rate=RATES, steps=STEPS)
def test_every_answer_is_the_oracles(rate: int, steps: list[tuple[int, int]]) -> None:
    check_against_oracle(TokenBucket, rate, steps)


@pytest.mark.parametrize("rate", [1_000, 4_096, 1_001, 401])
@pytest.mark.parametrize("step_ms", [1, 7, 333, 997])
def test_nothing_is_lost_or_gained_over_long_odd_steps(rate: int, step_ms: int) -> None:
    check_no_drift(TokenBucket, rate, step_ms)


@pytest.mark.parametrize("defect", [RoundingBucket, FloatBucket, OneMoreBucket])
def test_the_check_of_drift_finds_planted_defects(defect: type[TokenBucket]) -> None:
    with pytest.raises(AssertionError):
        check_no_drift(defect, 1_001, 7)


@pytest.mark.parametrize("defect", [RoundingBucket, OneMoreBucket, HoardingBucket])
def test_the_check_against_the_oracle_finds_planted_defects(defect: type[TokenBucket]) -> None:
    steps = [(0, 999), (1, 1), (7, 3), (2_500, 1_001), (1, 1), (1_500, 990), (3, 17), (1, 2), (1_000, 1_001)]
    check_against_oracle(TokenBucket, 999, steps)
    with pytest.raises(AssertionError):
        check_against_oracle(defect, 999, steps)


def test_a_thousand_events_a_second_is_a_thousand_at_once_and_then_one_a_millisecond() -> None:
    bucket = TokenBucket(1_000, now_ms=5_000)
    assert bucket.wait_ms(1_000, 5_000) == 0
    bucket.take(1_000)
    assert bucket.wait_ms(1, 5_000) == 1
    assert bucket.wait_ms(1_000, 5_000) == 1_000
    assert bucket.wait_ms(1, 5_001) == 0


def test_an_idle_year_collects_one_burst() -> None:
    bucket = TokenBucket(1_000, now_ms=0)
    assert bucket.room(365 * 86_400_000) == 1_000 * BURST_MS // 1_000


def test_a_request_above_the_burst_passes_when_the_bucket_is_full_and_is_paid_for() -> None:
    bucket = TokenBucket(1_000, now_ms=0)
    assert bucket.wait_ms(3_500, 0) == 0
    bucket.take(3_500)
    assert bucket.room(2_500) == 0
    assert bucket.wait_ms(1, 2_500) == 1
    assert bucket.room(2_501) == 1
    assert bucket.wait_ms(3_500, 2_501) == 999


@settings(max_examples=200, deadline=None)
@given(rate=RATES, steps=st.lists(st.tuples(st.integers(0, 900), st.integers(0, 5_000)), min_size=1, max_size=60))
def test_reserved_tokens_are_never_used_before_they_came_in(rate: int, steps: list[tuple[int, int]]) -> None:
    """At the moment a reservation may be used, all that is due is within burst and rate; and not a ms earlier."""
    bucket, now_ms, total, last_due_ms = TokenBucket(rate, now_ms=0), 0, 0, 0
    oracle = Oracle(rate)
    for passed_ms, count in steps:
        now_ms += passed_ms
        delay_ms = bucket.reserve(count, now_ms)
        oracle.moves.append((Fraction(now_ms, 1_000), count))
        level = oracle.level(Fraction(now_ms, 1_000))
        assert (delay_ms == 0) == (level >= 0)
        if delay_ms:
            assert level + Fraction(rate * delay_ms, 1_000) >= 0 > level + Fraction(rate * (delay_ms - 1), 1_000)
        total += count
        due_ms = now_ms + delay_ms
        assert due_ms >= last_due_ms, "reservations come due in turn"
        assert total <= rate + Fraction(rate * due_ms, 1_000)
        last_due_ms = due_ms


def test_giving_back_undoes_a_take_and_never_overfills() -> None:
    bucket = TokenBucket(1_000, now_ms=0)
    bucket.take(600)
    bucket.give_back(600, 0)
    assert bucket.room(0) == 1_000
    bucket.take(600)
    bucket.give_back(600, 500)
    assert bucket.room(500) == 1_000


def test_a_change_of_rate_counts_from_then_on() -> None:
    bucket = TokenBucket(1_000, now_ms=0)
    bucket.take(1_000)
    bucket.change(3_000, 100)
    assert bucket.room(100) == 100 + 2_000
    bucket.take(2_100)
    assert bucket.room(200) == 300
    bucket.change(1_000, 300)
    assert bucket.room(300) == 600
    assert bucket.room(10_000) == 1_000


def test_a_raise_brings_the_burst_of_what_was_added_and_a_cut_keeps_its_own() -> None:
    bucket = TokenBucket(1_000, now_ms=0)
    bucket.take(1_000)
    bucket.change(3_000, 0)
    assert bucket.room(0) == 2_000
    bucket.change(500, 0)
    assert bucket.room(0) == 500


def test_asking_about_another_rate_changes_nothing() -> None:
    bucket = TokenBucket(1_000, now_ms=0)
    bucket.take(1_000)
    assert bucket.wait_ms_at(2_000, 1_000, 10) == 0
    assert bucket.wait_ms_at(2_000, 1_500, 10) == 245
    assert bucket.delay_ms_at(2_000, 1_500, 10) == 245
    assert bucket.room(10) == 10


def check_small_steps_back(bucket_of: Callable[..., TokenBucket]) -> None:
    bucket = bucket_of(1_000, now_ms=10_000)
    bucket.take(1_000)
    for _ in range(100):
        bucket.room(10_000)
        bucket.room(9_990)
    assert bucket.room(10_000) == 0
    assert bucket.room(10_001) == 1


class ForgetfulBucket(TokenBucket):
    """Defect: believes each step back at once."""

    def _refill(self, now_ms: int) -> None:
        if now_ms > self._now_ms:
            super()._refill(now_ms)
        self._now_ms = now_ms


def test_a_clock_that_trembles_gives_no_token_twice() -> None:
    check_small_steps_back(TokenBucket)
    with pytest.raises(AssertionError):
        check_small_steps_back(ForgetfulBucket)


def test_a_clock_set_back_an_hour_gives_nothing_and_stops_nothing() -> None:
    bucket = TokenBucket(1_000, now_ms=3_600_000)
    bucket.take(1_000)
    assert bucket.room(0) == 0
    assert bucket.room(250) == 250
    assert bucket.room(5_000) == 1_000
