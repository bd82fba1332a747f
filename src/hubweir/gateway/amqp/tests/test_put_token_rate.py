"""The rate of put-token (cbs_node.py): a burst at once, then a steady rate."""

from hubweir.gateway.amqp.cbs_node import PutTokenRate


def test_a_burst_goes_through_at_once_and_the_next_waits() -> None:
    rate = PutTokenRate(256, 10, 0)
    assert [rate.delay_ms(0) for _ in range(256)] == [0] * 256
    assert rate.delay_ms(0) == 100


def test_after_the_burst_it_is_ten_a_second_over_any_stretch() -> None:
    rate = PutTokenRate(256, 10, 0)
    now_ms = taken = 0
    while now_ms <= 60_000:
        delay_ms = rate.delay_ms(now_ms)
        if delay_ms:
            now_ms += delay_ms
        else:
            taken += 1
    assert taken == 256 + 600


def test_a_delay_that_was_waited_for_is_enough() -> None:
    rate = PutTokenRate(1, 3, 0)  # a rate that does not divide a second
    assert rate.delay_ms(0) == 0
    assert rate.delay_ms(rate.delay_ms(0)) == 0


def test_a_burst_is_whole_where_the_rate_does_not_divide_a_second() -> None:
    rate = PutTokenRate(2, 3, 0)
    assert [rate.delay_ms(0) for _ in range(2)] == [0, 0]
    assert rate.delay_ms(0) > 0


def test_rest_never_saves_up_more_than_the_burst() -> None:
    rate = PutTokenRate(5, 10, 0)
    assert [rate.delay_ms(1_000_000) for _ in range(6)][:5] == [0] * 5
    assert rate.delay_ms(1_000_000) > 0
