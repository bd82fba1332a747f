"""Lock tokens and sequence numbers of one request, by the fragments that they name.

Of an entity of one fragment, as most are, all are its own, and none is looked at.
"""

from __future__ import annotations

from array import array

from msgspec import Struct

from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.gateway.fragments import FragmentPlace, Fragments
from hubweir.queue.settle_outcome import TOKEN_BYTES


class TokenShare(Struct, frozen=True):
    """Tokens, back to back, of one fragment. at: the place of each among those of the request."""

    place: FragmentPlace
    tokens: bytes
    at: tuple[int, ...]


class NumberShare(Struct, frozen=True):
    """Sequence numbers of one fragment, in the order of the request."""

    place: FragmentPlace
    numbers: array[int]


def token_shares(fragments: Fragments, tokens: bytes) -> list[TokenShare]:
    """Tokens by their fragments. One that names none is the first fragment's, which says that its lock is lost."""
    many = len(tokens) // TOKEN_BYTES
    if not fragments.is_partitioned:
        return [TokenShare(fragments.places[0], tokens, tuple(range(many)))]
    by_number: dict[int, list[int]] = {}
    for at in range(many):
        place = fragments.of_token(tokens[at * TOKEN_BYTES : (at + 1) * TOKEN_BYTES])
        by_number.setdefault(0 if place is None else place.number, []).append(at)
    return [
        TokenShare(
            fragments.places[number],
            b"".join(tokens[at * TOKEN_BYTES : (at + 1) * TOKEN_BYTES] for at in its),
            tuple(its),
        )
        for number, its in by_number.items()
    ]


def number_shares(fragments: Fragments, numbers: array[int]) -> list[NumberShare]:
    """Numbers by their fragments. Raises ServiceError MESSAGE_NOT_FOUND for one that names none."""
    if not fragments.is_partitioned:
        return [NumberShare(fragments.places[0], numbers)]
    by_number: dict[int, array[int]] = {}
    for each in numbers:
        by_number.setdefault(fragments.of_number(each).number, array("q")).append(each)
    return [NumberShare(fragments.places[number], its) for number, its in by_number.items()]


def number_share(fragments: Fragments, numbers: array[int]) -> NumberShare:
    """Numbers that are to be of one fragment. Raises as `number_shares`, and ARGUMENT_ERROR where there are several."""
    shares = number_shares(fragments, numbers)
    if len(shares) > 1:
        text = (
            f"'{fragments.entity}' is partitioned, and these sequence numbers are of {len(shares)} of its partitions: "
            "ask for messages of one partition at a time, whose numbers have the same upper 16 bits."
        )
        raise ServiceError(ARGUMENT_ERROR, text)
    return shares[0]
