"""message_options.py: times, properties and sub-queues as they are typed."""

from __future__ import annotations

import time

import click
import pytest

from hubweir.cli.message_options import Moment, Property, SubQueueName
from hubweir.queue.sub_queue import SubQueue


def test_a_moment_is_a_time_or_a_distance_from_now() -> None:
    assert Moment().convert("2026-01-31T12:00Z", None, None) == 1_769_860_800_000
    assert Moment().convert("2026-01-31T12:00", None, None) == 1_769_860_800_000
    assert Moment().convert("2026-01-31T13:00+01:00", None, None) == 1_769_860_800_000
    assert Moment().convert(7, None, None) == 7
    now = int(time.time() * 1000)
    assert abs(Moment().convert("+10m", None, None) - now - 600_000) < 10_000
    assert abs(Moment().convert("-2h", None, None) - now + 7_200_000) < 10_000
    for wrong in ("soon", "10m", "+soon", ""):
        with pytest.raises(click.BadParameter):
            Moment().convert(wrong, None, None)


@pytest.mark.parametrize("day", ["1970-01-01", "2026-01-31", "2199-12-31"])
def test_a_moment_keeps_every_millisecond(day: str) -> None:
    begin = Moment().convert(f"{day}T12:00:00Z", None, None)
    told = [Moment().convert(f"{day}T12:00:00.{ms:03}Z", None, None) - begin for ms in range(1_000)]
    assert told == list(range(1_000))


def test_a_property_has_a_name_and_a_text() -> None:
    assert Property().convert("a=b=c", None, None) == ("a", "b=c")
    assert Property().convert("a=", None, None) == ("a", "")
    assert Property().convert(("a", "b"), None, None) == ("a", "b")
    for wrong in ("a", "=b", ""):
        with pytest.raises(click.BadParameter, match="NAME=TEXT"):
            Property().convert(wrong, None, None)


def test_a_sub_queue_is_one_of_three_words() -> None:
    words = ("main", "dead-letter", "transfer-dead-letter")
    named = [SubQueueName().convert(word, None, None) for word in words]
    assert named == [SubQueue.MAIN, SubQueue.DEAD_LETTERS, SubQueue.TRANSFER_DEAD_LETTERS]
    assert SubQueueName().convert(SubQueue.MAIN, None, None) is SubQueue.MAIN
    with pytest.raises(click.BadParameter):
        SubQueueName().convert("dead", None, None)
