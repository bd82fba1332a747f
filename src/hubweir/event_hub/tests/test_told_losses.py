"""Each loss is told to a consumer group once for each time that one of its readers may pass."""

from __future__ import annotations

from hubweir.errors import CorruptStore, LogOffline
from hubweir.event_hub.told_losses import PASS_MS, PASSES_LIMIT, LostEvents, ToldLosses

LOST = LostEvents(4, 9)


def test_a_loss_is_a_range_that_an_error_names_and_nothing_else() -> None:
    assert LostEvents.of(CorruptStore("damaged", first_index=4, resume_index=9)) == LOST
    assert LostEvents.of(CorruptStore("damaged", first_index=4)) is None
    assert LostEvents.of(CorruptStore("damaged", resume_index=9)) is None
    assert LostEvents.of(LogOffline("away")) is None


def test_who_was_told_passes_once_and_the_next_is_told_again() -> None:
    losses = ToldLosses()
    assert [losses.must_hear("a", LOST, 0) for _ in range(6)] == [True, False] * 3


def test_groups_and_ranges_are_told_apart_and_parts_of_a_range_are_not() -> None:
    losses = ToldLosses()
    assert losses.must_hear("a", LOST, 0) and losses.must_hear("b", LOST, 0)
    assert losses.must_hear("a", LostEvents(9, 10), 0) and losses.must_hear("a", LostEvents(0, 4), 0)
    assert not losses.must_hear("a", LostEvents(8, 12), 0)
    assert not losses.must_hear("b", LostEvents(4, 5), 0)


def test_two_that_were_told_both_pass() -> None:
    losses = ToldLosses()
    heard = [losses.must_hear("a", LOST, 0)]
    heard.append(losses.must_hear("a", LOST, 0))  # another one of the group goes first
    heard += [losses.must_hear("a", LOST, 0), losses.must_hear("a", LOST, 0)]
    assert heard == [True, False, True, False]


def test_a_pass_that_nobody_used_is_forgotten_after_a_day() -> None:
    losses = ToldLosses()
    assert losses.must_hear("a", LOST, 0) and losses.must_hear("b", LOST, 0)
    assert not losses.must_hear("a", LOST, PASS_MS - 1)
    assert losses.must_hear("b", LOST, PASS_MS)


def test_passes_are_bounded_and_the_newest_stay() -> None:
    losses = ToldLosses()
    for number in range(PASSES_LIMIT + 5):
        assert losses.must_hear(str(number), LOST, 0)
    assert len(losses._passes) == PASSES_LIMIT
    assert not losses.must_hear(str(PASSES_LIMIT + 4), LOST, 0) and not losses.must_hear("5", LOST, 0)
    assert losses.must_hear("4", LOST, 0)
