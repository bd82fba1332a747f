"""A ledger takes every history that is true, and finds each that is not."""

from __future__ import annotations

import pytest

from hubweir.testing.history_values import Violation
from hubweir.testing.token_ledger import Move, TokenLedger, TokenPlace

HERE = TokenPlace("one", 0)


@pytest.fixture
def ledger() -> TokenLedger:
    return TokenLedger(3, "one")


def move(ledger: TokenLedger, *tokens: int, origin: TokenPlace = HERE) -> tuple[Move, TokenPlace]:
    """A move of tokens whose commit is on its way, and where it goes."""
    goal = TokenPlace("two", ledger.new_move())
    return ledger.moving(dict.fromkeys(tokens, origin), dict.fromkeys(tokens, goal)), goal


def test_a_token_is_where_it_was_until_a_commit_is_asked_for(ledger: TokenLedger) -> None:
    ledger.seen(0, HERE)
    with pytest.raises(Violation, match="P12: token 0"):
        ledger.seen(0, TokenPlace("two", 1))
    with pytest.raises(Violation, match="P12: token 7"):
        ledger.seen(7, HERE)


def test_behind_a_commit_that_was_answered_all_tokens_are_there_or_further(ledger: TokenLedger) -> None:
    first, there = move(ledger, 0, 1)
    ledger.moved(first)
    ledger.seen(0, there)
    second, beyond = move(ledger, 0, origin=there)
    ledger.moved(second)
    ledger.seen(0, beyond)
    with pytest.raises(Violation, match="token 1"):
        ledger.seen(1, HERE)
    with pytest.raises(Violation, match="token 0"):
        ledger.seen(0, there)


def test_behind_a_commit_that_was_refused_all_tokens_are_where_they_were(ledger: TokenLedger) -> None:
    refused, there = move(ledger, 0, 1)
    ledger.stayed(refused)
    ledger.seen(0, HERE)
    with pytest.raises(Violation, match="token 1"):
        ledger.seen(1, there)


@pytest.mark.parametrize("is_done", [True, False])
def test_a_move_that_nobody_answered_is_done_whole_or_not_at_all(ledger: TokenLedger, is_done: bool) -> None:
    _, there = move(ledger, 0, 1)
    ledger.seen(0, there if is_done else HERE)
    with pytest.raises(Violation, match="token 1"):
        ledger.seen(1, HERE if is_done else there)


@pytest.mark.parametrize("is_done", [True, False])
def test_a_move_that_nobody_answered_may_have_been_done_or_not(ledger: TokenLedger, is_done: bool) -> None:
    _, there = move(ledger, 0, 1)
    place = there if is_done else HERE
    for token in (0, 1, 1):
        ledger.seen(token, place)
    assert ledger.left([(0, place), (1, place), (2, HERE)]) == set()


def test_the_answer_may_come_behind_what_the_next_receiver_saw_and_did(ledger: TokenLedger) -> None:
    first, there = move(ledger, 0, 1)
    ledger.seen(0, there)
    second, beyond = move(ledger, 0, origin=there)
    ledger.moved(second)
    ledger.moved(first)
    ledger.seen(0, beyond)
    ledger.seen(1, there)


def test_an_answer_that_is_another_one_than_what_was_seen_is_found(ledger: TokenLedger) -> None:
    first, _ = move(ledger, 0, 1)
    ledger.seen(0, HERE)
    with pytest.raises(Violation, match="could not be done"):
        ledger.moved(first)
    second, there = move(ledger, 0, 1)
    ledger.seen(0, there)
    with pytest.raises(Violation, match="and was done"):
        ledger.stayed(second)


def test_of_two_that_move_one_token_one_does(ledger: TokenLedger) -> None:
    """The first one's lock was lost, and it does not know that yet; both send the token to one entity."""
    first, _ = move(ledger, 0, 1)
    second, there = move(ledger, 0)
    ledger.seen(0, there)
    assert (first.is_done, second.is_done) == (False, True)
    ledger.seen(1, HERE)
    late, _ = move(ledger, 0)
    assert late.is_done is False, "the token had gone by then"
    ledger.stayed(late)
    with pytest.raises(Violation, match="could not be done"):
        ledger.moved(late)


def test_of_two_that_move_one_token_the_other_one_s_tokens_stayed(ledger: TokenLedger) -> None:
    first, there = move(ledger, 0, 1)
    second, _ = move(ledger, 0, 2)
    ledger.moved(first)
    assert second.is_done is False
    ledger.seen(2, HERE)
    ledger.seen(1, there)


def test_tokens_that_are_missing_are_told_and_a_copy_is_found(ledger: TokenLedger) -> None:
    assert ledger.left([(1, HERE)]) == {0, 2}
    with pytest.raises(Violation, match="more than once"):
        ledger.left([(1, HERE), (1, HERE)])
