import random

from hubweir.auth.high_water_time import HighWaterTime


def test_time_goes_on_with_the_clock_and_stands_while_the_clock_is_back() -> None:
    time = HighWaterTime()
    assert [time.observe(now_ms) for now_ms in (10, 20, 5, 19, 20, 21)] == [10, 20, 20, 20, 20, 21]


def test_whatever_the_clock_does_time_is_the_latest_that_it_showed() -> None:
    time, clock = HighWaterTime(), random.Random(20)
    latest = 0
    for _ in range(1_000):
        now_ms = clock.randrange(1_000_000)
        latest = max(latest, now_ms)
        assert time.observe(now_ms) == latest


def test_two_of_them_know_nothing_of_each_other() -> None:
    one, other = HighWaterTime(), HighWaterTime()
    one.observe(1_000)
    assert other.observe(0) == 0
