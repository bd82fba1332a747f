"""Locks: whose token is good, and when each ends."""

from __future__ import annotations

from array import array

from hubweir.kernels.queue.tokens import check_of
from hubweir.queue.lock_table import LockTable

SECRET = bytes(range(16))
BASE = 3 << 48


def token(locks: LockTable, ordinal: int) -> bytes:
    number = locks.first_number + ordinal
    return number.to_bytes(8, "big") + check_of(SECRET, number).to_bytes(8, "big")


def filled(counts: int, until_ms: int = 100) -> LockTable:
    locks = LockTable(BASE, SECRET)
    locks.lock(array("q", range(1, counts + 1)), counts, until_ms)
    return locks


def test_tokens_find_their_messages_over_pages_and_in_any_order() -> None:
    locks = filled(10_000)
    wanted = [9_999, 0, 4_096, 4_095, 8_192]
    ordinals, counts = locks.find(b"".join(token(locks, ordinal) for ordinal in wanted), 50)
    assert list(ordinals) == wanted and list(counts) == [each + 1 for each in wanted]


def test_a_lock_that_was_never_given_or_has_another_secret_is_not_found() -> None:
    locks, other = filled(5), LockTable(BASE, bytes(16))
    other.lock(array("q", [1]), 1, 100)
    assert list(locks.find(token(locks, 5) + token(locks, 4), 50)[1]) == [0, 5]
    assert list(other.find(token(locks, 0), 50)[1]) == [0]


def test_locks_end_at_their_time_and_not_before() -> None:
    locks = filled(5_000)
    assert locks.next_due_ms == 100
    assert list(locks.ended(99, 10_000)[0]) == []
    assert list(locks.find(token(locks, 7), 99)[1]) == [8] and list(locks.find(token(locks, 7), 100)[1]) == [0]
    ordinals, counts = locks.ended(100, 4_500)
    assert list(ordinals) == list(range(4_500)) and list(counts) == list(range(1, 4_501))
    locks.end_ordinals(ordinals)
    assert locks.next_due_ms == 100
    ordinals, _ = locks.ended(100, 4_500)
    assert len(ordinals) == 500
    locks.end_ordinals(ordinals)
    assert locks.next_due_ms is None


def test_a_renewed_lock_ends_later_and_the_others_when_they_would() -> None:
    locks = filled(3)
    locks.renew(1, 200)
    ordinals, _ = locks.ended(100, 10)
    assert list(ordinals) == [0, 2]
    locks.end_ordinals(ordinals)
    assert list(locks.ended(150, 10)[0]) == []
    assert list(locks.ended(200, 10)[0]) == [1]


def test_a_lock_that_was_passed_over_is_looked_at_again() -> None:
    locks = filled(2)
    locks.ended(100, 10)
    assert locks.next_due_ms is None
    locks.look_again(locks.first_number + 1)
    assert list(locks.ended(100, 10)[0]) == [0, 1]


def test_pages_whose_locks_are_over_are_dropped() -> None:
    locks = filled(9_000)
    locks.end(array("q", [locks.first_number + ordinal for ordinal in range(8_192)]))
    assert list(locks._pages) == [2]
    locks.end(array("q", [locks.first_number - 5, locks.first_number + 3, 0]))
    assert list(locks.find(token(locks, 3) + token(locks, 8_500), 50)[1]) == [0, 8_501]


def test_the_first_two_bytes_of_a_token_are_the_number_of_the_fragment_and_no_lock_has_the_number_0() -> None:
    assert token(filled(1), 0)[:2] == (3).to_bytes(2, "big")
    plain = LockTable(0, SECRET)
    plain.lock(array("q", [1]), 1, 100)
    assert plain.first_number == 1
    assert list(plain.find(token(plain, 0) + bytes(16), 50)[1]) == [1, 0]
