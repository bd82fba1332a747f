"""What a checker of histories knows of a message and of its lock from the start."""

from __future__ import annotations

from hubweir.testing.history_values import NEVER_MS, SeenHold, SeenLock, SeenMessage, SeenPlace, SeenSettlement


def message() -> SeenMessage:
    return SeenMessage(7, "text", 3, 99, 5_000, "a", "m", True, False)


def test_of_a_message_that_is_about_to_be_sent_nobody_was_told_anything() -> None:
    made = message()
    assert (made.order, made.text, made.group, made.checksum, made.began_ms) == (7, "text", 3, 99, 5_000)
    assert (made.session, made.message_id, made.is_scheduled, made.may_expire) == ("a", "m", True, False)
    assert made.accepted is None and made.number is None and made.lock is None
    assert not made.is_seen and not made.may_be_gone and made.stored_by_ms == NEVER_MS
    assert made.place is SeenPlace.WAITING and (made.least, made.most, made.crashes) == (0, 0, 0)


def test_a_lock_ends_when_its_time_is_over() -> None:
    lock = SeenLock(message(), b"token", 9_000, None)
    assert lock.ends_ms == 9_000 and not lock.is_over and lock.settling is None


def test_a_lock_in_a_session_ends_when_the_hold_does_also_when_that_is_renewed() -> None:
    hold = SeenHold("a", 6_000)
    lock = SeenLock(message(), b"token", 9_000, hold)
    assert lock.ends_ms == 6_000
    hold.until_ms = 12_000
    assert lock.ends_ms == 12_000
    assert hold.locks == [] and not hold.is_over


def test_a_settlement_remembers_whether_its_lock_was_good_and_whether_that_is_certain() -> None:
    lock = SeenLock(message(), b"token", 9_000, None)
    settlement = SeenSettlement(lock, "completed", True, False, 4)
    assert (settlement.lock, settlement.outcome, settlement.tick) == (lock, "completed", 4)
    assert settlement.is_good and not settlement.is_sure and settlement.passed_by is None
