"""Tokens and numbers of one request, by their fragments."""

from __future__ import annotations

from array import array

import pytest

from hubweir.broker.commands.command import Command, OnAnswer
from hubweir.errors import ARGUMENT_ERROR, MESSAGE_NOT_FOUND, ServiceError
from hubweir.gateway.brokers import OnPush
from hubweir.gateway.fragment_shares import number_share, number_shares, token_shares
from hubweir.gateway.fragments import FragmentPlace, Fragments


class NoBroker:
    def submit(self, command: Command, on_answer: OnAnswer) -> None:
        raise AssertionError("nothing is asked")

    def listen(self, on_push: OnPush) -> None:
        raise AssertionError("nobody listens")

    @property
    def is_up(self) -> bool:
        return True


def fragments(count: int) -> Fragments:
    broker = NoBroker()
    return Fragments(tuple(FragmentPlace("orders", f"log-{n}", broker, f"log-{n}", None, n) for n in range(count)))


def token(fragment: int, number: int) -> bytes:
    return ((fragment << 48) + number).to_bytes(8, "big") + b"12345678"


def test_tokens_go_to_their_fragments_with_their_places_in_the_request() -> None:
    tokens = token(2, 1), token(0, 1), token(2, 2), token(9, 1)
    shares = token_shares(fragments(4), b"".join(tokens))
    assert {share.place.number: (share.tokens, share.at) for share in shares} == {
        2: (tokens[0] + tokens[2], (0, 2)),
        0: (tokens[1] + tokens[3], (1, 3)),  # that of no fragment is lost, and the first one says so
    }


def test_all_tokens_of_an_entity_of_one_fragment_are_its_own_whatever_they_are() -> None:
    tokens = token(7, 1) + bytes(16)
    [share] = token_shares(fragments(1), tokens)
    assert (share.tokens, share.at) == (tokens, (0, 1))


def test_numbers_go_to_their_fragments_in_order() -> None:
    numbers = array("q", [(3 << 48) + 5, 1, (3 << 48) + 4])
    shares = {share.place.number: share.numbers.tolist() for share in number_shares(fragments(4), numbers)}
    assert shares == {3: [(3 << 48) + 5, (3 << 48) + 4], 0: [1]}
    [share] = number_shares(fragments(1), numbers)
    assert share.numbers == numbers


def test_numbers_of_two_fragments_or_of_none_are_refused_together() -> None:
    with pytest.raises(ServiceError) as refusal:
        number_share(fragments(4), array("q", [1, (1 << 48) + 1]))
    assert refusal.value.condition is ARGUMENT_ERROR and "2 of its partitions" in refusal.value.text
    with pytest.raises(ServiceError) as refusal:
        number_share(fragments(4), array("q", [1, (4 << 48) + 1]))
    assert refusal.value.condition is MESSAGE_NOT_FOUND
    assert number_share(fragments(4), array("q", [(1 << 48) + 1])).place.number == 1
