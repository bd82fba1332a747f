"""What the checker of duplicate detection calls a violation, and what it does not."""

from __future__ import annotations

import pytest

from hubweir.testing.duplicate_history import DuplicateHistory
from hubweir.testing.history_values import NEVER_MS, SeenMessage, SeenPlace, Violation

WINDOW_MS = 1_000


def sent(history: DuplicateHistory, order: int, began_ms: int, *, message_id: str | None = "m") -> SeenMessage:
    """A message that was stored within 10 ms."""
    made = SeenMessage(order, f"message {order}", 0, 0, began_ms, None, message_id, False, False)
    made.stored_by_ms = began_ms + 10
    history.enter(made)
    return made


@pytest.fixture
def history() -> DuplicateHistory:
    return DuplicateHistory(WINDOW_MS)


@pytest.mark.parametrize(("apart_ms", "is_wrong"), [(0, True), (989, True), (990, False), (1_000, False)])
def test_two_of_one_id_are_there_only_if_the_window_may_lie_between_them(
    history: DuplicateHistory, apart_ms: int, is_wrong: bool
) -> None:
    """The second may have been stored 10 ms behind its beginning."""
    history.seen(sent(history, 0, 5_000))
    second = sent(history, 1, 5_000 + apart_ms)
    if is_wrong:
        with pytest.raises(Violation, match=f"P11: message 1 and message 0 have the id m .* {apart_ms} ms apart"):
            history.seen(second)
    else:
        history.seen(second)


def test_the_order_in_which_two_are_seen_says_nothing(history: DuplicateHistory) -> None:
    first, second = sent(history, 0, 5_000), sent(history, 1, 5_500)
    history.seen(second)
    with pytest.raises(Violation, match="500 ms apart"):
        history.seen(first)


def test_one_of_which_nobody_knows_when_it_was_stored_is_no_duplicate(history: DuplicateHistory) -> None:
    history.seen(sent(history, 0, 5_000))
    second = sent(history, 1, 5_001)
    second.stored_by_ms = NEVER_MS
    history.seen(second)


def test_other_ids_and_messages_without_one_are_no_duplicates(history: DuplicateHistory) -> None:
    for order, message_id in enumerate(("m", "n", None, None)):
        history.seen(sent(history, order, 5_000, message_id=message_id))


def test_who_is_not_seen_was_dropped_only_for_another_that_was_there(history: DuplicateHistory) -> None:
    first, second = sent(history, 0, 5_000), sent(history, 1, 5_001)
    assert not history.may_be_dropped(first) and not history.may_be_dropped(second)
    first.is_seen = True
    assert history.may_be_dropped(second) and not history.may_be_dropped(first)


@pytest.mark.parametrize("how", ["may_be_gone", "may_expire", "is_gone"])
def test_another_that_is_gone_was_there(history: DuplicateHistory, how: str) -> None:
    first, second = sent(history, 0, 5_000), sent(history, 1, 5_001)
    if how == "is_gone":
        first.place = SeenPlace.GONE
    else:
        setattr(first, how, True)
    assert history.may_be_dropped(second)


def test_the_first_of_two_that_were_accepted_is_missed_and_the_second_is_not(history: DuplicateHistory) -> None:
    first, second = sent(history, 0, 5_000), sent(history, 1, 5_001)
    first.accepted = second.accepted = True
    assert history.may_be_dropped(second) and not history.may_be_dropped(first)


def test_one_that_began_when_the_other_was_stored_already_kept_it_out_of_nothing(history: DuplicateHistory) -> None:
    first, second = sent(history, 0, 5_000), sent(history, 1, 5_011)
    second.is_seen = True
    assert not history.may_be_dropped(first)
